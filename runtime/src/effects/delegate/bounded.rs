//! What a lead gets of a very long report: head and tail, and the name of the blob that has all of
//! it. Several such reports at once would leave no room for anything else.

use domain::{limits::TOOL_OUTPUT_CHARS_MAX, message::ToolMessage};

use crate::tools::{OutputKeeper, ToolOutput, capture};

const ADVICE: &str = "ask a subagent for the part that you need";

/// Bounds the text of a result as that of any tool. Its metadata stays.
pub(super) async fn within(keeper: OutputKeeper, mut result: ToolMessage) -> ToolMessage {
    if result.content.chars().count() <= TOOL_OUTPUT_CHARS_MAX {
        return result;
    }
    let whole = result.content.clone();
    let bounding = tokio::task::spawn_blocking(move || capture::bound_by(Some(&keeper), &whole, ADVICE));
    let ToolOutput { text, kept, .. } = match bounding.await {
        Ok(bounded) => bounded,
        Err(_) => capture::bound(&result.content, ADVICE),
    };
    result.content = text;
    if let Some(kept) = &kept {
        result.keep_output(kept);
    }
    result
}
