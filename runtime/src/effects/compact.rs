//! Replaces the older part of a history by a summary. At least once: a summary that was not recorded
//! before a crash is asked for again.
//!
//! Each model is asked once. Asking again is left to the next turn, which plans anew: until then the
//! agent works with the history that it has.

use std::sync::Arc;

use domain::{
    compaction::CompactionPlan, event::SummaryFailure, limits::ERROR_DETAIL_CHARS_MAX,
    message::AssistantMessage, text,
};

use crate::{
    agent_loop::AgentLoop,
    models::{AgentTag, ChatModel, ModelError, ModelRequest, circuit::Circuits, no_deltas},
    run_owner::RecordError,
};

/// The class of a failure: a reply without text.
const BLANK: &str = "blank";
/// The class of a failure: a model that is no longer configured.
const UNKNOWN_MODEL: &str = "unknown_model";

/// Asks the models for a summary, one after the other, and records what came of it. Where none gives
/// one, the history stays as it is.
pub(crate) async fn perform(agent_loop: &mut AgentLoop, plan: CompactionPlan) -> Result<(), RecordError> {
    let request = ModelRequest { messages: plan.request.clone(), tools: [].into(), agent: AgentTag::Summary };
    let mut failures = Vec::new();
    let mut done = None;
    for (name, model) in candidates(agent_loop) {
        match ask(&agent_loop.recorder.context.services.circuits, &name, model, &request).await {
            Ok(reply) => {
                done = Some((name, reply));
                break;
            }
            Err(failure) => failures.push(failure),
        }
    }
    let compaction = match done {
        Some((name, reply)) => plan.done(&name, &reply.content, reply.usage, failures),
        None => plan.failed(failures),
    };
    let recorded = agent_loop.recorder.compacted(compaction).await?;
    agent_loop.take(&recorded);
    Ok(())
}

/// The models in their order; `None` for one that is no longer configured.
fn candidates(agent_loop: &AgentLoop) -> Vec<(String, Option<Arc<dyn ChatModel>>)> {
    let own = &agent_loop.model;
    let context = &agent_loop.recorder.context;
    let names = match context.settings.summarization.as_deref() {
        Some(settings) => settings.candidates(own.name()),
        None => vec![own.name()],
    };
    let model = |name: &str| {
        if name == own.name() { Some(Arc::clone(own)) } else { context.services.models.get(name).ok() }
    };
    names.into_iter().map(|name| (name.to_owned(), model(name))).collect()
}

/// A summary is a reply with text.
async fn ask(
    circuits: &Circuits,
    name: &str,
    model: Option<Arc<dyn ChatModel>>,
    request: &ModelRequest,
) -> Result<AssistantMessage, SummaryFailure> {
    let failure = |reason: &str, error: &str| SummaryFailure {
        model_name: name.to_owned(),
        reason: reason.to_owned(),
        error: text::prefix(error, ERROR_DETAIL_CHARS_MAX).text,
        usage: None,
    };
    let Some(model) = model else {
        return Err(failure(UNKNOWN_MODEL, "the model is no longer configured"));
    };
    let failed = |error: ModelError| failure(error.kind.reason(), &error.message);
    let pass = circuits.enter(name).map_err(failed)?;
    let reply = model.call(request, &no_deltas).await.map_err(failed)?;
    // One attempt that fails says little of a model; a reply says that it answers.
    pass.settle(&Ok(()));
    if reply.content.trim().is_empty() {
        let blank = failure(BLANK, "the reply has no text");
        return Err(SummaryFailure { usage: reply.usage, ..blank });
    }
    Ok(reply)
}
