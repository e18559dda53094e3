//! A conversation: who said what, in order.

use contracts::wire::event::EventRecord;
use domain::{
    event::{CALLER_KEY, LEAD_CALLER},
    message::text_of,
    text,
};
use serde_json::Value;

use super::{
    printable,
    tone::{Tone, bold, paint},
    units,
};
use crate::screen::Screen;

/// What a tool returned is cut to this; the JSON form has it whole.
const TOOL_TEXT_CHARS_MAX: usize = 600;
/// A call's arguments.
const ARGS_CHARS_MAX: usize = 160;
/// Before each line of what was said.
const INDENT: &str = "  ";

/// The messages, each with who said it, when, and its place in the thread.
pub(crate) fn messages(screen: Screen, messages: &[EventRecord]) -> String {
    if messages.is_empty() {
        return paint("no messages", Tone::Dim, screen.colours);
    }
    messages.iter().map(|message| one(screen, message)).collect::<Vec<_>>().join("\n\n")
}

fn one(screen: Screen, record: &EventRecord) -> String {
    let content: Value = serde_json::from_str(record.content.get()).unwrap_or_default();
    let place = format!("seq {}  {}", record.seq, units::instant(&record.created_at));
    let (name, tone) = speaker(record, &content);
    let mut lines = vec![format!(
        "{}  {}",
        paint(&bold(&printable::line(&name), screen.colours), tone, screen.colours),
        paint(&place, Tone::Dim, screen.colours)
    )];
    lines.extend(said(record, &content).lines().map(|line| format!("{INDENT}{line}").trim_end().to_owned()));
    lines.extend(calls(&content).map(|call| format!("{INDENT}{}", paint(&call, Tone::Busy, screen.colours))));
    lines.join("\n")
}

/// Who speaks: a person, the lead or whoever else called a model, or a tool.
fn speaker(record: &EventRecord, content: &Value) -> (String, Tone) {
    let metadata: Value = serde_json::from_str(record.metadata.get()).unwrap_or_default();
    let caller = metadata.get(CALLER_KEY).and_then(Value::as_str).unwrap_or(LEAD_CALLER);
    match record.event_type.as_str() {
        "llm.human.input" => ("person".to_owned(), Tone::Good),
        "llm.tool.result" => {
            let tool = content["name"].as_str().filter(|name| !name.is_empty()).unwrap_or("a tool");
            let is_error = content["status"] == "error";
            (format!("tool {tool}"), if is_error { Tone::Bad } else { Tone::Plain })
        }
        "llm.ai.response" | "ai_message" if caller == LEAD_CALLER => ("lead".to_owned(), Tone::Plain),
        "llm.ai.response" | "ai_message" => (caller.to_owned(), Tone::Dim),
        other => (other.to_owned(), Tone::Dim),
    }
}

/// The text: what others record may be a text by itself.
fn said(record: &EventRecord, content: &Value) -> String {
    let text = match content {
        Value::Object(message) => message.get("content").map(text_of).unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            text_of(content)
        }
    };
    let text = text.trim_end();
    if record.event_type != "llm.tool.result" {
        return printable::lines(text);
    }
    let cut = text::prefix(text, TOOL_TEXT_CHARS_MAX);
    let more = if cut.is_truncated {
        format!("… ({} in all)", units::bytes(text.len() as u64))
    } else {
        String::new()
    };
    printable::lines(&format!("{}{more}", cut.text))
}

fn calls(content: &Value) -> impl Iterator<Item = String> {
    let calls = content["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    calls.iter().map(|call| {
        let name = printable::line(call["name"].as_str().unwrap_or_default());
        let args = match &call["args"] {
            Value::String(text) => text.clone(),
            args @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                args.to_string()
            }
        };
        format!("→ {name} {}", printable::short_line(&args, ARGS_CHARS_MAX))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn a_conversation_says_who_said_what() {
        insta::assert_snapshot!(messages(Screen::plain(Some(80)), &samples::messages()));
    }

    #[test]
    fn nothing_said_is_said_so() {
        assert_eq!(messages(Screen::plain(None), &[]), "no messages");
    }
}
