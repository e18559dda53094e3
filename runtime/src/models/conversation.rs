//! A conversation in the strictest order that servers ask for: one leading system text, no assistant
//! first, every call answered once and directly after its reply (field report 85).

use std::{borrow::Cow, collections::VecDeque};

use domain::message::{AssistantMessage, HumanMessage, Image, Message, ToolCall, ToolMessage, ToolStatus};

#[cfg(test)]
mod tests;

/// Stands where a conversation lost its beginning: servers refuse one that an assistant begins.
pub(crate) const LOST_BEGINNING: &str = "(The beginning of this conversation was left out.)";
/// Stands for images that a model could not read.
const LEFT_OUT: &str = "(Images that were sent with this are left out: this model reads none.)";
/// Answers a call that has no recorded result.
pub(crate) const NO_RESULT: &str = "Error: this call has no result; it was interrupted or never ran.";

/// What is said to a model.
#[derive(Debug, PartialEq)]
pub(crate) struct Conversation<'a> {
    /// The framework's words, all of them; empty when there are none.
    pub(crate) system: String,
    /// The rest, oldest first.
    pub(crate) turns: Vec<Turn<'a>>,
}

/// One part of a conversation.
#[derive(Debug, PartialEq)]
pub(crate) enum Turn<'a> {
    /// What a person, or a lead, said.
    Said(Cow<'a, str>, &'a [Image]),
    /// A reply, with what came of each of its calls in their order.
    Replied(&'a AssistantMessage, Vec<CallResult<'a>>),
}

/// A call and what came of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CallResult<'a> {
    pub(crate) call: &'a ToolCall,
    pub(crate) content: &'a str,
    pub(crate) is_error: bool,
}

impl<'a> Conversation<'a> {
    /// The conversation for a model that reads images, or none.
    pub(crate) fn of(messages: &'a [Message], supports_vision: bool) -> Self {
        let mut turns = Vec::new();
        let mut system: Vec<&str> = Vec::new();
        let mut rest = messages.iter().peekable();
        while let Some(message) = rest.next() {
            match message {
                Message::System(message) => system.push(message.content.trim_end()),
                Message::Human(message) => turns.push(said(message, supports_vision)),
                Message::Assistant(reply) => {
                    if turns.is_empty() {
                        turns.push(Turn::Said(LOST_BEGINNING.into(), &[]));
                    }
                    let mut results = VecDeque::new();
                    while let Some(next) =
                        rest.next_if(|next| matches!(next, Message::Tool(_) | Message::System(_)))
                    {
                        match next {
                            Message::Tool(result) => results.push_back(result),
                            Message::System(message) => system.push(message.content.trim_end()),
                            Message::Human(_) | Message::Assistant(_) => {}
                        }
                    }
                    turns.push(Turn::Replied(reply, answered(reply, results)));
                }
                // A result whose call is not in the conversation would be refused.
                Message::Tool(_) => {}
            }
        }
        system.retain(|text| !text.is_empty());
        Self { system: system.join("\n\n"), turns }
    }
}

fn said(message: &HumanMessage, supports_vision: bool) -> Turn<'_> {
    if supports_vision || message.images.is_empty() {
        return Turn::Said(message.content.as_str().into(), &message.images);
    }
    let text = match message.content.trim_end() {
        "" => LEFT_OUT.to_owned(),
        text => format!("{text}\n\n{LEFT_OUT}"),
    };
    Turn::Said(text.into(), &[])
}

/// One result for each call of a reply.
fn answered<'a>(reply: &'a AssistantMessage, mut results: VecDeque<&'a ToolMessage>) -> Vec<CallResult<'a>> {
    let answer = |call: &'a ToolCall| {
        let found = results.iter().position(|result| result.tool_call_id == call.id);
        match found.and_then(|at| results.remove(at)) {
            Some(result) => {
                let is_error = result.status == ToolStatus::Error;
                CallResult { call, content: &result.content, is_error }
            }
            None => CallResult { call, content: NO_RESULT, is_error: true },
        }
    };
    reply.tool_calls.iter().map(answer).collect()
}
