//! Deleting the rows of a view.

use eventlog::engine::{Batch, Direction, KeyRange};

use crate::{
    checkpoint::{Checkpoint, Role},
    keys::{
        KeyWriter, RowKey as _,
        checkpoint::{CheckpointKey, ParkedKey},
    },
    store::{RowError, Side, Store},
    view::Registered,
};

/// Keys that are deleted at once: enough that a large view is gone in a few hundred commits, few
/// enough that one commit stays below some hundred KiB.
const KEYS_PER_DELETE: usize = 2_000;

/// Deletes all rows of a view on a side and puts its checkpoint before the first event. A crash on
/// the way leaves the old checkpoint, which led here and will do so again.
pub(crate) fn reset(
    store: &Store,
    side: Side,
    view: &Registered,
    role: Role,
) -> Result<Checkpoint, RowError> {
    delete_rows(store, side, view)?;
    let checkpoint = Checkpoint::start(view.version, role);
    let mut batch = Batch::new();
    store.put(&mut batch, side, &CheckpointKey { view: view.name.to_owned() }, &checkpoint)?;
    store.commit(batch)?;
    Ok(checkpoint)
}

/// Deletes all rows of a view on a side, its checkpoint last.
pub(crate) fn clear(store: &Store, side: Side, view: &Registered) -> Result<(), RowError> {
    delete_rows(store, side, view)?;
    let checkpoint = CheckpointKey { view: view.name.to_owned() }.encode();
    delete(store, side, KeyRange::between(&checkpoint, &checkpoint))
}

fn delete_rows(store: &Store, side: Side, view: &Registered) -> Result<(), RowError> {
    for kind in view.kinds {
        delete(store, side, KeyWriter::new(*kind).range())?;
    }
    delete(store, side, ParkedKey::of_view(view.name).range())
}

/// Goes on behind the last key each time: what was deleted is still passed over for a while.
fn delete(store: &Store, side: Side, mut range: KeyRange) -> Result<(), RowError> {
    loop {
        // Bound to a name of its own: the snapshot must be gone before anything is deleted.
        let keys = store.snapshot().keys(side, &range, KEYS_PER_DELETE)?;
        let Some(last) = keys.last() else { return Ok(()) };
        range = range.beyond(last, Direction::Forward);
        let mut batch = Batch::new();
        for key in keys {
            batch.delete(side.rows(), key);
        }
        store.commit(batch)?;
    }
}
