//! One reply, put together from the blocks of a stream or from one whole message.

use std::collections::BTreeSet;

use domain::{
    limits::MODEL_REPLY_BYTES_MAX,
    message::{AssistantMessage, ResponseMetadata, ToolArgs, ToolCall},
    usage::Usage,
};
use serde_json::{Map, Value, json};

use crate::models::{
    Delta, Deltas,
    answer::Assemble,
    call_id::free_id,
    dialect::{FINISH_CALLS, FINISH_LENGTH, FINISH_STOP, NATIVE_FINISH_KEY, REFUSAL_KEY, doubt_last_call},
    fault::Fault,
    layout::Layout,
    refusal::{Refusal, is_said},
    torn,
};

/// What every block costs against a reply's bound, however little it says.
const BLOCK_BYTES: usize = 64;

#[derive(Debug)]
enum Part {
    Text(String),
    Call {
        id: Option<String>,
        name: String,
        /// The arguments, as far as they came as text.
        json: String,
        /// The arguments that came with the beginning; some servers send them only there.
        input: Map<String, Value>,
    },
    Thinking {
        thinking: String,
        signature: String,
    },
    /// Thinking that the provider shows to nobody. Goes back as it came.
    Redacted(Value),
    /// A block of a kind that is not asked for.
    Other,
}

#[derive(Debug, Default)]
pub(super) struct Assembler {
    /// Each with the index that the provider gave it.
    parts: Vec<(u64, Part)>,
    id: Option<String>,
    model_name: Option<String>,
    stop_reason: Option<String>,
    explanation: String,
    counts: Counts,
    has_message: bool,
    is_ended: bool,
    is_torn: bool,
    bytes: usize,
}

/// What the provider counted so far. A later report is about all of the reply.
#[derive(Debug, Default)]
struct Counts {
    /// Tokens that were neither read from the cache nor written to it.
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    output: Option<u64>,
}

impl Counts {
    fn add(&mut self, usage: &Value) {
        for (count, key) in [
            (&mut self.input, "input_tokens"),
            (&mut self.cache_read, "cache_read_input_tokens"),
            (&mut self.cache_write, "cache_creation_input_tokens"),
            (&mut self.output, "output_tokens"),
        ] {
            *count = usage.get(key).and_then(Value::as_u64).or(*count);
        }
    }

    /// Without counts there is no report.
    fn reported(&self) -> Option<Usage> {
        let [input, read, write, output] =
            [self.input, self.cache_read, self.cache_write, self.output].map(Option::unwrap_or_default);
        let sent = input.saturating_add(read).saturating_add(write);
        Usage::reported(sent, output, 0, read)
    }
}

impl Assemble for Assembler {
    fn is_complete(&self) -> bool {
        self.stop_reason.is_some()
    }

    fn is_ended(&self) -> bool {
        self.is_ended
    }

    fn add(&mut self, event: &Value, is_torn: bool, deltas: Deltas<'_>) -> Result<(), Fault> {
        if event.get("error").is_some_and(is_said) {
            return Err(Fault::Provider(Refusal::from_value(event)));
        }
        self.is_torn |= is_torn;
        let index = event.get("index").and_then(Value::as_u64);
        match event["type"].as_str() {
            Some("message_start") => self.add_heading(&event["message"], deltas),
            Some("content_block_start") => {
                let index = index.unwrap_or(u64::try_from(self.parts.len()).unwrap_or(u64::MAX));
                self.begin(index, &event["content_block"], deltas);
            }
            Some("content_block_delta") => self.add_delta(index, &event["delta"], deltas),
            Some("message_delta") => self.add_ending(&event["delta"]),
            Some("message_stop") => self.is_ended = true,
            // Pings, the ends of blocks, and what is yet to be invented.
            Some(_) | None => {}
        }
        self.counts.add(&event["usage"]);
        if self.bytes > MODEL_REPLY_BYTES_MAX { Err(Fault::TooLarge) } else { Ok(()) }
    }

