//! Definitions as a run has them. They are frozen with its start, so that what a run may delegate to
//! does not change while it works, and can be told for ever.
//!
//! The one event that carries them is found by the log's own index, so that no rows are needed.

use domain::{
    definition::{Registry, Resolved},
    event::{Event, RunEvent, RunSettings},
    ids::{RunId, ThreadId},
};
use eventlog::{EventFilter, EventLog, ReadError, Seq};

/// The event that starts a run.
const RUN_START: &str = "run.start";

/// A type of subagent as a run has it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunDefinition {
    /// What a delegation to it obeys.
    pub resolved: Resolved,
    /// Whether the run may delegate to it.
    pub is_allowed: bool,
}

/// The types of subagent that a run knows, in listing order; none of a run that was not started, or
/// not yet at this moment. A run that noted no settings knows no types.
pub fn definitions_of_run(
    log: &EventLog,
    thread_id: &ThreadId,
    run_id: &RunId,
    as_of: Option<Seq>,
) -> Result<Option<Vec<RunDefinition>>, ReadError> {
    let filter = EventFilter { event_types: Some(vec![RUN_START.to_owned()]), ..EventFilter::default() };
    let starts = log.read_run(thread_id, run_id, &filter, Seq::ZERO, 1)?;
    let start = starts.first().filter(|start| as_of.is_none_or(|last| start.seq <= last));
    let Some(Ok(fact)) = start.map(eventlog::decode) else { return Ok(None) };
    let Event::Run(RunEvent::Started(settings)) = fact.event else { return Ok(None) };
    Ok((settings.run_id == *run_id).then(|| definitions(&settings)))
}

fn definitions(settings: &RunSettings) -> Vec<RunDefinition> {
    let Some(subagents) = &settings.subagents else { return Vec::new() };
    let registry = Registry::new((**subagents).clone(), settings.summarization_enabled)
        .with_managed(settings.managed_subagents.as_deref());
    let allowed = settings.allowed_subagents.as_deref();
    let is_allowed = |name: &str| {
        settings.subagent_enabled && allowed.is_none_or(|names| names.iter().any(|one| one == name))
    };
    let resolved = registry.available(true, None).into_iter().filter_map(|listed| {
        let name = listed.definition.name.as_str();
        Some(RunDefinition { resolved: registry.resolve(name)?, is_allowed: is_allowed(name) })
    });
    resolved.collect()
}
