//! Runs: where each stands, what it cost and what came of it.

mod fold;

use domain::{
    event::{Event, Logged, RunEvent, RunSettings, RunStatus, RunStopReason},
    ids::{RunId, ThreadId},
    usage::Usage,
};
use eventlog::{Seq, engine::Direction};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    keys::{
        KeyKind,
        run::{RunKey, RunOrderKey},
    },
    projections::Projections,
    rows::Rows,
    store::RowError,
    view::{FoldError, View},
};

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// The thread.
    pub thread_id: ThreadId,
    /// The run.
    pub run_id: RunId,
    /// Where it stands. A terminal status never changes.
    pub status: RunStatus,
    /// Why it ended early, if it did.
    pub stop_reason: Option<RunStopReason>,
    /// What went wrong, cut to the bound of a step's text.
    pub error: Option<String>,
    /// The lead's model.
    pub model_name: String,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it got its terminal status.
    pub ended_at: Option<Timestamp>,
    /// When its newest event was recorded.
    pub updated_at: Timestamp,
    /// What it has cost so far. Subagents that are still being stopped count after its end too.
    pub usage: RunUsage,
    /// The lead's turns.
    pub turns: u32,
    /// Delegations that were requested, also those that got no slot later.
    pub delegations_requested: u32,
    /// Delegations that were refused, at once or while they waited.
    pub delegations_refused: u32,
    /// The lead's last words, cut to the bound of a step's text.
    pub result: Option<String>,
    /// Whether `result` was cut.
    pub result_truncated: bool,
    /// The `seq` of its first event: the order of runs.
    pub first_seq: u64,
    /// The `seq` of its newest event.
    pub last_seq: u64,
    /// What it obeys, without the texts.
    pub settings: SettingsSummary,
}

/// Tokens of a run, by who spent them. What nobody reported stays unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunUsage {
    /// The lead's, all subagents', and those of summaries of the lead's history.
    pub total: Option<Usage>,
    /// The lead's.
    pub lead: Option<Usage>,
    /// All subagents'.
    pub subagents: Option<Usage>,
}

/// What a run obeys, without the texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SettingsSummary {
    /// The lead agent.
    pub assistant_id: String,
    /// Whether the lead has the `task` tool.
    pub subagent_enabled: bool,
    /// Delegations per response.
    pub max_concurrent_subagents: u32,
    /// Delegations per run.
    pub max_total_subagents: u32,
    /// Types that may be delegated to; `None` allows all.
    pub allowed_subagents: Option<Vec<String>>,
    /// The lead's turns.
    pub max_turns: u32,
    /// What the client wants to find again.
    pub metadata: Map<String, Value>,
}

impl SettingsSummary {
    fn of(settings: &RunSettings) -> Self {
        Self {
            assistant_id: settings.assistant_id.clone(),
            subagent_enabled: settings.subagent_enabled,
            max_concurrent_subagents: settings.max_concurrent_subagents,
            max_total_subagents: settings.max_total_subagents,
            allowed_subagents: settings.allowed_subagents.clone(),
            max_turns: settings.max_turns,
            metadata: settings.metadata.clone(),
        }
    }
}

/// The run that an event starts, if it starts one and does not contradict itself.
pub(crate) fn started_run(event: &Logged) -> Option<&RunId> {
    match &event.event {
        Event::Run(RunEvent::Started(settings)) => {
            event.scope.run_id.as_ref().filter(|run_id| **run_id == settings.run_id)
        }
        Event::Run(_)
        | Event::Thread(_)
        | Event::Model(_)
        | Event::Tool(_)
        | Event::Delegation(_)
        | Event::Subagent(_)
        | Event::Registry(_)
        | Event::Foreign(_) => None,
    }
}

/// The view of all runs.
pub(crate) struct RunsView;

impl View for RunsView {
    const NAME: &'static str = "runs";
    const VERSION: u32 = 4;
    const KINDS: &'static [KeyKind] = &[KeyKind::Run, KeyKind::RunOrder, KeyKind::RunThen];

    fn apply(&self, event: &Logged, rows: &mut Rows<'_>) -> Result<(), FoldError> {
        let Some(run_id) = &event.scope.run_id else { return Ok(()) };
        RunRow::check(event)?;
        let (thread_id, run_id) = (event.thread_id.clone(), run_id.clone());
        let key = RunKey::new(&thread_id, &run_id);
        if rows.update(&key, |row| RunRow::fold(row, event))?.is_some() {
            rows.put(&RunOrderKey { thread_id, first_seq: event.seq }, run_id);
        }
        Ok(())
    }
}

impl Projections {
    /// Runs of a thread, newest first, those before the run whose `first_seq` is `before`.
    pub fn runs(
        &self,
        thread_id: &ThreadId,
        before: Option<Seq>,
        limit: usize,
    ) -> Result<Vec<RunRow>, RowError> {
        let of_thread = RunOrderKey::of_thread(thread_id);
        let range = match before {
            None => of_thread.range(),
            Some(before) => {
                let key = RunOrderKey { thread_id: thread_id.clone(), first_seq: before.get() };
                of_thread.range_before(&key)
            }
        };
        let snapshot = self.0.store.snapshot();
        let mut runs = Vec::new();
        for (_, run_id) in snapshot.page::<RunOrderKey>(&range, Direction::Backward, limit)? {
            runs.extend(snapshot.get(&RunKey::new(thread_id, &run_id))?);
        }
        Ok(runs)
    }

    /// One run.
    pub fn run(&self, thread_id: &ThreadId, run_id: &RunId) -> Result<Option<RunRow>, RowError> {
        self.0.store.snapshot().get(&RunKey::new(thread_id, run_id))
    }
}

#[cfg(test)]
mod tests;
