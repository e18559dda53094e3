//! Asks the model. At least once: a reply that was not recorded before a crash is asked for again.

use std::sync::Arc;

use domain::{
    event::{ModelFailed, ModelRetried},
    limits::{ERROR_DETAIL_CHARS_MAX, MODEL_REPLY_STORED_BYTES_MAX},
    message::{AssistantMessage, ERROR_DETAIL_KEY, ERROR_FALLBACK_KEY, ERROR_REASON_KEY},
    text,
};
use futures::future::BoxFuture;
use serde_json::json;

use crate::{
    agent_loop::AgentLoop,
    models::{
        ModelError, ModelErrorKind, ModelRequest, no_deltas,
        retry::{GaveUp, Retries, RetryNotice, call_with_retries},
    },
    recorder::Recorder,
    run_owner::RecordError,
};

/// Asks, with the retries that the policy allows, unless the model is left alone for a while, and
/// records the reply. A model that fails for
/// good leaves an `llm.error` and a marked reply in its place, so that the agent ends with its
/// words and keeps its work.
pub(crate) async fn perform(agent_loop: &mut AgentLoop) -> Result<(), RecordError> {
    let recorder = agent_loop.recorder.clone();
    let request = ModelRequest {
        messages: agent_loop.agent.request(),
        tools: Arc::clone(&agent_loop.tools),
        agent: recorder.tag(),
    };
    let services = &recorder.context.services;
    let model_name = agent_loop.model.name().to_owned();
    let on_retry = |notice| note_retry(recorder.clone(), model_name.clone(), notice);
    let retries =
        Retries { policy: &services.retry_policy, pauses: services.pauses.as_ref(), on_retry: &on_retry };
    let called = match services.circuits.enter(&model_name) {
        Ok(pass) => {
            let called = call_with_retries(agent_loop.model.as_ref(), &request, &no_deltas, retries).await;
            pass.settle(&called);
            called
        }
        Err(error) => Err(GaveUp { attempts: 0, error }),
    };
    let reply = match called.and_then(storable) {
        Ok(reply) => reply,
        Err(gave_up) => {
            recorder.model_failed(failed(&recorder, &model_name, &gave_up)).await?;
            fallback(&model_name, &gave_up)
        }
    };
    let recorded = recorder.reply(reply, &agent_loop.agent).await?;
    agent_loop.take(&recorded);
    Ok(())
}

/// A reply within the model's own bound can grow on its way into the log, where every quote and
/// line break takes two bytes. One that no event holds is a failure like any other.
fn storable(reply: AssistantMessage) -> Result<AssistantMessage, GaveUp> {
    let bytes = serde_json::to_vec(&reply).map_or(usize::MAX, |json| json.len());
    if bytes <= MODEL_REPLY_STORED_BYTES_MAX {
        return Ok(reply);
    }
    let message = format!(
        "the reply takes {bytes} bytes to store, and at most {MODEL_REPLY_STORED_BYTES_MAX} fit; ask for less at once"
    );
    Err(GaveUp { attempts: 1, error: ModelError::new(ModelErrorKind::InvalidReply, message) })
}

/// Whether the run has a retry left, which is recorded. One that cannot be recorded does not stop the
/// call; the reply's own record will.
fn note_retry<'a>(recorder: Recorder, model_name: String, notice: RetryNotice) -> BoxFuture<'a, bool> {
    Box::pin(async move {
        let retried = ModelRetried {
            caller: recorder.tag().caller(),
            model_name,
            attempt: notice.attempt,
            max_attempts: notice.max_attempts,
            wait_ms: notice.wait_ms,
            reason: notice.reason.to_owned(),
            message: notice.message,
        };
        recorder.retried(retried).await.unwrap_or_else(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "a retry was not recorded");
            true
        })
    })
}

fn failed(recorder: &Recorder, model_name: &str, gave_up: &GaveUp) -> ModelFailed {
    ModelFailed {
        caller: recorder.tag().caller(),
        model_name: model_name.to_owned(),
        reason: gave_up.error.kind.reason().to_owned(),
        status: gave_up.error.status,
        attempts: gave_up.attempts,
        error: gave_up.error.message.clone(),
    }
}

fn fallback(model_name: &str, gave_up: &GaveUp) -> AssistantMessage {
    let detail = text::prefix(&gave_up.error.message, ERROR_DETAIL_CHARS_MAX).text;
    let mut reply = AssistantMessage {
        content: format!("The model {model_name:?} gave no reply ({gave_up}): {detail}"),
        ..AssistantMessage::default()
    };
    reply.additional_kwargs.insert(ERROR_FALLBACK_KEY.to_owned(), json!(true));
    reply.additional_kwargs.insert(ERROR_REASON_KEY.to_owned(), json!(gave_up.error.kind.reason()));
    reply.additional_kwargs.insert(ERROR_DETAIL_KEY.to_owned(), json!(detail));
    reply
}
