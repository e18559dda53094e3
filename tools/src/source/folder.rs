//! Answers from the data folder itself: the views are brought to the end of the log, and asked.

mod lists;

use std::{io, path::Path, time::Duration};

use anyhow::Context as _;
use api::records;
use contracts::wire::{card::Card, delegation::Delegation, event::EventRecord, run::Run, thread::Thread};
use domain::{
    ids::{RunId, ThreadId, ToolCallId},
    pricing::Prices,
    task_ref,
};
use eventlog::{BlobDigest, EventFilter, EventLog, OpenError, Position, RecordedEvent, Seq, StreamId};
use projections::{EventQuery, Projections, TaskRef, as_of, event_page};
use runtime::{SystemClock, SystemIds, config::Config, enforce_erasures};

use super::{Blob, EventsPage, Past};
use crate::{
    context::{Context, existing_data_folder},
    failure::{Exit, Failure},
    opening::options_of,
    select::SelectedTask,
};

/// Threads or runs that are read at once.
const ROWS_PAGE: usize = 1_000;
/// How often a folder is tried whose holder has not said who it is: one second in all.
const OPEN_TRIES_MAX: u32 = 10;
/// Between two tries.
const OPEN_PAUSE: Duration = Duration::from_millis(100);

/// An open data folder.
pub(crate) struct Folder {
    log: EventLog,
    projections: Projections,
    options: String,
    prices: Prices,
}

impl Folder {
    /// Opens a folder that is there, and brings its views up to date.
    pub(super) async fn open(context: &Context) -> anyhow::Result<Self> {
        let loaded = context.config(Vec::new())?;
        let data = existing_data_folder(&loaded.config)?;
        let log = open_log(&loaded.config).await?;
        let projections = open_views(&data, &log)?;
        let prices = loaded.config.pricing.prices();
        Ok(Self { log, projections, options: context.place_options(), prices })
    }

    /// The folder of a process that has it open already, and asks for no costs.
    pub(crate) fn of(log: EventLog, projections: Projections) -> Self {
        Self { log, projections, options: String::new(), prices: Prices::default() }
    }

    /// The same, with the options that name it in suggested commands.
    pub(crate) fn named(self, context: &Context) -> Self {
        Self { options: context.place_options(), ..self }
    }

    /// The options that name it in suggested commands.
    pub(super) fn options(&self) -> &str {
        &self.options
    }

    /// Refuses a moment of a thread that is still to come, as the server does.
    fn check_moment(&self, thread_id: &ThreadId, seq: u64) -> anyhow::Result<()> {
        let tail = self.log.stream_tail(&StreamId::Thread(thread_id.clone()));
        let tail = tail.context("could not read the thread")?.map_or(0, Seq::get);
        if seq <= tail {
            return Ok(());
        }
        let detail = format!("thread {thread_id} is at seq {tail} and not yet at {seq}");
        let hint = "--as-of takes the seq of an event; leave it out to see how it is now";
        Err(Failure::new(Exit::Refused, detail).hint(hint).into())
    }

    pub(super) async fn close(self) {
        drop(self.projections);
        self.log.close().await;
    }

    /// An earlier moment of all threads cannot still be to come either.
    fn check_position(&self, position: u64) -> anyhow::Result<Position> {
        let head = self.log.head();
        if position <= head.get() {
            return Ok(Position::new(position));
        }
        let detail = format!("the log is at position {head} and not yet at {position}");
        let hint = "leave --as-of-position out to see how it is now";
        Err(Failure::new(Exit::Refused, detail).hint(hint).into())
    }

    /// Each thread as it was when this position was the last of the log.
    fn threads_then(&self, position: u64) -> anyhow::Result<Vec<Thread>> {
        let position = self.check_position(position)?;
        let rows = as_of::threads_as_of(&self.projections, position, None, usize::MAX);
        let mut threads = Vec::new();
        for (row, seq) in rows.context("could not read the threads")? {
            let newest = match &row.last_run_id {
                Some(run_id) => as_of::run_as_of(&self.projections, &row.thread_id, run_id, seq)?,
                None => None,
            };
            threads.push(records::thread(row, newest.map(|run| run.status)));
        }
        Ok(threads)
    }

