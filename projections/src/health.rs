//! How the views are, for people who operate them.

use eventlog::{Position, engine::Direction};

use crate::{
    keys::checkpoint::{CheckpointKey, ParkedKey},
    projections::Projections,
    store::RowError,
};

/// How one view is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewHealth {
    /// The view.
    pub name: &'static str,
    /// The version of its fold.
    pub version: u32,
    /// The last position that it has taken.
    pub position: Position,
    /// Events of the log that it has not taken yet.
    pub lag_events: u64,
    /// Events that it skipped because it could not take them.
    pub parked: u64,
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
    pub fn health(&self) -> Result<Vec<ViewHealth>, RowError> {
        let head = self.0.log.head();
        let snapshot = self.0.store.snapshot();
        let mut views = Vec::with_capacity(self.0.views.len());
        for (name, version) in self.0.views.iter().copied() {
            let checkpoint = snapshot.get(&CheckpointKey { view: name.to_owned() })?;
            let position = checkpoint.map_or(0, |checkpoint| checkpoint.position);
            views.push(ViewHealth {
                name,
                version,
                position: Position::new(position),
                lag_events: head.get().saturating_sub(position),
                parked: checkpoint.map_or(0, |checkpoint| checkpoint.parked),
            });
        }
        Ok(views)
    }

    /// What a view has skipped after a position, at most `limit` events, ascending. Nothing for a
    /// view that does not exist.
    pub fn parked(&self, view: &str, after: Position, limit: usize) -> Result<Vec<Parked>, RowError> {
        let Some((view, _)) = self.0.views.iter().copied().find(|(name, _)| *name == view) else {
            return Ok(Vec::new());
        };
        let range = ParkedKey::after(view, after.get());
        let rows = self.0.store.snapshot().page::<ParkedKey>(&range, Direction::Forward, limit)?;
        let parked = |(key, row): (ParkedKey, crate::checkpoint::ParkedRow)| Parked {
            view,
            position: Position::new(key.position),
            reason: row.reason,
        };
        Ok(rows.into_iter().map(parked).collect())
    }
}