    fn add_whole(&mut self, answer: &Value, is_torn: bool, deltas: Deltas<'_>) -> Result<bool, Fault> {
        self.add(answer, is_torn, deltas)?;
        if !answer["content"].is_array() {
            return Ok(false);
        }
        self.add_heading(answer, deltas);
        Ok(true)
    }

    fn finish(self: Box<Self>, source: &str) -> Result<AssistantMessage, Fault> {
        let mut this = *self;
        if !this.has_message {
            return Err(Fault::Empty);
        }
        if this.stop_reason.as_deref() == Some("pause_turn") {
            let reason = "pause_turn, which only tools at the provider cause; take them out of the settings";
            return Err(Fault::Unsupported { reason: reason.to_owned() });
        }
        let mut additional_kwargs = Map::new();
        let (content, mut tool_calls) = this.put_together(&mut additional_kwargs, source);
        let finish_reason = this.stop_reason.as_deref().map(plain_reason);
        doubt_last_call(&mut tool_calls, finish_reason);
        if let Some(reason) = this.stop_reason.as_deref().filter(|reason| !is_usual(reason)) {
            additional_kwargs.insert(NATIVE_FINISH_KEY.into(), reason.into());
        }
        if !this.explanation.is_empty() {
            additional_kwargs.insert(REFUSAL_KEY.into(), this.explanation.clone().into());
        }
        Ok(AssistantMessage {
            content: if content.is_empty() { this.explanation } else { content },
            id: this.id,
            tool_calls,
            response_metadata: ResponseMetadata {
                finish_reason: finish_reason.map(str::to_owned),
                model_name: this.model_name,
            },
            usage: this.counts.reported(),
            additional_kwargs,
        })
    }
}

