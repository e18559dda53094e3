//! One reply, put together from the chunks of a stream or from one whole answer.

use domain::{
    limits::MODEL_REPLY_BYTES_MAX,
    message::{AssistantMessage, ResponseMetadata},
    usage::Usage,
};
use serde_json::{Map, Value};

use super::{
    calls::{Calls, Fragment},
    request::{CALL_EXTRAS_KEY, OPAQUE_FIELDS},
};
use crate::models::{
    Delta, Deltas,
    answer::Assemble,
    dialect::{OPAQUE_SOURCE_KEY, REFUSAL_KEY, doubt_last_call},
    fault::Fault,
    refusal::{Refusal, is_said},
    torn,
};

#[derive(Debug, Default)]
pub(super) struct Assembler {
    content: String,
    refusal: String,
    /// Fields that only the provider understands and wants to see again, such as its reasoning.
    opaque: Map<String, Value>,
    calls: Calls,
    id: Option<String>,
    model_name: Option<String>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    has_choice: bool,
    is_torn: bool,
    /// The stream said that nothing follows.
    is_done: bool,
    chunks: u64,
    bytes: usize,
}

impl Assemble for Assembler {
    /// Only token counts can follow.
    fn is_complete(&self) -> bool {
        self.finish_reason.is_some()
    }

    fn is_ended(&self) -> bool {
        self.is_done
    }

    fn add_done(&mut self) {
        self.is_done = true;
    }

    fn add(&mut self, chunk: &Value, is_torn: bool, deltas: Deltas<'_>) -> Result<(), Fault> {
        if chunk.get("error").is_some_and(is_said) {
            return Err(Fault::Provider(Refusal::from_value(chunk)));
        }
        self.is_torn |= is_torn;
        self.chunks += 1;
        self.add_heading(chunk);
        let Some(choice) = first_choice(chunk) else { return Ok(()) };
        self.has_choice = true;
        self.add_choice(choice, deltas);
        if self.bytes > MODEL_REPLY_BYTES_MAX { Err(Fault::TooLarge) } else { Ok(()) }
    }

    fn add_whole(&mut self, answer: &Value, is_torn: bool, deltas: Deltas<'_>) -> Result<bool, Fault> {
        if answer.is_array() {
            return Err(Fault::Provider(Refusal::from_value(answer)));
        }
        self.add(answer, is_torn, deltas)?;
        Ok(answer.get("choices").is_some())
    }

    fn finish(self: Box<Self>, source: &str) -> Result<AssistantMessage, Fault> {
        let this = *self;
        if !this.has_choice {
            return Err(Fault::Empty);
        }
        let mend = |text: String| if this.is_torn { torn::mend(&text) } else { text };
        let (content, refusal) = (mend(this.content), mend(this.refusal));
        let mut additional_kwargs = Map::new();
        for (field, value) in this.opaque {
            let value = match value {
                Value::String(text) => Value::String(mend(text)),
                other @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_)) => other,
            };
            additional_kwargs.insert(field, value);
        }
        let (mut tool_calls, extras) = this.calls.finish(this.is_torn);
        doubt_last_call(&mut tool_calls, this.finish_reason.as_deref());
        if !extras.is_empty() {
            additional_kwargs.insert(CALL_EXTRAS_KEY.into(), extras.into());
        }
        if !additional_kwargs.is_empty() {
            additional_kwargs.insert(OPAQUE_SOURCE_KEY.into(), source.into());
        }
        if !refusal.is_empty() {
            additional_kwargs.insert(REFUSAL_KEY.into(), refusal.clone().into());
        }
        Ok(AssistantMessage {
            content: if content.is_empty() { refusal } else { content },
            id: this.id,
            tool_calls,
            response_metadata: ResponseMetadata {
                finish_reason: this.finish_reason,
                model_name: this.model_name,
            },
            usage: this.usage,
            additional_kwargs,
        })
    }
}

impl Assembler {
    fn add_heading(&mut self, chunk: &Value) {
        let text_at = |key: &str| chunk.get(key)?.as_str().filter(|text| !text.is_empty());
        if self.id.is_none() {
            self.id = text_at("id").map(str::to_owned);
        }
        if let Some(model) = text_at("model") {
            self.model_name = Some(model.to_owned());
        }
        if let Some(usage) = chunk.get("usage").and_then(reported) {
            self.usage = Some(usage);
        }
    }

