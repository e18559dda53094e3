//! Which views are being made again, how far they are, and how the last time ended.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use domain::causes::with_causes;
use eventlog::Position;

use super::{Difference, RebuildError};

/// How far a rebuild is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuildProgress {
    /// Tells one rebuild of this process from another; counts from 1.
    pub number: u64,
    /// The views.
    pub views: Vec<&'static str>,
    /// Whether they are only compared with those that answer.
    pub is_check: bool,
    /// What is being done.
    pub phase: RebuildPhase,
    /// The last position that was taken.
    pub position: Position,
    /// The last position of the log.
    pub head: Position,
    /// Events per second so far, by this process; 0 before the first page.
    pub events_per_second: u64,
    /// How long the rest of the log will take at this speed; none before the first page.
    pub seconds_left: Option<u64>,
}

/// What a rebuild is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebuildPhase {
    /// Folding the log.
    Folding,
    /// Comparing what was made with what answers.
    Comparing,
    /// What was made answers; what answered before is being deleted.
    Deleting,
}

/// How a rebuild ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RebuildOutcome {
    /// What was made answers.
    Replaced {
        /// The position that it had reached then.
        position: Position,
    },
    /// What was made is what answers, row by row.
    Same {
        /// The position at which they were compared.
        position: Position,
    },
    /// What was made is not what answers.
    Different {
        /// The position at which they were compared.
        position: Position,
        /// The first row that differs.
        difference: Box<Difference>,
    },
    /// It was told to stop. The same request goes on from here.
    Stopped {
        /// The last position that was taken.
        position: Position,
    },
}

/// How the last rebuild of a view ended, in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastRebuild {
    /// Tells one rebuild of this process from another; counts from 1.
    pub number: u64,
    /// How it ended; else why it failed, with all causes.
    pub outcome: Result<RebuildOutcome, String>,
}

/// What is known of rebuilds.
#[derive(Default)]
pub(crate) struct Board(Mutex<Notes>);

#[derive(Default)]
struct Notes {
    begun: u64,
    running: Option<RebuildProgress>,
    last: HashMap<&'static str, LastRebuild>,
}

/// The turn to make views again: there is one. To drop it is to give it back.
pub struct Turn {
    board: Arc<Board>,
    progress: RebuildProgress,
    /// When and where the folding began.
    began: (Instant, Position),
}

impl Board {
    pub(super) fn begin(
        self: Arc<Self>,
        views: Vec<&'static str>,
        is_check: bool,
        head: Position,
    ) -> Result<Turn, RebuildError> {
        let mut notes = self.notes();
        if let Some(running) = &notes.running {
            return Err(RebuildError::Busy { views: running.views.clone() });
        }
        notes.begun += 1;
        let progress = RebuildProgress {
            number: notes.begun,
            views,
            is_check,
            phase: RebuildPhase::Folding,
            position: Position::ZERO,
            head,
            events_per_second: 0,
            seconds_left: None,
        };
        notes.running = Some(progress.clone());
        drop(notes);
        Ok(Turn { board: self, progress, began: (Instant::now(), Position::ZERO) })
    }

    /// How far a view is, if it is being made again.
    pub(crate) fn running(&self, view: &str) -> Option<RebuildProgress> {
        self.notes().running.clone().filter(|running| running.views.contains(&view))
    }

    /// How the last rebuild of a view ended.
    pub(crate) fn last(&self, view: &str) -> Option<LastRebuild> {
        self.notes().last.get(view).cloned()
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// How far it is.
    pub const fn progress(&self) -> &RebuildProgress {
        &self.progress
    }

    /// The folding begins, perhaps where an earlier one stopped.
    pub(super) fn begin_at(&mut self, position: Position) {
        self.began = (Instant::now(), position);
        self.progress.position = position;
        self.show();
    }

    pub(super) fn moved_to(&mut self, position: Position, head: Position) -> &RebuildProgress {
        let (since, from) = self.began;
        let taken = position.get().saturating_sub(from.get());
        let milliseconds = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
        let per_second = taken.saturating_mul(1_000) / milliseconds;
        let left = head.get().saturating_sub(position.get());
        self.progress.position = position;
        self.progress.head = head;
        self.progress.events_per_second = per_second;
        self.progress.seconds_left = (per_second > 0).then(|| left.div_ceil(per_second.max(1)));
        self.show()
    }

    pub(super) fn enters(
        &mut self,
        phase: RebuildPhase,
        position: Position,
        head: Position,
    ) -> &RebuildProgress {
        self.progress.phase = phase;
        self.moved_to(position, head)
    }

    pub(super) fn end(self, outcome: &Result<RebuildOutcome, RebuildError>) {
        let outcome = match outcome {
            Ok(outcome) => Ok(outcome.clone()),
            Err(error) => Err(with_causes(error)),
        };
        let last = LastRebuild { number: self.progress.number, outcome };
        let mut notes = self.board.notes();
        for view in &self.progress.views {
            notes.last.insert(view, last.clone());
        }
    }

    fn show(&self) -> &RebuildProgress {
        self.board.notes().running = Some(self.progress.clone());
        &self.progress
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.board.notes().running = None;
    }
}
