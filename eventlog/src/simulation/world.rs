//! Where a log lives and how its process dies: what a simulation needs of the store under test.

use super::seed::Seed;
use crate::{EventLog, OpenError, Options};

/// Where a process fails or dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Point {
    /// It dies while it opens the log.
    Opening,
    /// It dies before new keys are saved.
    KeysUnsaved,
    /// It dies while new keys are saved.
    KeysHalfSaved,
    /// It dies when the keys are saved and the group is not.
    BeforeCommit,
    /// It dies in the middle of a commit, of which nothing is left.
    HalfThenLost,
    /// It dies in the middle of a commit, all of which is there afterwards.
    HalfThenKept,
    /// It dies when a group is durable and nobody has an answer.
    Unanswered,
    /// The disk is full. It lives on, and writes no more.
    OutOfSpace,
    /// A commit is there, and the error says that it is not. It lives on, and writes no more.
    FailedButWritten,
    /// It dies while it reads.
    Reading,
    /// It dies while keys are destroyed.
    Erasing,
    /// It dies between two groups.
    Idle,
    /// It dies while it is closed in good order.
    Closing,
}

impl Point {
    pub(super) const ALL: [Self; 13] = [
        Self::Opening,
        Self::KeysUnsaved,
        Self::KeysHalfSaved,
        Self::BeforeCommit,
        Self::HalfThenLost,
        Self::HalfThenKept,
        Self::Unanswered,
        Self::OutOfSpace,
        Self::FailedButWritten,
        Self::Reading,
        Self::Erasing,
        Self::Idle,
        Self::Closing,
    ];
}

/// How a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    /// It has met nothing.
    Well,
    /// It has met a failed write, and can still be read.
    Failing,
    /// It is dead: what it does from now on changes nothing.
    Dead,
}

/// A store under test, with the disk that it is on.
pub(super) trait World {
    /// An empty disk. The seed decides what a crash leaves.
    fn new(dice: Seed) -> Self
    where
        Self: Sized;
    /// Starts a process on what is on the disk.
    fn open(&mut self, options: Options) -> Result<EventLog, OpenError>;
    /// Has the process fail at the n-th occasion from now, counted from 0; or at none.
    fn arm(&self, fault: Option<(Point, usize)>);
    /// How the process is.
    fn condition(&self) -> Condition;
    /// Ends the process between two groups: at [`Point::Idle`], or at [`Point::Erasing`] when the keys
    /// that were destroyed last may be destroyed or not.
    fn kill(&self, point: Point);
    /// An erasure was answered, so that it must last.
    fn erasure_was_answered(&self);
    /// Puts what survived in the place of what was there. The log of the process is dropped before.
    fn bury(&mut self);
}
