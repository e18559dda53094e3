//! One read of the log feeds all views.
//!
//! A step reads one page from where the slowest view is, decodes it once, folds it into every view
//! that has not seen it, and commits all rows and all checkpoints in one batch. So a crash between
//! two steps leaves every view exactly at its checkpoint.

mod again;
mod load;
mod page;

use eventlog::{EventLog, Position, ReadError, engine::Batch};

use crate::{
    checkpoint::{Checkpoint, ParkedRow},
    keys::checkpoint::{CheckpointKey, ParkedKey},
    rebuild,
    rows::Rows,
    store::{RowError, Store},
    view::Registered,
};
pub(crate) use page::chain;
use page::{Page, Poison, Unfit};

/// Events of one step. A page is one commit and one snapshot, which 512 events share well; more
/// would hold more rows in memory and make readers and a shutdown wait longer.
pub(crate) const PAGE_EVENTS: usize = 512;

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

/// Feeds the views. The one writer of their rows.
pub(crate) struct Runner {
    log: EventLog,
    store: Store,
    views: Vec<Tracked>,
    /// Whether the store may differ from what is remembered here: nothing was loaded yet, or a
    /// step did not come to its end.
    is_stale: bool,
}

/// A view and how far it has got.
struct Tracked {
    view: Registered,
    checkpoint: Checkpoint,
    /// A damaged row was met. The view is made again once; a second time is a defect, not damage.
    was_damaged: bool,
}

/// What a page makes of one view.
enum Outcome {
    /// The view has it, but for some events.
    Taken { checkpoint: Checkpoint, poison: Poison },
    /// The view had seen all of it.
    Seen,
    /// A row of the view is damaged.
    Damaged(RowError),
}

impl Runner {
    /// Views at their checkpoints; those that cannot go on from there begin again.
    pub(crate) fn open(log: EventLog, store: Store, views: Vec<Registered>) -> Result<Self, CatchUpError> {
        let track = |view: Registered| {
            let checkpoint = Checkpoint::start(view.version);
            Tracked { view, checkpoint, was_damaged: false }
        };
        let mut runner = Self { log, store, views: views.into_iter().map(track).collect(), is_stale: true };
        runner.refresh()?;
        Ok(runner)
    }

    /// The position that every view has reached.
    pub(crate) fn position(&self) -> Position {
        let positions = self.views.iter().map(|tracked| tracked.checkpoint.position);
        Position::new(positions.min().unwrap_or(self.log.head().get()))
    }

    /// Takes one page of at most `limit` events. At the head of the log it changes nothing.
    pub(crate) fn step(&mut self, limit: usize) -> Result<Position, CatchUpError> {
        self.refresh()?;
        let Some(page) = Page::read(&self.log, self.position(), limit)? else { return Ok(self.position()) };
        self.is_stale = true;
        let mut batch = Batch::new();
        let outcomes = self.fold(&page, &mut batch)?;
        self.store.commit(batch).map_err(CatchUpError::Commit)?;
        for (tracked, outcome) in self.views.iter_mut().zip(outcomes) {
            tracked.take(outcome, &self.store)?;
        }
        self.is_stale = false;
        Ok(self.position())
    }

    /// Reads the checkpoints again if a step did not come to its end.
    fn refresh(&mut self) -> Result<(), CatchUpError> {
        if self.is_stale {
            for tracked in &mut self.views {
                tracked.checkpoint = load::checkpoint(&self.log, &self.store, &tracked.view)?;
            }
            self.is_stale = false;
        }
        Ok(())
    }

    /// Folds a page into every view and collects what is to be written.
    fn fold(&self, page: &Page, batch: &mut Batch) -> Result<Vec<Outcome>, CatchUpError> {
        let snapshot = self.store.snapshot();
        let mut outcomes = Vec::with_capacity(self.views.len());
        for tracked in &self.views {
            let name = tracked.view.name;
            let outcome = match page.fold(&tracked.view, tracked.checkpoint.position, &snapshot) {
                Ok(None) => Outcome::Seen,
                Ok(Some((rows, poison))) => {
                    let checkpoint = tracked.checkpoint.after(page.last(), poison.len());
                    write(&self.store, batch, name, rows, &checkpoint, &poison)
                        .map_err(|source| CatchUpError::View { view: name, source })?;
                    Outcome::Taken { checkpoint, poison }
                }
                Err(error) if error.is_damage() && !tracked.was_damaged => Outcome::Damaged(error),
                Err(source) => return Err(CatchUpError::View { view: name, source }),
            };
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }
}

impl Tracked {
    /// Takes over what has been committed, and tells of what was skipped.
    fn take(&mut self, outcome: Outcome, store: &Store) -> Result<(), CatchUpError> {
        let view = self.view.name;
        match outcome {
            Outcome::Seen => {}
            Outcome::Taken { checkpoint, poison } => {
                self.checkpoint = checkpoint;
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
                self.checkpoint = rebuild::reset(store, &self.view)
                    .map_err(|source| CatchUpError::View { view, source })?;
                self.was_damaged = true;
            }
        }
        Ok(())
    }
}

/// Adds what one view makes of a page: rows, checkpoint and parked events together.
fn write(
    store: &Store,
    batch: &mut Batch,
    view: &str,
    rows: Rows<'_>,
    checkpoint: &Checkpoint,
    poison: &Poison,
) -> Result<(), RowError> {
    rows.write_to(store.sealing(), batch)?;
    for (position, Unfit { thread_id, origin, reason }) in poison {
        let (view, thread_id) = (view.to_owned(), thread_id.clone());
        let key = ParkedKey { view, position: *position, thread_id };
        store.put_of(batch, &key, &ParkedRow { reason: reason.clone() }, *origin)?;
    }
    store.put(batch, &CheckpointKey { view: view.to_owned() }, checkpoint)
}