    pub(super) fn threads(&self, as_of: Option<u64>) -> anyhow::Result<Vec<Thread>> {
        if let Some(position) = as_of {
            return self.threads_then(position);
        }
        let mut threads: Vec<Thread> = Vec::new();
        let mut after = None;
        loop {
            let page =
                self.projections.threads(after.as_ref(), ROWS_PAGE).context("could not read the threads")?;
            let is_last = page.len() < ROWS_PAGE;
            after = page.last().map(|row| row.thread_id.clone());
            for row in page {
                let newest = match &row.last_run_id {
                    Some(run_id) => self.projections.run(&row.thread_id, run_id)?,
                    None => None,
                };
                threads.push(records::thread(row, newest.map(|run| run.status)));
            }
            if is_last {
                return Ok(threads);
            }
        }
    }

    pub(super) fn runs(&self, thread_id: &str) -> anyhow::Result<Vec<Run>> {
        let thread_id: ThreadId = thread_id.parse()?;
        let mut runs = Vec::new();
        let mut before = None;
        loop {
            let page =
                self.projections.runs(&thread_id, before, ROWS_PAGE).context("could not read the runs")?;
            before = page.last().map(|row| Seq::new(row.first_seq));
            let is_last = page.len() < ROWS_PAGE;
            runs.extend(page.into_iter().map(records::run));
            if is_last {
                return Ok(runs);
            }
        }
    }

    pub(super) fn blob(&self, thread_id: &str, sha256: &BlobDigest) -> anyhow::Result<Blob> {
        let reader = self.log.open_blob(&thread_id.parse()?, sha256);
        Ok(Blob::Folder(Box::new(reader.context("could not open the blob")?)))
    }

    pub(super) fn run(&self, thread_id: &str, run_id: &str) -> anyhow::Result<Run> {
        let row =
            self.projections.run(&thread_id.parse()?, &run_id.parse()?).context("could not read the run")?;
        Ok(records::run(row.ok_or_else(|| Failure::not_found(format!("no run {run_id}")))?))
    }

    pub(super) fn runs_as_of(&self, thread_id: &str, seq: u64) -> anyhow::Result<Vec<Run>> {
        let thread_id = thread_id.parse()?;
        self.check_moment(&thread_id, seq)?;
        let rows = as_of::runs_as_of(&self.projections, &thread_id, Seq::new(seq), None, usize::MAX)?;
        Ok(rows.into_iter().map(records::run).collect())
    }

    /// The log itself.
    pub(crate) const fn log(&self) -> &EventLog {
        &self.log
    }

    pub(super) fn events(&self, page: &EventsPage) -> anyhow::Result<Vec<EventRecord>> {
        self.recorded(page)?.iter().map(record).collect()
    }

    pub(super) fn history(&self, page: &EventsPage) -> anyhow::Result<Vec<Past>> {
        let past =
            |event: &RecordedEvent| Ok(Past { record: record(event)?, logged: eventlog::decode(event).ok() });
        self.recorded(page)?.iter().map(past).collect()
    }

    fn recorded(&self, page: &EventsPage) -> anyhow::Result<Vec<RecordedEvent>> {
        let mut query = EventQuery {
            thread_id: page.thread_id.parse()?,
            run_id: page.run_id.as_deref().map(str::parse::<RunId>).transpose()?,
            filter: EventFilter { event_types: page.event_types.clone(), ..EventFilter::default() },
            after: Seq::new(page.after_seq),
            as_of: None,
            limit: page.limit,
        };
        let task = page.task.as_deref().map(ToolCallId::new).transpose()?;
        let mut events = Vec::new();
        for wanted in
            task_ref::wanted(task.as_ref(), |ours| (Some(ours), None), |theirs| (None, Some(theirs)))
        {
            (query.filter.delegation_id, query.filter.task_id) = wanted.unwrap_or_default();
            events = event_page(&self.log, &query).context("could not read the events")?;
            if !events.is_empty() {
                break;
            }
        }
        Ok(events)
    }

