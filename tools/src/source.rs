//! Where answers come from: the views of a data folder, or a running server. Both give the types of
//! the wire, so that what a command prints does not depend on where it asked.

pub(crate) mod agents;
mod blob;
mod folder;
pub(crate) mod lists;
mod server;

use contracts::wire::{
    card::Card,
    delegation::Delegation,
    event::EventRecord,
    run::{Run, RunStatus},
    thread::Thread,
};
use domain::event::Logged;
use eventlog::BlobDigest;

pub(crate) use self::{
    blob::Blob,
    folder::{Folder, open_log, open_views, open_views_as_they_are, record},
    server::Server,
};
use crate::{context::Context, output::program, remote_run::logged_record, select::SelectedTask};

/// Where answers come from.
pub(crate) enum Source {
    /// The data folder, opened by this process.
    Folder(Box<Folder>),
    /// A running server.
    Server(Server),
}

/// One page of events, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventsPage {
    /// The thread.
    pub(crate) thread_id: String,
    /// The run; none for the whole thread.
    pub(crate) run_id: Option<String>,
    /// Only those of this task: the provider's id, or a delegation's.
    pub(crate) task: Option<String>,
    /// Only these types.
    pub(crate) event_types: Option<Vec<String>>,
    /// Exclusive.
    pub(crate) after_seq: u64,
    /// Events at most.
    pub(crate) limit: usize,
}

/// A recorded event: as it is shown, and as the fact that folds take.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    /// The record.
    pub(crate) record: EventRecord,
    /// The fact; none where this version does not know it.
    pub(crate) logged: Option<Logged>,
}

impl Source {
    /// Opens what the options name. Never makes a data folder.
    pub(crate) async fn open(context: &Context) -> anyhow::Result<Self> {
        match &context.global.server {
            Some(url) => Ok(Self::Server(Server::new(url)?)),
            None => Ok(Self::Folder(Box::new(Folder::open(context).await?))),
        }
    }

    /// A command to try that asks in the same place, ready to be pasted.
    pub(crate) fn suggested(&self, command: &str) -> String {
        let options = match self {
            Self::Folder(folder) => folder.options().to_owned(),
            Self::Server(server) => server.option(),
        };
        format!("`{} {command}{options}`", program())
    }

    /// Releases the data folder.
    pub(crate) async fn close(self) {
        match self {
            Self::Folder(folder) => folder.close().await,
            Self::Server(_) => {}
        }
    }

    /// The run's process has gone: whoever opens the folder holds it alone, so nobody is at work on
    /// a run without an end.
    pub(crate) fn is_abandoned(&self, run: &Run) -> bool {
        match (self, run.status) {
            (Self::Folder(_), RunStatus::Pending | RunStatus::Running) => true,
            (
                Self::Folder(_),
                RunStatus::Success | RunStatus::Error | RunStatus::Interrupted | RunStatus::Timeout,
            )
            | (Self::Server(_), _) => false,
        }
    }

    /// All threads, perhaps as they were when a position of the log was the last.
    pub(crate) async fn threads(&self, as_of: Option<u64>) -> anyhow::Result<Vec<Thread>> {
        match self {
            Self::Folder(folder) => folder.threads(as_of),
            Self::Server(server) => server.threads(as_of).await,
        }
    }

    /// All runs, or those of one thread, the newest first.
    pub(crate) async fn runs(&self, thread_id: Option<&str>) -> anyhow::Result<Vec<Run>> {
        let mut runs = match (self, thread_id) {
            (Self::Folder(folder), Some(thread_id)) => folder.runs(thread_id)?,
            (Self::Server(server), Some(thread_id)) => server.runs(thread_id, None).await?,
            (Self::Folder(_) | Self::Server(_), None) => {
                let mut all = Vec::new();
                for thread in self.threads(None).await? {
                    match self {
                        Self::Folder(folder) => all.extend(folder.runs(&thread.thread_id)?),
                        Self::Server(server) => all.extend(server.runs(&thread.thread_id, None).await?),
                    }
                }
                all
            }
        };
        newest_first(&mut runs);
        Ok(runs)
    }

    /// The runs of a thread, the newest first, as they were when this seq was the last.
    pub(crate) async fn runs_as_of(&self, thread_id: &str, seq: u64) -> anyhow::Result<Vec<Run>> {
        match self {
            Self::Folder(folder) => folder.runs_as_of(thread_id, seq),
            Self::Server(server) => server.runs(thread_id, Some(seq)).await,
        }
    }

    /// One run, as it is now.
    pub(crate) async fn run(&self, thread_id: &str, run_id: &str) -> anyhow::Result<Run> {
        match self {
            Self::Folder(folder) => folder.run(thread_id, run_id),
            Self::Server(server) => server.run(thread_id, run_id).await,
        }
    }

    /// One page of events.
    pub(crate) async fn events(&self, page: &EventsPage) -> anyhow::Result<Vec<EventRecord>> {
        match self {
            Self::Folder(folder) => folder.events(page),
            Self::Server(server) => server.events(page).await,
        }
    }

    /// One page of events with the facts in them. Only an empty page says that there are no more.
    pub(crate) async fn history(&self, page: &EventsPage) -> anyhow::Result<Vec<Past>> {
        match self {
            Self::Folder(folder) => folder.history(page),
            Self::Server(server) => {
                let past = |record: EventRecord| Past { logged: logged_record(&record), record };
                Ok(server.events(page).await?.into_iter().map(past).collect())
            }
        }
    }

    /// The delegations of a thread, or of one of its runs, in the order in which they were asked for.
    pub(crate) async fn ledger(
        &self,
        thread_id: &str,
        run_id: Option<&str>,
        as_of: Option<u64>,
    ) -> anyhow::Result<Vec<Delegation>> {
        match self {
            Self::Folder(folder) => folder.ledger(thread_id, run_id, as_of),
            Self::Server(server) => server.ledger(thread_id, run_id, as_of).await,
        }
    }

    /// A blob of a thread.
    pub(crate) async fn blob(&self, thread_id: &str, sha256: &BlobDigest) -> anyhow::Result<Blob> {
        match self {
            Self::Folder(folder) => folder.blob(thread_id, sha256),
            Self::Server(server) => server.blob(thread_id, sha256).await,
        }
    }

    /// One delegation.
    pub(crate) async fn card(&self, task: &SelectedTask, as_of: Option<u64>) -> anyhow::Result<Card> {
        match self {
            Self::Folder(folder) => folder.card(task, as_of),
            Self::Server(server) => server.card(task, as_of).await,
        }
    }
}

/// By when they were asked for; within one thread that is also the order of their events.
fn newest_first(runs: &mut [Run]) {
    let asked_at = |run: &Run| run.created_at.parse::<jiff::Timestamp>().ok();
    runs.sort_by(|left, right| {
        asked_at(right).cmp(&asked_at(left)).then_with(|| right.run_id.cmp(&left.run_id))
    });
}
