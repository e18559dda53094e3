//! A page of the log, decoded once for all views.

use std::{collections::BTreeMap, error::Error, ops::ControlFlow};

use domain::{
    causes::with_causes,
    event::{Event, Logged, RegistryEvent},
    ids::{RunHash, RunId, ThreadId},
    limits::ERROR_DETAIL_CHARS_MAX,
    text,
};
use eventlog::{EventLog, Position, ReadError, ReadFact, Said};

use super::again;
use crate::{
    rows::{KeptRows, Rows},
    sealing::Origin,
    store::{RowError, Side, Snapshot},
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
    /// Events, also those that say nothing to any view.
    pub(super) count: usize,
    /// The place of the last event.
    pub(super) last: u64,
    /// Its hash.
    pub(super) last_hash: [u8; 32],
    log: EventLog,
}

/// What of a page a view gets.
pub(super) struct Part<'a> {
    pub(super) view: &'a Registered,
    pub(super) side: Side,
    /// The last position that it has.
    pub(super) after: u64,
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
        let mut page = Self {
            items: Vec::new(),
            undecodable: Poison::new(),
            count: 0,
            last: after.get(),
            last_hash: [0; 32],
            log: log.clone(),
        };
        log.read_facts(after, limit, &mut |fact| page.take(fact))?;
        Ok((page.count > 0).then_some(page))
    }

    fn take(&mut self, ReadFact { position, hash, said }: ReadFact) {
        (self.last, self.last_hash) = (position.get(), hash);
        self.count += 1;
        match said {
            Said::Fact(fact, run) => self.items.push(Item::Fact(fact, Origin::of(run))),
            Said::Undecodable { thread_id, run, error } => {
                let unfit = Unfit { thread_id, origin: Origin::of(run), reason: chain(&error) };
                self.undecodable.insert(position.get(), unfit);
            }
            Said::Beside(event) => self.items.extend(run_erased(position, event)),
            Said::Nothing => {}
        }
    }

    /// Folds what a view has not seen yet. Gives its rows and what it skipped; none when it has
    /// seen everything.
    ///
    /// When the view cannot take an event, the rows are thrown away and the page is folded again
    /// with each event noted down, so that nothing of half an event stays. The usual case pays
    /// nothing for that, and the unusual one is paid for once in a page.
    pub(super) fn fold<'s>(
        &self,
        part: &Part<'_>,
        snapshot: &'s Snapshot<'s>,
        kept: KeptRows,
    ) -> Result<Option<(Rows<'s>, Poison)>, RowError> {
        if self.last <= part.after {
            return Ok(None);
        }
        let mut poison = self.undecodable.clone();
        poison.retain(|position, _| *position > part.after);
        let mut rows = Rows::new(snapshot, part.side, kept);
        if self.fold_all(part, &mut rows)?.is_break() {
            rows = Rows::new(snapshot, part.side, KeptRows::default());
            self.fold_with_care(part, &mut rows, &mut poison)?;
        }
        Ok(Some((rows, poison)))
    }

    /// Stops at the first event that the view cannot take.
    fn fold_all(&self, part: &Part<'_>, rows: &mut Rows<'_>) -> Result<ControlFlow<()>, RowError> {
        for item in self.unseen(part) {
            match item {
                Item::Fact(fact, origin) => {
                    rows.next_event(*origin);
                    match (part.view.apply)(fact, rows) {
                        Ok(()) => {}
                        Err(FoldError::Row(error)) => return Err(error),
                        Err(FoldError::Contradiction(_)) => return Ok(ControlFlow::Break(())),
                    }
                }
                Item::RunErased { position, thread_id } => {
                    again::fold(&self.log, part.view, thread_id, *position, rows)?;
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Passes over the events that the view cannot take.
    fn fold_with_care(
        &self,
        part: &Part<'_>,
        rows: &mut Rows<'_>,
        poison: &mut Poison,
    ) -> Result<(), RowError> {
        for item in self.unseen(part) {
            match item {
                Item::Fact(fact, origin) => {
                    if let Some(reason) = apply_with_care(part.view, fact, *origin, rows)? {
                        let thread_id = fact.thread_id.clone();
                        poison.insert(fact.position, Unfit { thread_id, origin: *origin, reason });
                    }
                }
                Item::RunErased { position, thread_id } => {
                    again::fold(&self.log, part.view, thread_id, *position, rows)?;
                }
            }
        }
        Ok(())
    }

    fn unseen(&self, part: &Part<'_>) -> impl Iterator<Item = &Item> {
        let after = part.after;
        self.items.iter().filter(move |item| item.position() > after)
    }
}

impl Item {
    fn position(&self) -> u64 {
        match self {
            Self::Fact(fact, _) => fact.position,
            Self::RunErased { position, .. } => *position,
        }
    }
}

/// Applies an event, and undoes it if the view cannot take it; then it says why.
pub(super) fn apply_with_care(
    view: &Registered,
    fact: &Logged,
    origin: Origin,
    rows: &mut Rows<'_>,
) -> Result<Option<String>, RowError> {
    rows.next_event_with_care(origin);
    match (view.apply)(fact, rows) {
        Ok(()) => Ok(None),
        Err(FoldError::Row(error)) => Err(error),
        Err(error @ FoldError::Contradiction(_)) => {
            rows.undo_event();
            Ok(Some(chain(&error)))
        }
    }
}

/// Views are about threads; of what happened beside them, this alone changes a thread.
fn run_erased(position: Position, event: Event) -> Option<Item> {
    match event {
        Event::Registry(RegistryEvent::RunErased(erased)) => {
            Some(Item::RunErased { position: position.get(), thread_id: erased.thread_id })
        }
        Event::Registry(
            RegistryEvent::ErasureRequested(_)
            | RegistryEvent::ErasureRepeated(_)
            | RegistryEvent::ThreadErased(_),
        )
        | Event::Thread(_)
        | Event::Run(_)
        | Event::Model(_)
        | Event::Tool(_)
        | Event::Delegation(_)
        | Event::Subagent(_)
        | Event::Foreign(_) => None,
    }
}

/// An error with all its causes, bounded: for logs and for the table of parked events.
pub(crate) fn chain(error: &dyn Error) -> String {
    text::prefix(&with_causes(error), ERROR_DETAIL_CHARS_MAX).text
}
