//! Making views again, beside those that answer.
//!
//! A view that is made again is made on the side that does not answer, page by page like any other,
//! with a checkpoint of its own: so it goes on where it was after a crash. When it has got as far
//! as the view that answers, one commit lets it answer in its place. Readers see the one or the
//! other, and never anything between. What no longer answers is deleted afterwards; a crash on the
//! way leaves its checkpoint, which says that it is to be deleted.

mod board;
mod compare;
mod delete;

use std::{
    ops::ControlFlow,
    sync::{Arc, MutexGuard, PoisonError, atomic::Ordering},
};

use eventlog::{Position, engine::Batch};

use crate::{
    checkpoint::{Checkpoint, Role},
    keys::checkpoint::CheckpointKey,
    projections::Projections,
    runner::{CatchUpError, Runner},
    store::{RowError, Side},
    view::Registered,
};
pub(crate) use board::Board;
pub use board::{LastRebuild, RebuildOutcome, RebuildPhase, RebuildProgress, Turn};
pub use compare::Difference;
pub(crate) use delete::{clear, reset};

/// What is to be made again, and what for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RebuildRequest {
    /// The view; `None` means all, with one read of the log.
    pub view: Option<String>,
    /// Whether to compare what was made with the view that answers, instead of replacing it.
    pub check: bool,
}

