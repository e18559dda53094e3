//! Where a view goes on, and whether it can.

use eventlog::{EventLog, Position, ReadError};

use super::{CatchUpError, page::chain};
use crate::{
    checkpoint::Checkpoint, keys::checkpoint::CheckpointKey, rebuild, store::Store, view::Registered,
};

/// The checkpoint of a view. A view that cannot go on from its checkpoint is emptied, so that it
/// is made again from the beginning.
pub(super) fn checkpoint(
    log: &EventLog,
    store: &Store,
    view: &Registered,
) -> Result<Checkpoint, CatchUpError> {
    let of_view = |source| CatchUpError::View { view: view.name, source };
    // Bound to a name of its own: the snapshot must be gone before anything is deleted.
    let stored = store.snapshot().get(&CheckpointKey { view: view.name.to_owned() });
    let why = match stored {
        Ok(None) => return Ok(Checkpoint::start(view.version)),
        Ok(Some(stored)) => match obstacle(log, &stored, view)? {
            None => return Ok(stored),
            Some(why) => why,
        },
        Err(error) if error.is_damage() => chain(&error),
        Err(error) => return Err(of_view(error)),
    };
    tracing::warn!(view = view.name, why, "the view is made again from the log");
    rebuild::reset(store, view).map_err(of_view)
}

/// Why a view cannot go on from its checkpoint, if it cannot.
fn obstacle(log: &EventLog, stored: &Checkpoint, view: &Registered) -> Result<Option<String>, ReadError> {
    let head = log.head().get();
    if stored.version != view.version {
        return Ok(Some(format!("its version is {} now and was {}", view.version, stored.version)));
    }
    if stored.position > head {
        let position = stored.position;
        return Ok(Some(format!("it was at position {position}, and the log ends at {head}")));
    }
    if stored.position == 0 {
        return Ok(None);
    }
    let at = log.read_all(Position::new(stored.position - 1), 1)?;
    let is_same = at.first().is_some_and(|event| event.hash == stored.hash);
    Ok((!is_same).then(|| format!("the event at position {} is another one now", stored.position)))
}
