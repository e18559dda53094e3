//! Making a view again: its rows are deleted, and the log is folded from the beginning.

use eventlog::engine::Batch;

use crate::{
    checkpoint::Checkpoint,
    keys::{KeyWriter, checkpoint::CheckpointKey, checkpoint::ParkedKey},
    store::{ROWS, RowError, Store},
    view::Registered,
};

/// Keys that are deleted at once: enough that a large view is gone in a few hundred commits, few
/// enough that one commit stays below some hundred KiB.
const KEYS_PER_DELETE: usize = 2_000;

/// Deletes all rows of a view and puts its checkpoint before the first event. A crash on the way
/// leaves the old checkpoint, which led here and will do so again.
pub(crate) fn reset(store: &Store, view: &Registered) -> Result<Checkpoint, RowError> {
    for kind in view.kinds {
        delete(store, &KeyWriter::new(*kind))?;
    }
    delete(store, &ParkedKey::of_view(view.name))?;
    let checkpoint = Checkpoint::start(view.version);
    let mut batch = Batch::new();
    store.put(&mut batch, &CheckpointKey { view: view.name.to_owned() }, &checkpoint)?;
    store.commit(batch)?;
    Ok(checkpoint)
}

fn delete(store: &Store, prefix: &KeyWriter) -> Result<(), RowError> {
    loop {
        let keys = store.snapshot().keys(&prefix.range(), KEYS_PER_DELETE)?;
        if keys.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::new();
        for key in keys {
            batch.delete(ROWS, key);
        }
        store.commit(batch)?;
    }
}
