//! How many tokens a conversation has, estimated from its characters and corrected by what a
//! provider reported. Only compaction uses it; nothing that is paid for is ever estimated.

use crate::{
    agent::Conversation,
    message::{AssistantMessage, Message, ToolArgs, ToolCall},
};

/// Characters of a token (chain facts §2.9).
const CHARS_PER_TOKEN: u64 = 4;
/// What a message costs beside its text (chain facts §2.9).
const TOKENS_PER_MESSAGE: u64 = 3;
/// What an image costs, whatever its size (chain facts §2.9).
const TOKENS_PER_IMAGE: u64 = 85;
/// A report also counts the system prompt and the tools, which do not grow with the conversation:
/// it lifts the estimate by this much at most, in percent.
const SCALE_PERCENT_MAX: u64 = 125;

/// The tokens of the conversation, its summary counted as one more message, lifted by what the
/// provider reported up to the last reply.
pub(super) fn tokens(conversation: &Conversation, reported: Option<u64>) -> u64 {
    let messages = conversation.messages();
    let summary = summary_tokens(conversation.summary());
    let all = summary.saturating_add(of_all(messages));
    let last_reply = messages.iter().rposition(|message| message.as_assistant().is_some());
    let (Some(reported), Some(last_reply)) = (reported, last_reply) else { return all };
    let reported_for = summary.saturating_add(of_all(messages.iter().take(last_reply + 1)));
    let scaled = all.saturating_mul(reported) / reported_for.max(1);
    all.max(scaled.min(all.saturating_mul(SCALE_PERCENT_MAX) / 100))
}

/// The tokens of the messages, uncorrected.
pub(super) fn of_all<'a>(messages: impl IntoIterator<Item = &'a Message>) -> u64 {
    messages.into_iter().map(of_message).fold(0, u64::saturating_add)
}

/// The tokens of a summary, which is shown as a message.
pub(super) fn summary_tokens(summary: Option<&str>) -> u64 {
    summary.map_or(0, |text| of_chars("human".len() + text.chars().count()))
}

/// The tokens of one message.
pub(super) fn of_message(message: &Message) -> u64 {
    let (role, more) = match message {
        Message::System(_) => ("system", 0),
        Message::Human(_) => ("human", 0),
        Message::Assistant(reply) => ("ai", call_chars(reply)),
        Message::Tool(result) => ("tool", result.name.chars().count() + result.tool_call_id.chars().count()),
    };
    of_chars(role.len() + message.content().chars().count() + more).saturating_add(of_images(message))
}

fn of_images(message: &Message) -> u64 {
    let images = match message {
        Message::Human(human) => human.images.len(),
        Message::System(_) | Message::Assistant(_) | Message::Tool(_) => 0,
    };
    u64::try_from(images).unwrap_or(u64::MAX).saturating_mul(TOKENS_PER_IMAGE)
}

/// The characters that so many tokens stand for.
pub(super) const fn chars_of(tokens: u64) -> usize {
    let chars = tokens.saturating_mul(CHARS_PER_TOKEN);
    if chars > usize::MAX as u64 { usize::MAX } else { chars as usize }
}

fn of_chars(chars: usize) -> u64 {
    u64::try_from(chars).unwrap_or(u64::MAX).div_ceil(CHARS_PER_TOKEN).saturating_add(TOKENS_PER_MESSAGE)
}

fn call_chars(reply: &AssistantMessage) -> usize {
    let chars = |call: &ToolCall| {
        let args = match &call.args {
            ToolArgs::Object(map) => serde_json::to_string(map).map_or(0, |json| json.chars().count()),
            ToolArgs::Invalid(text) => text.chars().count(),
        };
        call.id.chars().count() + call.name.chars().count() + args
    };
    reply.tool_calls.iter().map(chars).sum()
}
