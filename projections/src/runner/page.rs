//! A page of the log, decoded once for all views.

use std::{collections::BTreeMap, error::Error};

use domain::{
    causes::with_causes,
    event::{Event, Logged, RegistryEvent},
    ids::{RunHash, RunId, ThreadId},
    limits::ERROR_DETAIL_CHARS_MAX,
    text,
};
use eventlog::{EventLog, Position, ReadError, RecordedEvent};

use super::again;

use crate::{
    rows::Rows,
    sealing::Origin,
    store::{RowError, Snapshot},
    view::{FoldError, Registered},
};

/// Positions that a view skips.
pub(super) type Poison = BTreeMap<u64, Unfit>;

/// An event that a view skips.
#[derive(Debug, Clone)]
pub(super) struct Unfit {
    pub(super) thread_id: ThreadId,
    pub(super) origin: Origin,
    /// Why. It may quote the event, and is kept as the event is.
    pub(super) reason: String,
}

/// A page with at least one event.
pub(super) struct Page {
    items: Vec<Item>,
    undecodable: Poison,
    last: RecordedEvent,
    log: EventLog,
}

/// What a page has for views.
enum Item {
    /// An event of a thread.
    Fact(Box<Logged>, Origin),
    /// A run on this thread was erased: what it had a part in is made again.
    RunErased { position: u64, thread_id: ThreadId },
}

/// Hashes the names of runs. Neighbours are often of the same.
#[derive(Default)]
pub(super) struct Origins(Option<(ThreadId, RunId, RunHash)>);

impl Origins {
    pub(super) fn of(&mut self, thread_id: &ThreadId, run_id: Option<&RunId>) -> Origin {
        let Some(run_id) = run_id else { return Origin::Thread };
        match &self.0 {
            Some((thread, run, hash)) if (thread, run) == (thread_id, run_id) => Origin::Run(*hash),
            Some(_) | None => {
                let hash = eventlog::run_hash(thread_id, run_id);
                self.0 = Some((thread_id.clone(), run_id.clone(), hash));
                Origin::Run(hash)
            }
        }
    }
}

impl Page {
    /// The next page after a position; none at the head of the log.
    pub(super) fn read(log: &EventLog, after: Position, limit: usize) -> Result<Option<Self>, ReadError> {
        let recorded = log.read_all(after, limit)?;
        let (mut items, mut undecodable) = (Vec::with_capacity(recorded.len()), Poison::new());
        let mut origins = Origins::default();
        for event in recorded.iter().filter(|event| !event.is_erased()) {
            let Some(thread_id) = event.stream.thread_id() else {
                items.extend(run_erased(event));
                continue;
            };
            let origin = origins.of(thread_id, event.scope.run_id.as_ref());
            match eventlog::decode(event) {
                Ok(fact) => items.push(Item::Fact(Box::new(fact), origin)),
                Err(error) => {
                    let unfit = Unfit { thread_id: thread_id.clone(), origin, reason: chain(&error) };
                    undecodable.insert(event.position.get(), unfit);
                }
            }
        }
        let last = recorded.into_iter().next_back();
        Ok(last.map(|last| Self { items, undecodable, last, log: log.clone() }))
    }

    /// The last event.
    pub(super) fn last(&self) -> &RecordedEvent {
        &self.last
    }

    /// Folds what a view has not seen yet. Gives its rows and what it skipped; none when it has
    /// seen everything.
    ///
    /// When the view cannot take an event, the rows are thrown away and the page is folded again
    /// without it: so nothing of half an event stays, and the usual case pays nothing for that.
    pub(super) fn fold<'s>(
        &self,
        view: &Registered,
        after: u64,
        snapshot: &'s Snapshot<'s>,
    ) -> Result<Option<(Rows<'s>, Poison)>, RowError> {
        if self.last.position.get() <= after {
            return Ok(None);
        }
        let mut poison = self.undecodable.clone();
        poison.retain(|position, _| *position > after);
        loop {
            match self.try_fold(view, after, Rows::new(snapshot), &poison) {
                Ok(rows) => return Ok(Some((rows, poison))),
                Err(Refusal::Row(error)) => return Err(error),
                Err(Refusal::Contradiction(fact, origin, reason)) => {
                    let thread_id = fact.thread_id.clone();
                    poison.insert(fact.position, Unfit { thread_id, origin, reason });
                }
            }
        }
    }

    fn try_fold<'s>(
        &self,
        view: &Registered,
        after: u64,
        mut rows: Rows<'s>,
        poison: &Poison,
    ) -> Result<Rows<'s>, Refusal<'_>> {
        for item in &self.items {
            match item {
                Item::Fact(fact, origin) if fact.position > after && !poison.contains_key(&fact.position) => {
                    rows.next_event(*origin);
                    (view.apply)(fact, &mut rows).map_err(|error| Refusal::of(fact, *origin, error))?;
                }
                Item::RunErased { position, thread_id } if *position > after => {
                    again::fold(&self.log, view, thread_id, *position, &mut rows).map_err(Refusal::Row)?;
                }
                Item::Fact(..) | Item::RunErased { .. } => {}
            }
        }
        Ok(rows)
    }
}

/// Why a page was not folded.
enum Refusal<'a> {
    Row(RowError),
    Contradiction(&'a Logged, Origin, String),
}

impl<'a> Refusal<'a> {
    fn of(fact: &'a Logged, origin: Origin, error: FoldError) -> Self {
        match error {
            FoldError::Row(error) => Self::Row(error),
            FoldError::Contradiction(_) => Self::Contradiction(fact, origin, chain(&error)),
        }
    }
}

/// Views are about threads; of what happened beside them, this alone changes a thread.
fn run_erased(event: &RecordedEvent) -> Option<Item> {
    match event.fact() {
        Ok(Event::Registry(RegistryEvent::RunErased(erased))) => {
            Some(Item::RunErased { position: event.position.get(), thread_id: erased.thread_id })
        }
        Ok(_) | Err(_) => None,
    }
}

/// An error with all its causes, bounded: for logs and for the table of parked events.
pub(crate) fn chain(error: &dyn Error) -> String {
    text::prefix(&with_causes(error), ERROR_DETAIL_CHARS_MAX).text
}
