//! The body of a request, as strictly as Messages asks: roles take turns, results are the first
//! blocks behind their calls, texts are not empty, and an id stands for one call in all of it.

use std::collections::BTreeSet;

use domain::{
    message::{AssistantMessage, Image, ToolArgs},
    tool_spec::ToolSpec,
};
use serde_json::{Map, Value, json};

use crate::models::{
    ModelRequest,
    conversation::{CallResult, Conversation, Turn},
    dialect::{GO_ON, Wire, function_name},
    layout::{Block, blocks},
};

#[cfg(test)]
mod tests;

/// Tokens of a reply where the settings do not say: the provider has no limit of its own, and all of
/// its present models allow twice as many.
const MAX_TOKENS_DEFAULT: u32 = 16_384;
/// Stands for a result that is empty: an error must say something.
const NO_OUTPUT: &str = "(no output)";

/// The body of a streaming request.
pub(super) fn body(wire: &Wire, request: &ModelRequest) -> Value {
    let Conversation { system, turns } = Conversation::of(&request.messages, wire.supports_vision);
    let mut body = Map::new();
    body.insert("model".into(), wire.model.clone().into());
    body.insert("max_tokens".into(), wire.max_tokens.unwrap_or(MAX_TOKENS_DEFAULT).into());
    if let Some(temperature) = wire.temperature {
        body.insert("temperature".into(), temperature.into());
    }
    if !system.is_empty() {
        body.insert("system".into(), json!([cached(json!({"type": "text", "text": system}))]));
    }
    if !request.tools.is_empty() {
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
    }
    body.insert("messages".into(), messages(&wire.name, &turns));
    body.insert("stream".into(), true.into());
    body.into()
}

fn tool(spec: &ToolSpec) -> Value {
    json!({"name": spec.name, "description": spec.description, "input_schema": spec.parameters})
}

/// Marks what comes before, and this, as worth caching: an agent sends it again with every turn.
fn cached(mut block: Value) -> Value {
    if let Some(fields) = block.as_object_mut() {
        fields.insert("cache_control".into(), json!({"type": "ephemeral"}));
    }
    block
}

fn messages(model: &str, turns: &[Turn<'_>]) -> Value {
    let mut sent = Messages::default();
    for turn in turns {
        match turn {
            Turn::Said(text, images) => {
                sent.add("user", images.iter().map(image_block).chain(text_block(text)));
            }
            Turn::Replied(reply, results) => sent.add_turn(model, reply, results),
        }
    }
    if sent.role() != Some("user") {
        sent.add("user", text_block(GO_ON));
    }
    sent.finish()
}

/// A text, unless there is nothing in it, which the provider refuses.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

fn image_block(image: &Image) -> Value {
    let source = json!({"type": "base64", "media_type": image.media_type, "data": image.data});
    json!({"type": "image", "source": source})
}

#[derive(Debug, Default)]
struct Messages {
    sent: Vec<(&'static str, Vec<Value>)>,
    ids: BTreeSet<String>,
}

impl Messages {
    fn role(&self) -> Option<&'static str> {
        self.sent.last().map(|(role, _)| *role)
    }

    /// Adds blocks to the newest message, or begins one if that is somebody else's.
    fn add(&mut self, role: &'static str, blocks: impl IntoIterator<Item = Value>) {
        let mut blocks: Vec<Value> = blocks.into_iter().collect();
        match self.sent.last_mut() {
            _ if blocks.is_empty() => {}
            Some((newest, sent)) if *newest == role => sent.append(&mut blocks),
            Some(_) | None => self.sent.push((role, blocks)),
        }
    }

    fn add_turn(&mut self, model: &str, reply: &AssistantMessage, results: &[CallResult<'_>]) {
        let ids: Vec<String> = results.iter().map(|result| self.free_id(&result.call.id)).collect();
        let mut said = said_again(&blocks(reply, model), &ids);
        // The provider refuses thinking that nothing follows, which is what a stripped call leaves.
        while said.last().is_some_and(is_thinking) {
            said.pop();
        }
        self.add("assistant", said);
        self.add("user", results.iter().zip(ids).map(|(result, id)| tool_result(result, id)));
    }

    /// The id in the provider's alphabet, numbered where the conversation had it before.
    fn free_id(&mut self, id: &str) -> String {
        let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        let fit: String = id.chars().map(|letter| if is_allowed(letter) { letter } else { '_' }).collect();
        let fit = if fit.is_empty() { "call".to_owned() } else { fit };
        let numbered = (2_u64..).map(|number| format!("{fit}_{number}"));
        let free = std::iter::once(fit.clone()).chain(numbered).find(|id| !self.ids.contains(id));
        let free = free.unwrap_or(fit);
        self.ids.insert(free.clone());
        free
    }

    fn finish(mut self) -> Value {
        if let Some(last) = self.sent.last_mut().and_then(|(_, blocks)| blocks.last_mut()) {
            *last = cached(last.take());
        }
        self.sent.into_iter().map(|(role, blocks)| json!({"role": role, "content": blocks})).collect()
    }
}

fn said_again(blocks: &[Block<'_>], ids: &[String]) -> Vec<Value> {
    let said = blocks.iter().filter_map(|block| match block {
        Block::Opaque(block) => Some((*block).clone()),
        Block::Text(text, _) => text_block(text),
        Block::Call(position, call, _) => {
            let input = match &call.args {
                ToolArgs::Object(args) => args.clone(),
                ToolArgs::Invalid(_) => Map::new(),
            };
            let name = function_name(&call.name);
            Some(json!({"type": "tool_use", "id": ids.get(*position), "name": name, "input": input}))
        }
    });
    said.collect()
}

fn is_thinking(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

fn tool_result(result: &CallResult<'_>, id: String) -> Value {
    let content = if result.content.trim().is_empty() { NO_OUTPUT } else { result.content };
    match result.is_error {
        true => json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": true}),
        false => json!({"type": "tool_result", "tool_use_id": id, "content": content}),
    }
}
