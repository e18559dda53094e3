//! A page of the log, decoded once for all views.

use std::{collections::BTreeMap, error::Error};

use domain::{causes::with_causes, event::Logged, ids::ThreadId, limits::ERROR_DETAIL_CHARS_MAX, text};
use eventlog::{EventLog, Position, ReadError, RecordedEvent};

use crate::{
    rows::Rows,
    store::{RowError, Snapshot},
    view::{FoldError, Registered},
};

/// Positions that a view skips.
pub(super) type Poison = BTreeMap<u64, Unfit>;

/// An event that a view skips.
#[derive(Debug, Clone)]
pub(super) struct Unfit {
    pub(super) thread_id: ThreadId,
    /// Why. It may quote the event, and is kept as the event's thread is.
    pub(super) reason: String,
}

/// A page with at least one event.
pub(super) struct Page {
    facts: Vec<Logged>,
    undecodable: Poison,
    last: RecordedEvent,
}

impl Page {
    /// The next page after a position; none at the head of the log.
    pub(super) fn read(log: &EventLog, after: Position, limit: usize) -> Result<Option<Self>, ReadError> {
        let recorded = log.read_all(after, limit)?;
        let (mut facts, mut undecodable) = (Vec::with_capacity(recorded.len()), Poison::new());
        for event in &recorded {
            // Views are about threads; other streams say nothing to them.
            let Some(thread_id) = event.stream.thread_id() else { continue };
            if event.is_erased() && log.is_erased(thread_id) {
                continue;
            }
            match eventlog::decode(event) {
                Ok(fact) => facts.push(fact),
                Err(error) => {
                    let unfit = Unfit { thread_id: thread_id.clone(), reason: chain(&error) };
                    undecodable.insert(event.position.get(), unfit);
                }
            }
        }
        Ok(recorded.into_iter().next_back().map(|last| Self { facts, undecodable, last }))
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
                Err((_, FoldError::Row(error))) => return Err(error),
                Err((fact, error @ FoldError::Contradiction(_))) => {
                    let unfit = Unfit { thread_id: fact.thread_id.clone(), reason: chain(&error) };
                    poison.insert(fact.position, unfit);
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
    ) -> Result<Rows<'s>, (&Logged, FoldError)> {
        for fact in &self.facts {
            if fact.position > after && !poison.contains_key(&fact.position) {
                (view.apply)(fact, &mut rows).map_err(|error| (fact, error))?;
            }
        }
        Ok(rows)
    }
}

/// An error with all its causes, bounded: for logs and for the table of parked events.
pub(crate) fn chain(error: &dyn Error) -> String {
    text::prefix(&with_causes(error), ERROR_DETAIL_CHARS_MAX).text
}
