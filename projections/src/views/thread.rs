//! The list of threads.

use domain::{
    event::{Event, Logged, ThreadEvent},
    ids::{RunId, ThreadId, UserId},
};
use eventlog::engine::Direction;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    keys::{
        KeyKind, KeyWriter, RowKey as _,
        thread::{ThreadKey, ThreadRunKey},
    },
    projections::Projections,
    rows::Rows,
    store::RowError,
    view::{FoldError, View},
    views::run::started_run,
};

/// One thread in the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadRow {
    /// The thread.
    pub thread_id: ThreadId,
    /// Whose it is.
    pub owner: UserId,
    /// When its first event was recorded.
    pub created_at: Timestamp,
    /// When its newest event was recorded.
    pub updated_at: Timestamp,
    /// What the client wants to find again.
    pub metadata: Map<String, Value>,
    /// The folder of the host that is its workspace, where a person chose one.
    pub workspace: Option<String>,
    /// Runs that were started on it.
    pub runs: u64,
    /// The newest of them.
    pub last_run_id: Option<RunId>,
    /// The `seq` of its newest event.
    pub last_seq: u64,
}

impl ThreadRow {
    /// The thread after one of its events. `new_run` is the run that the event starts, if it is
    /// not known yet. A thread needs no `thread.created`: any first event makes it.
    pub(crate) fn fold(row: Option<Self>, event: &Logged, new_run: Option<&RunId>) -> Self {
        let mut row = row.unwrap_or_else(|| Self::new(event));
        row.updated_at = event.recorded_at;
        row.last_seq = event.seq;
        if let Some(run_id) = new_run {
            row.runs += 1;
            row.last_run_id = Some(run_id.clone());
        }
        match &event.event {
            Event::Thread(ThreadEvent::Created(created)) if !event.is_of_others() => {
                row.metadata.clone_from(&created.metadata);
                row.workspace.clone_from(&created.workspace);
            }
            // Others may name what nobody has named yet, and never say where agents work.
            Event::Thread(ThreadEvent::Created(created)) if row.metadata.is_empty() => {
                row.metadata.clone_from(&created.metadata);
            }
            Event::Thread(_)
            | Event::Run(_)
            | Event::Model(_)
            | Event::Tool(_)
            | Event::Delegation(_)
            | Event::Subagent(_)
            | Event::Registry(_)
            | Event::Foreign(_) => {}
        }
        row
    }

    fn new(event: &Logged) -> Self {
        Self {
            thread_id: event.thread_id.clone(),
            owner: event.owner.clone(),
            created_at: event.recorded_at,
            updated_at: event.recorded_at,
            metadata: Map::new(),
            workspace: None,
            runs: 0,
            last_run_id: None,
            last_seq: event.seq,
        }
    }
}

/// The view of all threads.
pub(crate) struct ThreadsView;

impl View for ThreadsView {
    const NAME: &'static str = "threads";
    const VERSION: u32 = 5;
    const READS_SINCE: u32 = 4;
    const KINDS: &'static [KeyKind] = &[KeyKind::Thread, KeyKind::ThreadRun, KeyKind::ThreadThen];
    const SHARED_KINDS: &'static [KeyKind] = &[KeyKind::Thread, KeyKind::ThreadThen];

    fn apply(&self, event: &Logged, rows: &mut Rows<'_>) -> Result<(), FoldError> {
        let mut new_run = None;
        if let Some(run_id) = started_run(event) {
            let key = ThreadRunKey::new(&event.thread_id, run_id);
            if rows.get(&key)?.is_none() {
                rows.put(&key, ());
                new_run = Some(run_id);
            }
        }
        let key = ThreadKey { thread_id: event.thread_id.clone() };
        rows.update(&key, |row| Some(ThreadRow::fold(row, event, new_run)))?;
        Ok(())
    }
}

impl Projections {
    /// Threads in the order of their ids, after one.
    pub fn threads(&self, after: Option<&ThreadId>, limit: usize) -> Result<Vec<ThreadRow>, RowError> {
        let all = KeyWriter::new(ThreadKey::KIND);
        let range = match after {
            None => all.range(),
            Some(thread_id) => all.range_after(&ThreadKey { thread_id: thread_id.clone() }),
        };
        let rows = self.0.store.snapshot().page::<ThreadKey>(&range, Direction::Forward, limit)?;
        Ok(rows.into_iter().map(|(_, row)| row).collect())
    }

    /// One thread.
    pub fn thread(&self, thread_id: &ThreadId) -> Result<Option<ThreadRow>, RowError> {
        self.0.store.snapshot().get(&ThreadKey { thread_id: thread_id.clone() })
    }
}

#[cfg(test)]
mod tests;
