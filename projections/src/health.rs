//! How the views are, for people who operate them.

use std::sync::PoisonError;

use eventlog::{Position, ReadError, engine::Direction};
use jiff::Timestamp;

use crate::{
    checkpoint::Checkpoint,
    keys::checkpoint::ParkedKey,
    projections::Projections,
    rebuild::{LastRebuild, RebuildProgress},
    store::{RowError, Side},
};

/// How one view is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewHealth {
    /// The view.
    pub name: &'static str,
    /// The version of the fold that made what answers. It is an earlier one until the view is made
    /// again.
    pub version: u32,
    /// The last position that it has taken.
    pub position: Position,
    /// Events of the log that it has not taken yet.
    pub lag_events: u64,
    /// When the first of them was recorded: since then it has been behind.
    pub behind_since: Option<Timestamp>,
    /// Events that it skipped because it could not take them.
    pub parked: u64,
    /// How far it is, if it is being made again.
    pub rebuild: Option<RebuildProgress>,
    /// How that ended the last time, in this process.
    pub last_rebuild: Option<LastRebuild>,
}

/// An event that a view skipped because it could not take it. It is forgotten with its thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// The view.
    pub view: &'static str,
    /// The event.
    pub position: Position,
    /// Why.
    pub reason: String,
}

impl Projections {
    /// How each view is.
    pub fn health(&self) -> Result<Vec<ViewHealth>, ReadError> {
        let head = self.0.log.head();
        let mut views = Vec::with_capacity(self.0.views.len());
        for (name, _, Checkpoint { version, position, parked, .. }) in self.checkpoints() {
            let position = Position::new(position);
            let behind_since = match position < head {
                true => self.0.log.read_all(position, 1)?.first().map(|event| event.recorded_at),
                false => None,
            };
            views.push(ViewHealth {
                name,
                version,
                position,
                lag_events: head.get().saturating_sub(position.get()),
                behind_since,
                parked,
                rebuild: self.0.rebuilds.running(name),
                last_rebuild: self.0.rebuilds.last(name),
            });
        }
        Ok(views)
    }

    /// Each view with the side that answers and how far that has got.
    fn checkpoints(&self) -> Vec<(&'static str, Side, Checkpoint)> {
        let runner = self.0.runner.lock().unwrap_or_else(PoisonError::into_inner);
        let of_view =
            |tracked: &crate::runner::Tracked| (tracked.view.name, tracked.side, tracked.checkpoint);
        runner.views.iter().map(of_view).collect()
    }

    /// What a view has skipped after a position, at most `limit` events, ascending. Nothing for a
    /// view that does not exist.
    pub fn parked(&self, view: &str, after: Position, limit: usize) -> Result<Vec<Parked>, RowError> {
        let Some((view, side, _)) = self.checkpoints().into_iter().find(|(name, ..)| *name == view) else {
            return Ok(Vec::new());
        };
        let range = ParkedKey::after(view, after.get());
        let snapshot = self.0.store.snapshot();
        let rows = snapshot.page_on::<ParkedKey>(side, &range, Direction::Forward, limit)?;
        let parked = |(key, row): (ParkedKey, crate::checkpoint::ParkedRow)| Parked {
            view,
            position: Position::new(key.position),
            reason: row.reason,
        };
        Ok(rows.into_iter().map(parked).collect())
    }
}
