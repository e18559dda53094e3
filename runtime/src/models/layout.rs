//! How the blocks of a reply lay in it, for providers that want to see it again as it was.
//!
//! Thinking is signed, and its signature counts only where the block stood: before or between texts
//! and calls, or on one of them. The reply's text and calls are kept where everybody reads them; this
//! keeps their order, and between them what only the provider understands. Guards may take calls out
//! and add text afterwards, so everything here is by length or id, and what does not fit any more
//! gives way.

use domain::message::{AssistantMessage, ToolCall};
use serde_json::{Map, Value, json};

use super::dialect::{OPAQUE_SOURCE_KEY, is_own};

#[cfg(test)]
mod tests;

/// The blocks of a reply in their order: a list of objects with one of the keys below.
const LAYOUT_KEY: &str = "opaque_blocks";
/// A block that is sent again as it came.
const OPAQUE: &str = "opaque";
/// The characters of the reply's text that come here.
const TEXT_CHARS: &str = "text_chars";
/// The id of the call that comes here.
const CALL: &str = "call";
/// What belongs to the text or call and is sent again with it.
const EXTRA: &str = "extra";
/// How the log marks a secret that it masked. A signature does not fit to masked text.
const MASK: &str = "[redacted:";

/// A reply's layout on its way.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    blocks: Vec<Value>,
    has_opaque: bool,
}

impl Layout {
    /// Adds a block that is to be sent again as it is.
    pub(crate) fn add_opaque(&mut self, block: Value) {
        self.has_opaque = true;
        self.blocks.push(json!({OPAQUE: block}));
    }

    /// Adds a text of the reply.
    pub(crate) fn add_text(&mut self, text: &str, extra: Map<String, Value>) {
        self.add(TEXT_CHARS, text.chars().count().into(), extra);
    }

    /// Adds a call of the reply.
    pub(crate) fn add_call(&mut self, id: &str, extra: Map<String, Value>) {
        self.add(CALL, id.into(), extra);
    }

    fn add(&mut self, key: &str, value: Value, extra: Map<String, Value>) {
        let mut block = Map::from_iter([(key.to_owned(), value)]);
        if !extra.is_empty() {
            self.has_opaque = true;
            block.insert(EXTRA.to_owned(), extra.into());
        }
        self.blocks.push(block.into());
    }

    /// Keeps the layout in the reply, if there is more to it than text before calls.
    pub(crate) fn keep_in(self, kwargs: &mut Map<String, Value>, source: &str) {
        if self.has_opaque {
            kwargs.insert(LAYOUT_KEY.into(), self.blocks.into());
            kwargs.insert(OPAQUE_SOURCE_KEY.into(), source.into());
        }
    }
}

/// One block of a reply that is sent again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Block<'a> {
    /// As it came.
    Opaque(&'a Value),
    /// Text, never empty unless something belongs to it.
    Text(&'a str, Option<&'a Value>),
    /// The call in this place among the reply's calls.
    Call(usize, &'a ToolCall, Option<&'a Value>),
}

/// The blocks of a reply for the configured model of this name: as they lay, if it made the reply,
/// else its text and then its calls.
pub(crate) fn blocks<'a>(reply: &'a AssistantMessage, model: &str) -> Vec<Block<'a>> {
    let kept = reply.additional_kwargs.get(LAYOUT_KEY).and_then(Value::as_array);
    let kept = kept.filter(|_| is_own(reply, model)).map(Vec::as_slice).unwrap_or_default();
    let mut blocks = Vec::new();
    let mut text = reply.content.as_str();
    let mut open: Vec<(usize, &ToolCall)> = reply.tool_calls.iter().enumerate().collect();
    for block in kept.iter().filter(|block| !is_masked(block)) {
        let extra = block.get(EXTRA);
        if let Some(opaque) = block.get(OPAQUE) {
            blocks.push(Block::Opaque(opaque));
        } else if let Some(chars) = block.get(TEXT_CHARS).and_then(Value::as_u64) {
            let (here, rest) = split_chars(text, chars);
            text = rest;
            blocks.push(Block::Text(here, extra));
        } else if let Some(at) =
            open.iter().position(|(_, call)| block.get(CALL).and_then(Value::as_str) == Some(&call.id))
        {
            let (position, call) = open.remove(at);
            blocks.push(Block::Call(position, call, extra));
        }
    }
    // Text that a guard added, or all of it.
    let before_calls = blocks.iter().position(|block| matches!(block, Block::Call(..)));
    blocks.insert(before_calls.unwrap_or(blocks.len()), Block::Text(text, None));
    blocks.extend(open.into_iter().map(|(position, call)| Block::Call(position, call, None)));
    blocks.retain(|block| !matches!(block, Block::Text("", None)));
    blocks
}

fn is_masked(block: &Value) -> bool {
    match block {
        Value::String(text) => text.contains(MASK),
        Value::Array(items) => items.iter().any(is_masked),
        Value::Object(fields) => fields.values().any(is_masked),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn split_chars(text: &str, chars: u64) -> (&str, &str) {
    let chars = usize::try_from(chars).unwrap_or(usize::MAX);
    let at = text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    text.split_at(at)
}