    fn add_choice(&mut self, choice: &Value, deltas: Deltas<'_>) {
        let piece = |key: &str| choice.get(key).filter(|piece| piece.is_object());
        match (piece("delta"), piece("message")) {
            (Some(delta), _) => self.add_piece(delta, false, deltas),
            // Some servers end a stream with the whole message once more.
            (None, Some(message)) if self.is_blank() => self.add_piece(message, true, deltas),
            (None, Some(_) | None) => {}
        }
        match choice.get("finish_reason") {
            Some(Value::String(reason)) if !reason.is_empty() => self.finish_reason = Some(reason.clone()),
            Some(reason @ (Value::Number(_) | Value::Bool(_))) => {
                self.finish_reason = Some(reason.to_string())
            }
            Some(Value::String(_) | Value::Null | Value::Array(_) | Value::Object(_)) | None => {}
        }
    }

    const fn is_blank(&self) -> bool {
        self.content.is_empty() && self.refusal.is_empty() && self.calls.is_empty()
    }

    fn add_piece(&mut self, piece: &Value, is_whole: bool, deltas: Deltas<'_>) {
        for &field in OPAQUE_FIELDS {
            if let Some(value) = piece.get(field).filter(|value| is_said(value)) {
                self.add_opaque(field, value);
            }
        }
        let text = piece.get("content").map(streamed_text).unwrap_or_default();
        if !text.is_empty() {
            self.bytes += text.len();
            self.content.push_str(&text);
            deltas(Delta::Text(if self.is_torn { torn::mend(&text) } else { text }));
        }
        if let Some(refusal) = piece.get(REFUSAL_KEY).and_then(Value::as_str) {
            self.bytes += refusal.len();
            self.refusal.push_str(refusal);
        }
        match piece.get("tool_calls") {
            Some(Value::Array(fragments)) => {
                fragments.iter().for_each(|fragment| self.add_fragment(fragment, is_whole, deltas));
            }
            Some(fragment @ Value::Object(_)) => self.add_fragment(fragment, is_whole, deltas),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
        }
        if let Some(call @ Value::Object(_)) = piece.get("function_call") {
            self.add_fragment(call, is_whole, deltas);
        }
    }

    fn add_fragment(&mut self, fragment: &Value, is_whole: bool, deltas: Deltas<'_>) {
        let added = self.calls.add(Fragment::read(fragment, is_whole), self.chunks);
        self.bytes += added.bytes;
        if let Some(name) = added.started {
            deltas(Delta::ToolCallStarted(name));
        }
    }

    fn add_opaque(&mut self, field: &str, value: &Value) {
        self.bytes += value.as_str().map_or_else(|| value.to_string().len(), str::len);
        match (self.opaque.get_mut(field), value) {
            (Some(Value::String(kept)), Value::String(piece)) => kept.push_str(piece),
            (Some(Value::Array(kept)), Value::Array(more)) => kept.extend(more.iter().cloned()),
            (Some(_) | None, _) => {
                self.opaque.insert(field.to_owned(), value.clone());
            }
        }
    }
}

/// The choice that counts: the one of index 0, or the first that does not say.
fn first_choice(chunk: &Value) -> Option<&Value> {
    let mut choices = chunk.get("choices")?.as_array()?.iter();
    choices.find(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0)
}

/// The text of a piece of content: a string, or blocks whose texts follow each other.
fn streamed_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block.as_str().or_else(|| block.get("text")?.as_str())).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// What the provider counted, under any of the names in use. Without counts there is no report.
fn reported(usage: &Value) -> Option<Usage> {
    let count = |value: &Value| value.as_u64();
    let first = |keys: [&str; 2]| keys.iter().find_map(|key| usage.get(key).and_then(count)).unwrap_or(0);
    let cached = usage
        .pointer("/prompt_tokens_details/cached_tokens")
        .or_else(|| usage.get("prompt_cache_hit_tokens"))
        .and_then(count)
        .unwrap_or(0);
    let total = usage.get("total_tokens").and_then(count).unwrap_or(0);
    Usage::reported(
        first(["prompt_tokens", "input_tokens"]),
        first(["completion_tokens", "output_tokens"]),
        total,
        cached,
    )
}
