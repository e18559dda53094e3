//! One reply, put together from the parts of a stream or from one whole answer.

use std::collections::BTreeSet;

use domain::{
    limits::MODEL_REPLY_BYTES_MAX,
    message::{AssistantMessage, ResponseMetadata, ToolArgs, ToolCall},
    usage::Usage,
};
use serde_json::{Map, Value, json};

use super::request::{CALL_ID_KEY, SIGNATURE_KEY};
use crate::models::{
    Delta, Deltas,
    answer::Assemble,
    call_id::free_id,
    dialect::{FINISH_CALLS, FINISH_FILTER, FINISH_LENGTH, FINISH_STOP, NATIVE_FINISH_KEY, REFUSAL_KEY},
    fault::Fault,
    layout::Layout,
    refusal::{Refusal, is_said},
    torn,
};

/// What every part costs against a reply's bound, however little it says.
const PART_BYTES: usize = 64;
/// Why the provider stopped for safety (chain facts §2.11).
const SAFETY_REASONS: &[&str] = &[
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
];
/// The model's reply could not be read by its own provider: another try is another reply.
const SPOILT_REASONS: &[&str] =
    &["MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"];
/// The provider lost sight of its own thoughts, which another try does not bring back.
const UNSIGNED_REASON: &str = "MISSING_THOUGHT_SIGNATURE";

#[derive(Debug)]
enum Part {
    Text {
        text: String,
        signature: Option<Value>,
    },
    /// What the model thought, in so far as the provider shows it. Goes back as it came.
    Thought {
        text: String,
        signature: Option<Value>,
    },
    Call {
        id: Option<String>,
        name: String,
        args: ToolArgs,
        signature: Option<Value>,
    },
}

#[derive(Debug, Default)]
pub(super) struct Assembler {
    parts: Vec<Part>,
    id: Option<String>,
    model_name: Option<String>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
    /// Why the provider did not even show the model what was asked.
    block_reason: Option<String>,
    counts: Counts,
    has_candidate: bool,
    is_torn: bool,
    bytes: usize,
}

/// What the provider counted so far. A later report is about all of the reply.
#[derive(Debug, Default)]
struct Counts {
    prompt: Option<u64>,
    tool_prompt: Option<u64>,
    cached: Option<u64>,
    candidates: Option<u64>,
    thoughts: Option<u64>,
    total: Option<u64>,
}

impl Counts {
    fn add(&mut self, usage: &Value) {
        for (count, key) in [
            (&mut self.prompt, "promptTokenCount"),
            (&mut self.tool_prompt, "toolUsePromptTokenCount"),
            (&mut self.cached, "cachedContentTokenCount"),
            (&mut self.candidates, "candidatesTokenCount"),
            (&mut self.thoughts, "thoughtsTokenCount"),
            (&mut self.total, "totalTokenCount"),
        ] {
            *count = usage.get(key).and_then(Value::as_u64).or(*count);
        }
    }

    /// Cached tokens are a part of the prompt; thoughts are none of the candidates. Without counts
    /// there is no report.
    fn reported(&self) -> Option<Usage> {
        let sum = |one: Option<u64>, other: Option<u64>| {
            one.unwrap_or_default().saturating_add(other.unwrap_or_default())
        };
        let sent = sum(self.prompt, self.tool_prompt);
        let made = sum(self.candidates, self.thoughts);
        Usage::reported(sent, made, self.total.unwrap_or_default(), self.cached.unwrap_or_default())
    }
}

impl Assemble for Assembler {
    /// Token counts can follow.
    fn is_complete(&self) -> bool {
        self.finish_reason.is_some() || self.block_reason.is_some()
    }

    /// Only the end of the stream says so.
    fn is_ended(&self) -> bool {
        false
    }

