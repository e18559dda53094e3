//! One read of the log feeds all views.
//!
//! A step reads one page from where the slowest view is, decodes it once, folds it into every view
//! that has not seen it, and commits all rows and all checkpoints in one batch. So a crash between
//! two steps leaves every view exactly at its checkpoint.
//!
//! The views that answer are fed by one runner, and those that are made again beside them by
//! another, in the same way.

mod again;
mod load;
mod page;

use std::sync::Arc;

use eventlog::{EventLog, KeptReading, Position, ReadError, engine::Batch};

use crate::{
    checkpoint::{Checkpoint, ParkedRow, Role},
    keys::checkpoint::{CheckpointKey, ParkedKey},
    rebuild,
    rows::{KeptRows, Rows},
    store::{RowError, Side, Store},
    view::Registered,
};
pub(crate) use page::chain;
use page::{Page, Part, Poison, Unfit};

/// Events of one step. A page is one commit and one snapshot, and a row that many events change is
/// written once for all of them; more would hold more memory than caches do, and make readers and a
/// shutdown wait longer. It takes about 25 ms of processor time.
pub(crate) const PAGE_EVENTS: usize = 8_192;

/// Why the views could not follow the log.
#[derive(Debug, thiserror::Error)]
pub enum CatchUpError {
    /// The log could not be read.
    #[error("could not read the log for the views")]
    Log(#[from] ReadError),
    /// The rows of a view could not be read or written.
    #[error("could not bring view {view} up to date")]
    View {
        /// The view.
        view: &'static str,
        /// What failed.
        #[source]
        source: RowError,
    },
    /// The rows of a page could not be written.
    #[error("could not write the views")]
    Commit(#[source] RowError),
}

impl CatchUpError {
    /// Whether the log was closed, so that there is nothing more to follow.
    pub(crate) const fn is_closed(&self) -> bool {
        matches!(self, Self::Log(ReadError::Closed))
    }
}

/// Feeds views. The one writer of their rows.
pub(crate) struct Runner {
    log: EventLog,
    store: Store,
    pub(crate) views: Vec<Tracked>,
    /// What was read ahead of the last page.
    reading: KeptReading,
    /// Whether the store may differ from what is remembered here: a step did not come to its end.
    is_stale: bool,
}

/// The rows of a view and how far they have got.
pub(crate) struct Tracked {
    pub(crate) view: Arc<Registered>,
    pub(crate) side: Side,
    pub(crate) checkpoint: Checkpoint,
    /// What the next page may change again, while there is one.
    kept: KeptRows,
    /// A damaged row was met. The view is made again once; a second time is a defect, not damage.
    was_damaged: bool,
}

/// What a page makes of one view.
enum Outcome {
    /// The view has it, but for some events.
    Taken { checkpoint: Checkpoint, poison: Poison, kept: KeptRows },
    /// The view had seen all of it.
    Seen,
    /// A row of the view is damaged.
    Damaged(RowError),
}

impl Runner {
    /// The views that answer, at their checkpoints; those that cannot go on from there begin again.
    pub(crate) fn answering(
        log: EventLog,
        store: Store,
        views: &[Arc<Registered>],
    ) -> Result<Self, CatchUpError> {
        let mut views: Vec<_> = views.iter().map(|view| Tracked::new(view, Side::First)).collect();
        for tracked in &mut views {
            load::answering(&log, &store, tracked)?;
        }
        Ok(Self { log, store, views, reading: KeptReading::default(), is_stale: false })
    }

    /// Views that are made beside those that answer, for a role. They go on where they were.
    pub(crate) fn in_the_making(
        log: EventLog,
        store: Store,
        views: &[(Arc<Registered>, Side)],
        role: Role,
    ) -> Result<Self, CatchUpError> {
        let mut views: Vec<_> = views.iter().map(|(view, side)| Tracked::new(view, *side)).collect();
        for tracked in &mut views {
            load::in_the_making(&log, &store, tracked, role)?;
        }
        Ok(Self { log, store, views, reading: KeptReading::default(), is_stale: false })
    }

    /// The position that every view has reached.
    pub(crate) fn position(&self) -> Position {
        let positions = self.views.iter().map(|tracked| tracked.checkpoint.position);
        Position::new(positions.min().unwrap_or(self.log.head().get()))
    }

    /// Takes one page of at most `limit` events. At the head of the log it changes nothing.
    pub(crate) fn step(&mut self, limit: usize) -> Result<Position, CatchUpError> {
        self.refresh()?;
        let mut batch = Batch::new();
        let Some((page, outcomes)) = self.fold(limit, &mut batch)? else { return Ok(self.position()) };
        let is_more = page.last < self.log.head().get();
        self.store.commit(batch).map_err(CatchUpError::Commit)?;
        for (tracked, outcome) in self.views.iter_mut().zip(outcomes) {
            tracked.take(outcome, is_more, &self.store)?;
        }
        self.is_stale = false;
        Ok(self.position())
    }

    /// Reads the checkpoints again if a step did not come to its end.
    fn refresh(&mut self) -> Result<(), CatchUpError> {
        if self.is_stale {
            for tracked in &mut self.views {
                load::again(&self.store, tracked)?;
            }
            self.is_stale = false;
        }
        Ok(())
    }

    /// Folds a page into every view and collects what is to be written. None at the head of the log.
    fn fold(
        &mut self,
        limit: usize,
        batch: &mut Batch,
    ) -> Result<Option<(Page, Vec<Outcome>)>, CatchUpError> {
        let (after, snapshot) = (self.position(), self.store.snapshot());
        let parts = self.views.iter_mut().map(Tracked::part).collect();
        // Until the commit is done, nobody knows what the store has of what was folded.
        self.is_stale = true;
        let Some((page, made)) = Page::fold((&self.log, &mut self.reading), after, limit, &snapshot, parts)?
        else {
            self.is_stale = false;
            return Ok(None);
        };
        let mut outcomes = Vec::with_capacity(self.views.len());
        for (tracked, made) in self.views.iter().zip(made) {
            let of_view = |source| CatchUpError::View { view: tracked.view.name, source };
            outcomes.push(match made {
                Ok(None) => Outcome::Seen,
                Ok(Some((rows, poison))) => {
                    let checkpoint = tracked.checkpoint.after(page.last, page.last_hash, poison.len());
                    let kept =
                        tracked.write(&self.store, batch, rows, &checkpoint, &poison).map_err(of_view)?;
                    Outcome::Taken { checkpoint, poison, kept }
                }
                Err(error) if error.is_damage() && !tracked.was_damaged => Outcome::Damaged(error),
                Err(source) => return Err(of_view(source)),
            });
        }
        Ok(Some((page, outcomes)))
    }
}

impl Tracked {
    fn new(view: &Arc<Registered>, side: Side) -> Self {
        let checkpoint = Checkpoint::start(view.version, Role::Answering);
        let view = Arc::clone(view);
        Self { view, side, checkpoint, kept: KeptRows::default(), was_damaged: false }
    }

    /// What it gets of the next page.
    fn part(&mut self) -> Part<'_> {
        let kept = std::mem::take(&mut self.kept);
        Part { view: &self.view, side: self.side, after: self.checkpoint.position, kept }
    }

    /// Goes on from a checkpoint.
    pub(crate) fn resume(&mut self, side: Side, checkpoint: Checkpoint) {
        (self.side, self.checkpoint, self.kept) = (side, checkpoint, KeptRows::default());
    }

    /// Adds what a page makes of the view: rows, checkpoint and parked events together.
    fn write(
        &self,
        store: &Store,
        batch: &mut Batch,
        rows: Rows<'_>,
        checkpoint: &Checkpoint,
        poison: &Poison,
    ) -> Result<KeptRows, RowError> {
        let kept = rows.write_to(store.sealing(), batch)?;
        for (position, Unfit { thread_id, origin, reason }) in poison {
            let (view, thread_id) = (self.view.name.to_owned(), thread_id.clone());
            let key = ParkedKey { view, position: *position, thread_id };
            let row = ParkedRow { reason: reason.clone() };
            store.put_of(batch, self.side, &key, &row, *origin)?;
        }
        let key = CheckpointKey { view: self.view.name.to_owned() };
        store.put(batch, self.side, &key, checkpoint)?;
        Ok(kept)
    }

    /// Takes over what has been committed, and tells of what was skipped.
    fn take(&mut self, outcome: Outcome, is_more: bool, store: &Store) -> Result<(), CatchUpError> {
        let view = self.view.name;
        match outcome {
            Outcome::Seen => {}
            Outcome::Taken { checkpoint, poison, kept } => {
                self.checkpoint = checkpoint;
                self.kept = if is_more { kept } else { KeptRows::default() };
                for (position, Unfit { reason, .. }) in poison {
                    tracing::warn!(view, position, reason, "parked an event that the view cannot take");
                }
            }
            Outcome::Damaged(error) => {
                tracing::warn!(
                    view,
                    error = chain(&error),
                    "a row is damaged: the view is made again from the log"
                );
                self.checkpoint = rebuild::reset(store, self.side, &self.view, self.checkpoint.role)
                    .map_err(|source| CatchUpError::View { view, source })?;
                self.was_damaged = true;
            }
        }
        Ok(())
    }
}