/// Why views were not made again.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// There is no such view.
    #[error("there is no view {name}; the views are {}", .known.join(", "))]
    UnknownView {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// Another rebuild has not come to its end.
    #[error("views are being made again already ({}); ask again when that is done", .views.join(", "))]
    Busy {
        /// Which.
        views: Vec<&'static str>,
    },
    /// The log could not be followed, or rows could not be written.
    #[error("could not make the views again")]
    CatchUp(#[from] CatchUpError),
    /// Rows could not be compared or deleted.
    #[error("could not read or delete rows of the views")]
    Rows(#[from] RowError),
}

/// Is told how far a rebuild is, and says whether it is to go on.
pub type WatchRebuild<'a> = dyn FnMut(&RebuildProgress) -> ControlFlow<()> + 'a;

impl Projections {
    /// Makes views again while they answer, and lets what was made answer in their place, or
    /// compares the two. Blocks for as long as that takes; one at a time.
    ///
    /// When it is told to stop, or the process ends, what was made so far is kept, and the same
    /// request goes on from there.
    pub fn rebuild(
        &self,
        request: &RebuildRequest,
        watch: &mut WatchRebuild<'_>,
    ) -> Result<RebuildOutcome, RebuildError> {
        let turn = self.begin_rebuild(request)?;
        self.finish_rebuild(turn, watch)
    }

    /// Takes the turn to make views again, so that whoever asked can be told at once whether it may.
    pub fn begin_rebuild(&self, request: &RebuildRequest) -> Result<Turn, RebuildError> {
        let known: Vec<&'static str> = self.0.views.iter().map(|(name, _)| *name).collect();
        let names = match &request.view {
            None => known,
            Some(wanted) => match known.iter().find(|name| *name == wanted) {
                Some(name) => vec![*name],
                None => return Err(RebuildError::UnknownView { name: wanted.clone(), known }),
            },
        };
        self.take_turn(names, request.check)
    }

    fn take_turn(&self, names: Vec<&'static str>, is_check: bool) -> Result<Turn, RebuildError> {
        let board = Arc::clone(&self.0.rebuilds);
        board.begin(names, is_check, self.0.log.head())
    }

    /// Does what a turn was taken for.
    pub fn finish_rebuild(
        &self,
        mut turn: Turn,
        watch: &mut WatchRebuild<'_>,
    ) -> Result<RebuildOutcome, RebuildError> {
        let outcome = match self.make(&mut turn, watch) {
            Err(RebuildError::CatchUp(error)) if error.is_closed() => {
                Ok(RebuildOutcome::Stopped { position: turn.progress().position })
            }
            done => done,
        };
        turn.end(&outcome);
        outcome
    }

    fn make(&self, turn: &mut Turn, watch: &mut WatchRebuild<'_>) -> Result<RebuildOutcome, RebuildError> {
        let role = if turn.progress().is_check { Role::Comparison } else { Role::Successor };
        let views = self.other_sides(&turn.progress().views);
        let mut made = Runner::in_the_making(self.0.log.clone(), self.0.store.clone(), &views, role)?;
        turn.begin_at(made.position());
        // So near to the head the rest is taken while the views that answer wait for it.
        while made.position().get().saturating_add(self.0.page_events as u64) < self.0.log.head().get() {
            let position = made.step(self.0.page_events)?;
            let is_over = watch(turn.moved_to(position, self.0.log.head())).is_break();
            if is_over || self.0.is_stopping.load(Ordering::Relaxed) {
                return Ok(RebuildOutcome::Stopped { position });
            }
        }
        match role {
            Role::Comparison => self.compare(turn, made, watch),
            Role::Answering | Role::Successor | Role::Retired => self.replace(turn, made, watch),
        }
    }

    /// The views of these names with the sides that do not answer.
    fn other_sides(&self, names: &[&'static str]) -> Vec<(Arc<Registered>, Side)> {
        let runner = self.runner();
        let wanted = runner.views.iter().filter(|tracked| names.contains(&tracked.view.name));
        wanted.map(|tracked| (Arc::clone(&tracked.view), tracked.side.other())).collect()
    }

    /// Lets what was made answer. The views that answer stand still meanwhile, so that nobody sees
    /// one go back.
    fn replace(
        &self,
        turn: &mut Turn,
        mut made: Runner,
        watch: &mut WatchRebuild<'_>,
    ) -> Result<RebuildOutcome, RebuildError> {
        let mut answering = self.runner();
        let reached = answering.views.iter().map(|tracked| tracked.checkpoint.position).max();
        while made.position().get() < reached.unwrap_or(0) {
            made.step(self.0.page_events)?;
        }
        let position = made.position();
        let retired = self.swap(&mut answering, &made)?;
        self.publish(answering.position());
        drop(answering);
        let phase = turn.enters(RebuildPhase::Deleting, position, self.0.log.head());
        // They have answered: whether somebody watches on makes no difference any more.
        let _ = watch(phase);
        for (view, side) in retired {
            clear(&self.0.store, side, &view)?;
        }
        Ok(RebuildOutcome::Replaced { position })
    }

    /// One commit: the checkpoints of the ones say that they answer, those of the others that they
    /// no longer do. Gives what no longer does.
    fn swap(
        &self,
        answering: &mut Runner,
        made: &Runner,
    ) -> Result<Vec<(Arc<Registered>, Side)>, CatchUpError> {
        let (mut batch, mut sides, mut retired) = (Batch::new(), Vec::new(), Vec::new());
        for made in &made.views {
            let view = &made.view;
            let of_view = |source| CatchUpError::View { view: view.name, source };
            let key = CheckpointKey { view: view.name.to_owned() };
            let old = answering.views.iter_mut().filter(|old| old.view.name == view.name);
            for old in old {
                let new_checkpoint = Checkpoint { role: Role::Answering, ..made.checkpoint };
                let old_checkpoint = Checkpoint { role: Role::Retired, ..old.checkpoint };
                self.0.store.put(&mut batch, made.side, &key, &new_checkpoint).map_err(of_view)?;
                self.0.store.put(&mut batch, old.side, &key, &old_checkpoint).map_err(of_view)?;
                sides.push((view.kinds, made.side));
                retired.push((Arc::clone(view), old.side));
            }
        }
        self.0.store.commit_and_answer(batch, &sides).map_err(CatchUpError::Commit)?;
        for made in &made.views {
            let old = answering.views.iter_mut().filter(|old| old.view.name == made.view.name);
            old.for_each(|old| {
                old.resume(made.side, Checkpoint { role: Role::Answering, ..made.checkpoint });
            });
        }
        Ok(retired)
    }

    /// Compares what was made with what answers, both as they are at one position, and throws it
    /// away.
    fn compare(
        &self,
        turn: &mut Turn,
        mut made: Runner,
        watch: &mut WatchRebuild<'_>,
    ) -> Result<RebuildOutcome, RebuildError> {
        let mut answering = self.runner();
        let position = self.0.log.head();
        self.bring_to(&mut answering, position)?;
        self.publish(answering.position());
        self.bring_to(&mut made, position)?;
        let snapshot = self.0.store.snapshot();
        drop(answering);
        let phase = turn.enters(RebuildPhase::Comparing, position, position);
        let mut difference = None;
        if watch(phase).is_break() {
            return Ok(RebuildOutcome::Stopped { position });
        }
        for tracked in &made.views {
            difference = compare::first_difference(&snapshot, &tracked.view, tracked.side)?;
            if difference.is_some() {
                break;
            }
        }
        drop(snapshot);
        for tracked in &made.views {
            clear(&self.0.store, tracked.side, &tracked.view)?;
        }
        Ok(match difference {
            Some(difference) => RebuildOutcome::Different { position, difference: Box::new(difference) },
            None => RebuildOutcome::Same { position },
        })
    }

    /// Goes on with what an earlier process left half done, and makes again what an earlier version
    /// made. Does nothing while another rebuild is at work.
    pub(crate) fn renew(&self) -> Result<(), RebuildError> {
        let mut wanted = Vec::new();
        for (view, side) in self.other_sides(&self.names()) {
            let key = CheckpointKey { view: view.name.to_owned() };
            let other = self.0.store.snapshot().get_on(side, &key);
            match other {
                Ok(Some(Checkpoint { role: Role::Successor, .. })) => wanted.push(view.name),
                Ok(None) => {}
                Ok(Some(_)) => clear(&self.0.store, side, &view)?,
                Err(error) if error.is_damage() => clear(&self.0.store, side, &view)?,
                Err(error) => return Err(error.into()),
            }
        }
        for tracked in &self.runner().views {
            if tracked.checkpoint.version < tracked.view.version && !wanted.contains(&tracked.view.name) {
                wanted.push(tracked.view.name);
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        tracing::info!(views = wanted.join(", "), "views are made again beside those that answer");
        let turn = self.take_turn(wanted, false)?;
        self.finish_rebuild(turn, &mut |_| ControlFlow::Continue(())).map(drop)
    }

    /// The views.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.views.iter().map(|(name, _)| *name).collect()
    }

    fn runner(&self) -> MutexGuard<'_, Runner> {
        self.0.runner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes exactly the events up to a position.
    fn bring_to(&self, runner: &mut Runner, position: Position) -> Result<(), CatchUpError> {
        loop {
            let missing = position.get().saturating_sub(runner.position().get());
            if missing == 0 {
                return Ok(());
            }
            let page = usize::try_from(missing).unwrap_or(usize::MAX).min(self.0.page_events);
            runner.step(page)?;
        }
    }
}