    pub(super) fn ledger(
        &self,
        thread_id: &str,
        run_id: Option<&str>,
        seq: Option<u64>,
    ) -> anyhow::Result<Vec<Delegation>> {
        let thread_id: ThreadId = thread_id.parse()?;
        let run_id = run_id.map(str::parse::<RunId>).transpose()?;
        let entries = match seq {
            Some(seq) => {
                self.check_moment(&thread_id, seq)?;
                as_of::ledger_as_of(&self.projections, &thread_id, run_id.as_ref(), Seq::new(seq))?
            }
            None => {
                self.projections.ledger(&thread_id, run_id.as_ref()).context("could not read the ledger")?
            }
        };
        Ok(entries.iter().map(records::delegation).collect())
    }

    pub(super) fn card(&self, task: &SelectedTask, seq: Option<u64>) -> anyhow::Result<Card> {
        let thread_id: ThreadId = task.thread_id.parse()?;
        let run_id: RunId = task.run_id.parse()?;
        let wanted = TaskRef::DelegationId(task.delegation_id.parse()?);
        let card = match seq {
            Some(seq) => {
                self.check_moment(&thread_id, seq)?;
                as_of::card_as_of(&self.projections, &thread_id, &run_id, &wanted, Seq::new(seq))?
            }
            None => self.projections.card(&thread_id, &run_id, &wanted).context("could not read the card")?,
        };
        let missing = || match seq {
            Some(seq) => Failure::not_found(format!(
                "delegation {} was not yet asked for at seq {seq}",
                task.delegation_id
            )),
            None => Failure::not_found(format!("no delegation {}", task.delegation_id)),
        };
        Ok(records::card(card.ok_or_else(missing)?))
    }
}

/// Opens or makes the log of the data folder. Another process that is just starting gets a moment to say who
/// it is, or to be done.
pub(crate) async fn open_log(config: &Config) -> anyhow::Result<EventLog> {
    let (data, options) = (config.log.path.as_path(), options_of(config)?);
    let mut tries = 0;
    loop {
        match EventLog::open(data, options.clone()) {
            Err(OpenError::HeldByUnknown { .. }) if tries < OPEN_TRIES_MAX => tries += 1,
            Err(error) => {
                let failure = format!("could not open the data folder {}", data.display());
                let error = anyhow::Error::new(error);
                return Err(match not_permitted(&error, &failure) {
                    Some(refusal) => error.context(refusal),
                    None => error.context(failure),
                });
            }
            Ok(log) => {
                // Before anybody reads: an older copy of the keys must not revive what was erased.
                let enforced = enforce_erasures(&log, &SystemIds, &SystemClock).await;
                enforced.context("could not look after what was erased")?;
                return Ok(log);
            }
        }
        tokio::time::sleep(OPEN_PAUSE).await;
    }
}

/// Whoever reads takes the folder for themselves, and that needs leave to write.
fn not_permitted(error: &anyhow::Error, failure: &str) -> Option<Failure> {
    let is_refused = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|cause| {
        matches!(cause.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
    });
    let hint = "reading takes the folder for itself and must write its lock: run this as the user that owns the \
                folder, or ask a running server with --server";
    is_refused.then(|| Failure::new(Exit::Refused, failure).hint(hint))
}

/// Opens the views of a data folder and brings them to the end of the log.
pub(crate) fn open_views(data: &Path, log: &EventLog) -> anyhow::Result<Projections> {
    let projections = open_views_as_they_are(data, log)?;
    projections.catch_up().context("could not bring the views up to date")?;
    Ok(projections)
}

/// Opens the views of a data folder, for whoever follows the log with them.
pub(crate) fn open_views_as_they_are(data: &Path, log: &EventLog) -> anyhow::Result<Projections> {
    Projections::open(&data.join("views"), log.clone()).map_err(|error| {
        let error = anyhow::Error::new(error);
        match not_permitted(&error, "could not open the views") {
            Some(refusal) => error.context(refusal),
            None => error.context("could not open the views"),
        }
    })
}

/// The record of an event, as a server would give it.
pub(crate) fn record(event: &RecordedEvent) -> anyhow::Result<EventRecord> {
    let damaged =
        || Failure::new(Exit::Integrity, format!("event {} holds what is not JSON", event.position));
    Ok(records::event(event).ok_or_else(damaged)?)
}