impl Assembler {
    /// What a message says of itself; of a whole message, all of it.
    fn add_heading(&mut self, message: &Value, deltas: Deltas<'_>) {
        self.has_message = true;
        let text_at = |key: &str| {
            message.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        self.id = text_at("id");
        self.model_name = text_at("model");
        self.counts.add(&message["usage"]);
        for block in message["content"].as_array().into_iter().flatten() {
            self.begin(u64::try_from(self.parts.len()).unwrap_or(u64::MAX), block, deltas);
        }
        self.add_ending(message);
    }

    fn add_ending(&mut self, ending: &Value) {
        if let Some(reason) = ending["stop_reason"].as_str().filter(|reason| !reason.is_empty()) {
            self.stop_reason = Some(reason.to_owned());
        }
        if let Some(text) = ending.pointer("/stop_details/explanation").and_then(Value::as_str) {
            self.explanation = text.to_owned();
        }
    }

    fn begin(&mut self, index: u64, block: &Value, deltas: Deltas<'_>) {
        self.has_message = true;
        let text_at = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        self.bytes += BLOCK_BYTES;
        let part = match block["type"].as_str() {
            Some("text") => Part::Text(String::new()),
            Some("tool_use") => {
                let name = text_at("name").to_owned();
                if !name.is_empty() {
                    deltas(Delta::ToolCallStarted(name.clone()));
                }
                let input = block["input"].as_object().cloned().unwrap_or_default();
                let id = block["id"].as_str().filter(|id| !id.is_empty()).map(str::to_owned);
                self.bytes += Value::from(input.clone()).to_string().len() + name.len();
                Part::Call { id, name, json: String::new(), input }
            }
            Some("thinking") => {
                let (thinking, signature) = (text_at("thinking").to_owned(), text_at("signature").to_owned());
                self.bytes += thinking.len() + signature.len();
                Part::Thinking { thinking, signature }
            }
            Some("redacted_thinking") => {
                self.bytes += text_at("data").len();
                Part::Redacted(block.clone())
            }
            Some(_) | None => Part::Other,
        };
        self.parts.push((index, part));
        self.add_text(text_at("text"), deltas);
    }

    fn add_delta(&mut self, index: Option<u64>, delta: &Value, deltas: Deltas<'_>) {
        let known = self.parts.iter().rposition(|(known, _)| index.is_none_or(|index| index == *known));
        if known.is_none() {
            self.begin(index.unwrap_or_default(), &missed_beginning(delta), deltas);
        }
        let at = known.unwrap_or(self.parts.len().saturating_sub(1));
        let Some((_, part)) = self.parts.get_mut(at) else { return };
        let (kept, key) = match (part, delta["type"].as_str()) {
            (Part::Text(text), Some("text_delta")) => (text, "text"),
            (Part::Call { json, .. }, Some("input_json_delta")) => (json, "partial_json"),
            (Part::Thinking { thinking, .. }, Some("thinking_delta")) => (thinking, "thinking"),
            (Part::Thinking { signature, .. }, Some("signature_delta")) => (signature, "signature"),
            _ => return,
        };
        let piece = delta.get(key).and_then(Value::as_str).unwrap_or_default();
        self.bytes += piece.len();
        kept.push_str(piece);
        if key == "text" && !piece.is_empty() {
            deltas(Delta::Text(if self.is_torn { torn::mend(piece) } else { piece.to_owned() }));
        }
    }

    /// Adds to the text that was just begun.
    fn add_text(&mut self, piece: &str, deltas: Deltas<'_>) {
        if let Some((_, Part::Text(text))) = self.parts.last_mut()
            && !piece.is_empty()
        {
            self.bytes += piece.len();
            text.push_str(piece);
            deltas(Delta::Text(if self.is_torn { torn::mend(piece) } else { piece.to_owned() }));
        }
    }

    /// The text and the calls, and what only the provider understands in the reply's layout.
    fn put_together(&mut self, kwargs: &mut Map<String, Value>, source: &str) -> (String, Vec<ToolCall>) {
        let is_torn = self.is_torn;
        let mend = |text: String| if is_torn { torn::mend(&text) } else { text };
        let (mut content, mut calls, mut taken) = (String::new(), Vec::new(), BTreeSet::new());
        let mut layout = Layout::default();
        for (_, part) in std::mem::take(&mut self.parts) {
            match part {
                Part::Text(text) => {
                    let text = mend(text);
                    layout.add_text(&text, Map::new());
                    content.push_str(&text);
                }
                Part::Call { id, name, json, input } => {
                    let id = free_id(id.as_deref(), calls.len(), &taken);
                    taken.insert(id.clone());
                    layout.add_call(&id, Map::new());
                    let args = match json.trim().is_empty() {
                        true => ToolArgs::Object(input),
                        false => ToolArgs::parse(&mend(json)),
                    };
                    calls.push(ToolCall { id, name, args });
                }
                Part::Thinking { thinking, signature } => {
                    let thinking = mend(thinking);
                    // The provider refuses thinking that it did not sign.
                    if !signature.is_empty() {
                        layout.add_opaque(
                            json!({"type": "thinking", "thinking": thinking, "signature": signature}),
                        );
                    }
                }
                Part::Redacted(block) => layout.add_opaque(block),
                Part::Other => {}
            }
        }
        layout.keep_in(kwargs, source);
        (content, calls)
    }
}

/// The beginning of a block whose own beginning was not sent.
fn missed_beginning(delta: &Value) -> Value {
    let kind = match delta["type"].as_str() {
        Some("input_json_delta") => "tool_use",
        Some("thinking_delta" | "signature_delta") => "thinking",
        Some(_) | None => "text",
    };
    json!({"type": kind})
}

/// Our word for the provider's.
fn plain_reason(reason: &str) -> &str {
    match reason {
        "end_turn" | "stop_sequence" => FINISH_STOP,
        "tool_use" => FINISH_CALLS,
        "max_tokens" | "model_context_window_exceeded" => FINISH_LENGTH,
        other => other,
    }
}

/// Whether our word says all that the provider's does.
fn is_usual(reason: &str) -> bool {
    matches!(reason, "end_turn" | "tool_use" | "max_tokens") || plain_reason(reason) == reason
}