    fn add(&mut self, chunk: &Value, is_torn: bool, deltas: Deltas<'_>) -> Result<(), Fault> {
        if chunk.get("error").is_some_and(is_said) {
            return Err(Fault::Provider(Refusal::from_value(chunk)));
        }
        self.is_torn |= is_torn;
        let text_at = |pointer: &str| chunk.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        self.id = text_at("/responseId").or_else(|| self.id.take());
        self.model_name = text_at("/modelVersion").or_else(|| self.model_name.take());
        self.block_reason = blocked(chunk).or_else(|| self.block_reason.take());
        self.counts.add(&chunk["usageMetadata"]);
        let Some(candidate) = first_candidate(chunk) else { return Ok(()) };
        self.has_candidate = true;
        for part in candidate.pointer("/content/parts").and_then(Value::as_array).into_iter().flatten() {
            self.add_part(part, deltas);
        }
        let said =
            |key: &str| candidate.get(key)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        self.finish_reason = said("finishReason").or_else(|| self.finish_reason.take());
        self.finish_message = said("finishMessage").or_else(|| self.finish_message.take());
        if self.bytes > MODEL_REPLY_BYTES_MAX { Err(Fault::TooLarge) } else { Ok(()) }
    }

    /// One object, or a list of what would have been events.
    fn add_whole(&mut self, answer: &Value, is_torn: bool, deltas: Deltas<'_>) -> Result<bool, Fault> {
        let chunks = answer.as_array().map_or(std::slice::from_ref(answer), Vec::as_slice);
        let mut is_reply = false;
        for chunk in chunks {
            self.add(chunk, is_torn, deltas)?;
            is_reply |= chunk.get("candidates").is_some() || chunk.get("promptFeedback").is_some();
        }
        Ok(is_reply)
    }

    fn finish(self: Box<Self>, source: &str) -> Result<AssistantMessage, Fault> {
        let mut this = *self;
        if let Some(fault) = this.fault() {
            return Err(fault);
        }
        let mut additional_kwargs = Map::new();
        let (mut content, tool_calls) = this.put_together(&mut additional_kwargs, source);
        if let Some(reason) = &this.block_reason {
            let refusal = format!("The provider blocked the prompt ({reason}).");
            additional_kwargs.insert(REFUSAL_KEY.into(), refusal.clone().into());
            content = if content.is_empty() { refusal } else { content };
        }
        let native = this.block_reason.as_ref().or(this.finish_reason.as_ref());
        let is_usual = |reason: &str| matches!(reason, "STOP" | "MAX_TOKENS");
        if let Some(native) = native.filter(|reason| !is_usual(reason)) {
            additional_kwargs.insert(NATIVE_FINISH_KEY.into(), native.clone().into());
        }
        let finish_reason = match this.block_reason {
            Some(_) => Some(FINISH_FILTER.to_owned()),
            None => this.finish_reason.map(|reason| plain_reason(&reason, !tool_calls.is_empty())),
        };
        Ok(AssistantMessage {
            content,
            id: this.id,
            tool_calls,
            response_metadata: ResponseMetadata { finish_reason, model_name: this.model_name },
            usage: this.counts.reported(),
            additional_kwargs,
        })
    }
}

impl Assembler {
    /// Why this is no reply, if it is none.
    fn fault(&self) -> Option<Fault> {
        let Some(reason) = self.finish_reason.as_deref() else {
            return (!self.has_candidate && self.block_reason.is_none()).then_some(Fault::Empty);
        };
        let told = match &self.finish_message {
            Some(message) => format!("{reason}: {message}"),
            None => reason.to_owned(),
        };
        let told =
            domain::text::prefix(&domain::text::one_line(&told), domain::limits::ERROR_DETAIL_CHARS_MAX);
        if SPOILT_REASONS.contains(&reason) {
            return Some(Fault::GaveUp { reason: told.text });
        }
        (reason == UNSIGNED_REASON).then_some(Fault::Unsupported { reason: told.text })
    }

    fn add_part(&mut self, part: &Value, deltas: Deltas<'_>) {
        let signature = part.get(SIGNATURE_KEY).filter(|signature| is_said(signature)).cloned();
        self.bytes += PART_BYTES + signature.as_ref().map_or(0, |signature| signature.to_string().len());
        if let Some(call) = part.get("functionCall") {
            self.add_call(call, signature, deltas);
        } else if let Some(text) = part.get("text").and_then(Value::as_str) {
            self.bytes += text.len();
            let is_thought = part.get("thought").and_then(Value::as_bool).unwrap_or(false);
            if !is_thought && !text.is_empty() {
                deltas(Delta::Text(if self.is_torn { torn::mend(text) } else { text.to_owned() }));
            }
            self.add_text(text, is_thought, signature);
        }
    }

