//! A page of the log, read and decoded once for all views, and folded as it is read.

use std::{collections::BTreeMap, error::Error};

use domain::{
    causes::with_causes,
    event::{Event, Logged, RegistryEvent},
    ids::{RunHash, RunId, ThreadId},
    limits::ERROR_DETAIL_CHARS_MAX,
    text,
};
use eventlog::{EventLog, KeptReading, Position, ReadError, ReadFact, Said};

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

/// Events that are folded into one view after the other: few, so that all of them are still in the
/// processor's caches for the last one, and their memory is used again for the next ones.
const FOLD_EVENTS: usize = 64;

/// What was read of a page with at least one event.
pub(super) struct Page {
    undecodable: Poison,
    /// Events, also those that say nothing to any view.
    count: usize,
    /// The place of the last event.
    pub(super) last: u64,
    /// Its hash.
    pub(super) last_hash: [u8; 32],
}

/// What of a page a view gets.
pub(super) struct Part<'a> {
    pub(super) view: &'a Registered,
    pub(super) side: Side,
    /// The last position that it has.
    pub(super) after: u64,
    /// Rows that it may change again.
    pub(super) kept: KeptRows,
}

/// What a page makes of a view: its rows and what it skipped; none when it had seen everything.
pub(super) type Made<'s> = Result<Option<(Rows<'s>, Poison)>, RowError>;

/// A view while a page is folded.
struct Folding<'a, 's> {
    view: &'a Registered,
    side: Side,
    after: u64,
    rows: Rows<'s>,
    state: State,
}

enum State {
    /// It has taken everything so far.
    Going,
    /// It met an event that it cannot take.
    Refused,
    /// Its rows cannot be used.
    Failed(RowError),
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
    /// Reads the next page after a position, and folds what each view has not seen yet. None at the
    /// head of the log.
    ///
    /// When a view cannot take an event, its rows are thrown away, and the page is read again for it
    /// with each event noted down, so that nothing of half an event stays. The usual case pays nothing
    /// for that, and the unusual one is paid for once in a page.
    pub(super) fn fold<'s>(
        (log, reading): (&EventLog, &mut KeptReading),
        after: Position,
        limit: usize,
        snapshot: &'s Snapshot<'s>,
        parts: Vec<Part<'_>>,
    ) -> Result<Option<(Self, Vec<Made<'s>>)>, ReadError> {
        let mut page = Self { undecodable: Poison::new(), count: 0, last: after.get(), last_hash: [0; 32] };
        let mut foldings: Vec<_> = parts.into_iter().map(|part| Folding::new(part, snapshot)).collect();
        let mut items = Vec::with_capacity(FOLD_EVENTS);
        log.read_facts(after, limit, reading, &mut |fact| {
            items.extend(page.take(fact));
            if items.len() >= FOLD_EVENTS {
                foldings.iter_mut().for_each(|folding| folding.take(log, &items));
                items.clear();
            }
        })?;
        foldings.iter_mut().for_each(|folding| folding.take(log, &items));
        if page.count == 0 {
            return Ok(None);
        }
        let made = foldings.into_iter().map(|folding| page.finish(log, after, snapshot, folding)).collect();
        Ok(Some((page, made)))
    }

    fn take(&mut self, ReadFact { position, hash, said }: ReadFact) -> Option<Item> {
        (self.last, self.last_hash) = (position.get(), hash);
        self.count += 1;
        match said {
            Said::Fact(fact, run) => Some(Item::Fact(fact, Origin::of(run))),
            Said::Undecodable { thread_id, run, error } => {
                let unfit = Unfit { thread_id, origin: Origin::of(run), reason: chain(&error) };
                self.undecodable.insert(position.get(), unfit);
                None
            }
            Said::Beside(event) => run_erased(position, event),
            Said::Nothing => None,
        }
    }

    fn finish<'s>(
        &self,
        log: &EventLog,
        after: Position,
        snapshot: &'s Snapshot<'s>,
        folding: Folding<'_, 's>,
    ) -> Made<'s> {
        if self.last <= folding.after {
            return Ok(None);
        }
        let mut poison = self.undecodable.clone();
        poison.retain(|position, _| *position > folding.after);
        match folding.state {
            State::Going => Ok(Some((folding.rows, poison))),
            State::Failed(error) => Err(error),
            State::Refused => {
                let rows = Rows::new(snapshot, folding.side, KeptRows::default());
                let mut folding = Folding { rows, state: State::Going, ..folding };
                self.fold_with_care(log, after, &mut folding, &mut poison)?;
                Ok(Some((folding.rows, poison)))
            }
        }
    }

    /// Reads the page again, and passes over the events that the view cannot take.
    fn fold_with_care(
        &self,
        log: &EventLog,
        after: Position,
        folding: &mut Folding<'_, '_>,
        poison: &mut Poison,
    ) -> Result<(), RowError> {
        let (mut again, mut outcome) = (Self { undecodable: Poison::new(), ..*self }, Ok(()));
        log.read_facts(after, self.count, &mut KeptReading::default(), &mut |fact| {
            let item = again.take(fact).filter(|item| item.position() > folding.after);
            if let (Some(item), Ok(())) = (item, &outcome) {
                outcome = folding.take_with_care(log, &item, poison);
            }
        })
        .map_err(RowError::Log)?;
        outcome
    }
}

impl<'a, 's> Folding<'a, 's> {
    fn new(Part { view, side, after, kept }: Part<'a>, snapshot: &'s Snapshot<'s>) -> Self {
        Self { view, side, after, rows: Rows::new(snapshot, side, kept), state: State::Going }
    }

    /// Takes events, up to the first that the view cannot take.
    fn take(&mut self, log: &EventLog, items: &[Item]) {
        let after = self.after;
        for item in items.iter().filter(|item| item.position() > after) {
            if !matches!(self.state, State::Going) {
                return;
            }
            self.state = match self.take_one(log, item) {
                Ok(()) => State::Going,
                Err(FoldError::Contradiction(_)) => State::Refused,
                Err(FoldError::Row(error)) => State::Failed(error),
            };
        }
    }

    fn take_one(&mut self, log: &EventLog, item: &Item) -> Result<(), FoldError> {
        match item {
            Item::Fact(fact, origin) => {
                self.rows.next_event(*origin);
                (self.view.apply)(fact, &mut self.rows)
            }
            Item::RunErased { position, thread_id } => {
                Ok(again::fold(log, self.view, thread_id, *position, &mut self.rows)?)
            }
        }
    }

    fn take_with_care(&mut self, log: &EventLog, item: &Item, poison: &mut Poison) -> Result<(), RowError> {
        match item {
            Item::Fact(fact, origin) => {
                if let Some(reason) = apply_with_care(self.view, fact, *origin, &mut self.rows)? {
                    let thread_id = fact.thread_id.clone();
                    poison.insert(fact.position, Unfit { thread_id, origin: *origin, reason });
                }
                Ok(())
            }
            Item::RunErased { position, thread_id } => {
                again::fold(log, self.view, thread_id, *position, &mut self.rows)
            }
        }
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
            | RegistryEvent::ThreadErased(_)
            | RegistryEvent::DefinitionCreated(_)
            | RegistryEvent::DefinitionUpdated(_)
            | RegistryEvent::DefinitionEnabled(_)
            | RegistryEvent::DefinitionDisabled(_)
            | RegistryEvent::DefinitionDeleted(_)
            | RegistryEvent::DefinitionRolledBack(_),
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
