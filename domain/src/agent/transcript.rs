//! Makes a conversation that any provider accepts: every call has an id, a name, complete arguments
//! and its result right after it, and no reply is empty (chain facts §2.6).
//!
//! It is made anew for each request. What was recorded stays as it was.

use std::collections::HashSet;

use serde_json::Map;

use crate::{
    limits::{ERROR_DETAIL_CHARS_MAX, NAME_CHARS_MAX},
    message::{AssistantMessage, Message, ToolArgs, ToolCall, ToolMessage, ToolStatus},
    text,
};

/// Begins the id of a call that came without one.
const SYNTHETIC_ID: &str = "deerflow_synthetic_tool_call";
/// Stands for a name that a model left out.
const NAMELESS: &str = "unknown_tool";
/// The tool whose arguments are long, so that sending them again cut would fail again.
const WRITE_TOOL: &str = "write_file";

/// What the model is told of a call whose result was never recorded.
const INTERRUPTED: &str =
    "Error: this call was interrupted and its result is not known. Check before you repeat it.";

/// Puts results behind the reply that asked for them, in call order, drops results that nothing
/// asked for, and answers calls that were never answered. A repeated id is consumed first in,
/// first out. Replies that say and ask nothing are left out. A clean transcript comes back as it was.
pub(super) fn repaired(messages: Vec<Message>) -> Vec<Message> {
    let mut repaired = Vec::with_capacity(messages.len());
    let mut rest = messages.into_iter().enumerate().peekable();
    while let Some((place, message)) = rest.next() {
        let Message::Assistant(reply) = message else {
            if !matches!(message, Message::Tool(_)) {
                repaired.push(message);
            }
            continue;
        };
        let mut results = Vec::new();
        while let Some((_, Message::Tool(result))) =
            rest.next_if(|(_, next)| matches!(next, Message::Tool(_)))
        {
            results.push(result);
        }
        if reply.tool_calls.is_empty() && reply.content.trim().is_empty() {
            continue;
        }
        add_turn(&mut repaired, reply, results, place);
    }
    repaired
}

/// A reply and one result for each of its calls.
fn add_turn(
    repaired: &mut Vec<Message>,
    mut reply: AssistantMessage,
    mut results: Vec<ToolMessage>,
    place: usize,
) {
    settle_ids(&mut reply.tool_calls, &mut results, place);
    let answers: Vec<Message> = reply.tool_calls.iter().map(|call| answer(call, &mut results)).collect();
    reply.tool_calls.iter_mut().for_each(complete);
    repaired.push(Message::Assistant(reply));
    repaired.extend(answers);
}

/// Gives ids to calls without one. Their results have none either: they are matched by position,
/// and only when each such call of the turn has a result of its own tool.
fn settle_ids(calls: &mut [ToolCall], results: &mut [ToolMessage], place: usize) {
    let taken: HashSet<String> = calls.iter().map(|call| call.id.clone()).collect();
    let mut nameless: Vec<&mut ToolMessage> =
        results.iter_mut().filter(|result| result.tool_call_id.trim().is_empty()).collect();
    let lost: Vec<&mut ToolCall> = calls.iter_mut().filter(|call| call.id.trim().is_empty()).collect();
    let mut matches = Vec::with_capacity(lost.len());
    for call in &lost {
        let fits = |(at, result): &(usize, &&mut ToolMessage)| {
            !matches.contains(at) && is_compatible(&call.name, &result.name)
        };
        match nameless.iter().enumerate().find(fits).map(|(at, _)| at) {
            Some(at) => matches.push(at),
            None => break,
        }
    }
    let all_have_one = matches.len() == lost.len();
    for (position, call) in lost.into_iter().enumerate() {
        call.id = synthetic_id(place, position, &taken);
        if let Some(at) = matches.get(position).filter(|_| all_have_one)
            && let Some(result) = nameless.get_mut(*at)
        {
            result.tool_call_id.clone_from(&call.id);
        }
    }
}

/// A call and a result whose names say nothing against each other.
fn is_compatible(call: &str, result: &str) -> bool {
    call.trim().is_empty() || result.trim().is_empty() || call == result
}

fn synthetic_id(place: usize, position: usize, taken: &HashSet<String>) -> String {
    let mut id = format!("{SYNTHETIC_ID}_{place}_call_{position}");
    while taken.contains(&id) {
        id.push('x');
    }
    id
}

/// A call without a name gets one, and arguments that are not complete become none: nothing was run
/// with them, and its answer says so.
fn complete(call: &mut ToolCall) {
    if call.name.trim().is_empty() {
        NAMELESS.clone_into(&mut call.name);
    }
    if matches!(call.args, ToolArgs::Invalid(_)) {
        call.args = ToolArgs::Object(Map::new());
    }
}

fn answer(call: &ToolCall, results: &mut Vec<ToolMessage>) -> Message {
    match results.iter().position(|result| result.tool_call_id == call.id) {
        Some(at) => Message::Tool(results.remove(at)),
        None => Message::Tool(ToolMessage {
            content: unanswered(call),
            tool_call_id: call.id.clone(),
            name: call.name.clone(),
            status: ToolStatus::Error,
            ..ToolMessage::default()
        }),
    }
}

/// What the model is told of a call without a result: why there is none, and what to do.
fn unanswered(call: &ToolCall) -> String {
    if call.name.trim().is_empty() {
        return "Error: this call names no tool, and nothing was run. Call one of the available tools by its name."
            .to_owned();
    }
    let ToolArgs::Invalid(raw) = &call.args else { return INTERRUPTED.to_owned() };
    let problem = serde_json::from_str::<Map<String, serde_json::Value>>(raw).err();
    let problem = problem.map_or_else(|| "they are not an object".to_owned(), |error| error.to_string());
    let problem = text::prefix(&problem, ERROR_DETAIL_CHARS_MAX).text;
    if call.name == WRITE_TOOL {
        return format!(
            "Error: the arguments are not a complete JSON object ({problem}). Nothing was written. Do not send the \
             same content again: answer with it as text, or write it in smaller parts."
        );
    }
    let name = text::prefix(&call.name, NAME_CHARS_MAX).text;
    format!(
        "Error: the arguments of {name} are not a complete JSON object ({problem}). Nothing was run. Call it again \
         with complete arguments."
    )
}

#[cfg(test)]
mod tests;