    fn add_call(&mut self, call: &Value, signature: Option<Value>, deltas: Deltas<'_>) {
        let text_at = |key: &str| call.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let name = text_at("name").unwrap_or_default().to_owned();
        if !name.is_empty() {
            deltas(Delta::ToolCallStarted(name.clone()));
        }
        let args = match call.get("args") {
            Some(Value::Object(args)) => ToolArgs::Object(args.clone()),
            Some(Value::Null) | None => ToolArgs::Object(Map::new()),
            Some(other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_))) => {
                ToolArgs::Invalid(other.to_string())
            }
        };
        self.bytes += call.to_string().len();
        self.parts.push(Part::Call { id: text_at(CALL_ID_KEY).map(str::to_owned), name, args, signature });
    }

    /// Pieces of one text make one part; what is signed stays a part of its own.
    fn add_text(&mut self, piece: &str, is_thought: bool, signature: Option<Value>) {
        match (self.parts.last_mut(), &signature) {
            (Some(Part::Text { text, signature: None }), None) if !is_thought => text.push_str(piece),
            (Some(Part::Thought { text, signature: None }), None) if is_thought => text.push_str(piece),
            _ if piece.is_empty() && signature.is_none() => {}
            _ if is_thought => self.parts.push(Part::Thought { text: piece.to_owned(), signature }),
            _ => self.parts.push(Part::Text { text: piece.to_owned(), signature }),
        }
    }

    /// The text and the calls, and what only the provider understands in the reply's layout.
    fn put_together(&mut self, kwargs: &mut Map<String, Value>, source: &str) -> (String, Vec<ToolCall>) {
        let is_torn = self.is_torn;
        let mend = |text: String| if is_torn { torn::mend(&text) } else { text };
        let (mut content, mut calls, mut taken) = (String::new(), Vec::new(), BTreeSet::new());
        let mut layout = Layout::default();
        for part in std::mem::take(&mut self.parts) {
            match part {
                Part::Text { text, signature } => {
                    let text = mend(text);
                    layout.add_text(&text, extra(signature, None));
                    content.push_str(&text);
                }
                Part::Thought { text, signature } => {
                    let mut thought = json!({"text": mend(text), "thought": true});
                    if let (Some(signature), Some(fields)) = (signature, thought.as_object_mut()) {
                        fields.insert(SIGNATURE_KEY.into(), signature);
                    }
                    layout.add_opaque(thought);
                }
                Part::Call { id: given, name, args, signature } => {
                    let id = free_id(given.as_deref(), calls.len(), &taken);
                    taken.insert(id.clone());
                    layout.add_call(&id, extra(signature, given));
                    calls.push(ToolCall { id, name, args });
                }
            }
        }
        layout.keep_in(kwargs, source);
        (content, calls)
    }
}

fn extra(signature: Option<Value>, id: Option<String>) -> Map<String, Value> {
    let signature = signature.map(|signature| (SIGNATURE_KEY.to_owned(), signature));
    let id = id.map(|id| (CALL_ID_KEY.to_owned(), id.into()));
    signature.into_iter().chain(id).collect()
}

/// The candidate that counts: the one of index 0, or the first that does not say.
fn first_candidate(chunk: &Value) -> Option<&Value> {
    let mut candidates = chunk.get("candidates")?.as_array()?.iter();
    candidates.find(|candidate| candidate.get("index").and_then(Value::as_u64).unwrap_or(0) == 0)
}

fn blocked(chunk: &Value) -> Option<String> {
    let reason = chunk.pointer("/promptFeedback/blockReason")?.as_str()?;
    let message = chunk.pointer("/promptFeedback/blockReasonMessage").and_then(Value::as_str);
    Some(message.map_or_else(|| reason.to_owned(), |message| format!("{reason}: {message}")))
}

/// Our word for the provider's.
fn plain_reason(reason: &str, has_calls: bool) -> String {
    let plain = match reason {
        "STOP" if has_calls => FINISH_CALLS,
        "STOP" => FINISH_STOP,
        "MAX_TOKENS" => FINISH_LENGTH,
        safety if SAFETY_REASONS.contains(&safety) => FINISH_FILTER,
        other => other,
    };
    plain.to_owned()
}
