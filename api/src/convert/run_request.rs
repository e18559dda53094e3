//! What a client asks of a run.
//!
//! Values out of the range of a limit are clamped where the limit is known, not refused (facts
//! §1.9). Everything else that cannot be obeyed is refused by name.

use contracts::wire::{
    problem::ProblemCode,
    run::{Configurable, CreateRun, InputMessage, MultitaskStrategy, StreamModes},
};
use domain::{
    ids::{InvalidId, SubagentType},
    message::{HumanMessage, Image, text_of},
};
use runtime::RunRequest;
use serde_json::{Map, Value};

use crate::error::{Answer, ApiError};

/// The only lead agent.
const LEAD: &str = "lead";
/// What a stream may be asked to show (facts §8). It shows the recorded events in any case.
const STREAM_MODES: [&str; 8] =
    ["values", "messages-tuple", "updates", "debug", "tasks", "checkpoints", "custom", "events"];
/// Keys that some clients send and that mean nothing here (facts §8): they are let pass.
const WITHOUT_MEANING: [&str; 6] =
    ["mode", "thinking_enabled", "reasoning_effort", "is_plan_mode", "agent_name", "is_bootstrap"];
/// Who somebody is and what is at work is decided by the server (facts §4.3 and §8). Clients that
/// send these keys are not obeyed.
const IDENTITY: [&str; 13] = [
    "thread_id",
    "run_id",
    "user_id",
    "user_role",
    "oauth_provider",
    "oauth_id",
    "channel_user_id",
    "is_internal",
    "authz_attributes",
    "is_subagent",
    "agent_id",
    "trace_id",
    "checkpoint_id",
];
/// Types that a request may name: more than there can be.
const ALLOWED_TYPES_MAX: usize = 512;
/// A secret that some clients put where everybody would see it (facts §8).
const SECRET_KEY: &str = "auth_token";

/// The type of an image block.
const IMAGE_BLOCK: &str = "image_url";
/// What a message may be.
const CONTENT_RULE: &str = "text, or a list of text blocks and image_url blocks";

/// The request, checked as far as it can be without knowing the thread.
pub(crate) fn from_wire(body: CreateRun) -> Answer<RunRequest> {
    check_lead(body.assistant_id.as_deref())?;
    check_strategy(body.multitask_strategy)?;
    check_stream_modes(body.stream_mode.as_ref())?;
    check_metadata(&body.metadata)?;
    let messages = body.input.map(|input| input.messages).unwrap_or_default();
    let keys = merged(body.config.configurable, body.context.unwrap_or_default())?;
    Ok(RunRequest {
        input: messages.iter().enumerate().map(|(at, message)| human(at, message)).collect::<Answer<_>>()?,
        model_name: keys.model_name,
        subagent_enabled: keys.subagent_enabled.unwrap_or(true),
        max_concurrent_subagents: keys.max_concurrent_subagents.map(clamped),
        max_total_subagents: keys.max_total_subagents.map(clamped),
        allowed_subagents: keys.allowed_subagents.map(type_names).transpose()?,
        metadata: body.metadata,
        run_id: None,
    })
}

/// Metadata is shown to everybody who may read the thread, so a secret has no place in it.
pub(crate) fn check_metadata(metadata: &Map<String, Value>) -> Answer<()> {
    if metadata.contains_key(SECRET_KEY) {
        return Err(ApiError::invalid("metadata.auth_token", "left out: metadata is not for secrets"));
    }
    Ok(())
}

fn check_lead(assistant_id: Option<&str>) -> Answer<()> {
    match assistant_id {
        None | Some(LEAD) => Ok(()),
        Some(_) => Err(ApiError::invalid("assistant_id", "lead, the only lead agent")),
    }
}

fn check_strategy(strategy: Option<MultitaskStrategy>) -> Answer<()> {
    match strategy {
        None | Some(MultitaskStrategy::Reject) => Ok(()),
        Some(MultitaskStrategy::Interrupt | MultitaskStrategy::Rollback | MultitaskStrategy::Enqueue) => {
            Err(ApiError::invalid("multitask_strategy", "reject; cancel the other run first, or wait for it"))
        }
    }
}

fn check_stream_modes(modes: Option<&StreamModes>) -> Answer<()> {
    let asked = match modes {
        None => &[],
        Some(StreamModes::One(mode)) => std::slice::from_ref(mode),
        Some(StreamModes::Many(modes)) => modes.as_slice(),
    };
    if asked.iter().all(|mode| STREAM_MODES.contains(&mode.as_str())) {
        return Ok(());
    }
    Err(ApiError::invalid("stream_mode", &format!("among {}", STREAM_MODES.join(", "))))
}

