//! Ids of tool calls within one reply and one conversation.

use std::collections::BTreeSet;

use domain::{limits::TOOL_CALL_ID_CHARS_MAX, text};

/// The provider's id, or one of our own where it gave none or gave it twice.
pub(crate) fn free_id(given: Option<&str>, position: usize, taken: &BTreeSet<String>) -> String {
    let given = given.map(|id| text::prefix(id, TOOL_CALL_ID_CHARS_MAX).text);
    if let Some(id) = given.filter(|id| !taken.contains(id)) {
        return id;
    }
    let mut id = format!("call_{}", position + 1);
    while taken.contains(&id) {
        id.push('_');
    }
    id
}