/// The keys of `config.configurable` and `context` together. They may repeat each other, not
/// contradict.
fn merged(configurable: Configurable, context: Configurable) -> Answer<Configurable> {
    check_others("config.configurable", &configurable.others)?;
    check_others("context", &context.others)?;
    Ok(Configurable {
        model_name: either("model_name", configurable.model_name, context.model_name)?,
        subagent_enabled: either(
            "subagent_enabled",
            configurable.subagent_enabled,
            context.subagent_enabled,
        )?,
        max_concurrent_subagents: either(
            "max_concurrent_subagents",
            configurable.max_concurrent_subagents,
            context.max_concurrent_subagents,
        )?,
        max_total_subagents: either(
            "max_total_subagents",
            configurable.max_total_subagents,
            context.max_total_subagents,
        )?,
        allowed_subagents: either(
            "allowed_subagents",
            configurable.allowed_subagents,
            context.allowed_subagents,
        )?,
        others: Map::new(),
    })
}

fn either<T: PartialEq>(key: &str, one: Option<T>, other: Option<T>) -> Answer<Option<T>> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => {
            Err(ApiError::invalid(key, "the same in config.configurable and in context"))
        }
        (Some(value), _) | (None, Some(value)) => Ok(Some(value)),
        (None, None) => Ok(None),
    }
}

fn check_others(place: &str, others: &Map<String, Value>) -> Answer<()> {
    let is_known =
        |key: &str| key.starts_with("__") || IDENTITY.contains(&key) || WITHOUT_MEANING.contains(&key);
    match others.keys().find(|key| !is_known(key)) {
        None => Ok(()),
        Some(key) => {
            let key: String = key.chars().take(80).collect();
            let known = "model_name, subagent_enabled, max_concurrent_subagents, max_total_subagents, allowed_subagents";
            let detail = format!("unknown field {place}.{key}; the keys that mean something are {known}");
            Err(ApiError::new(ProblemCode::Invalid, detail))
        }
    }
}

/// Names of types. One that nobody has now is never delegated to, and is no mistake: it may be back
/// tomorrow.
fn type_names(names: Vec<String>) -> Answer<Vec<String>> {
    if names.len() > ALLOWED_TYPES_MAX {
        return Err(ApiError::invalid("allowed_subagents", &format!("at most {ALLOWED_TYPES_MAX} names")));
    }
    for name in &names {
        SubagentType::new(name.as_str()).map_err(|error| InvalidId { kind: "allowed_subagents", ..error })?;
    }
    Ok(names)
}

fn clamped(count: i64) -> u32 {
    u32::try_from(count.max(0)).unwrap_or(u32::MAX)
}

/// Facts §8: a malformed message is a bad request.
fn human(at: usize, message: &InputMessage) -> Answer<HumanMessage> {
    let malformed = |field: &str, rule: &str| {
        let detail = format!("invalid input.messages[{at}].{field}: it must be {rule}");
        Err(ApiError::new(ProblemCode::BadRequest, detail))
    };
    if !matches!(message.role.as_str(), "user" | "human") {
        return malformed("role", "user or human");
    }
    let blocks = match &message.content {
        Value::String(_) => &[],
        Value::Array(blocks) => blocks.as_slice(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            return malformed("content", CONTENT_RULE);
        }
    };
    let mut images = Vec::new();
    for block in blocks.iter().filter(|block| !is_text(block)) {
        let Some(url) = image_url(block) else { return malformed("content", CONTENT_RULE) };
        match Image::from_data_url(url) {
            Ok(image) => images.push(image),
            Err(error) => return malformed("content.image_url", &error.to_string()),
        }
    }
    Ok(HumanMessage { content: text_of(&message.content), id: message.id.clone(), images })
}

fn is_text(block: &Value) -> bool {
    let has_type = block.get("type").is_none_or(|kind| kind == "text");
    block.is_string() || has_type && block.get("text").is_some_and(Value::is_string)
}

/// The address in an image block: on its own, or in an object.
fn image_url(block: &Value) -> Option<&str> {
    let image =
        block.get("image_url").filter(|_| block.get("type").is_some_and(|kind| kind == IMAGE_BLOCK))?;
    image.as_str().or_else(|| image.get("url")?.as_str())
}

#[cfg(test)]
mod tests;
