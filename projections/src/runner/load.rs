//! Where a view goes on, and whether it can.

use eventlog::{EventLog, Position, ReadError};

use super::{CatchUpError, Tracked, page::chain};
use crate::{
    checkpoint::{Checkpoint, Role},
    keys::checkpoint::CheckpointKey,
    rebuild::clear,
    store::{RowError, Side, Store},
    view::Registered,
};

/// What a side of a view holds.
enum Found {
    Nothing,
    Rows(Checkpoint),
    Damaged(RowError),
}

/// Finds the rows of a view that answer. Those that cannot are deleted, so that the view is made
/// again from the beginning: there is nothing that could answer meanwhile.
pub(super) fn answering(log: &EventLog, store: &Store, tracked: &mut Tracked) -> Result<(), CatchUpError> {
    let view = &*tracked.view;
    let of_view = |source| CatchUpError::View { view: view.name, source };
    let (side, found) = answering_side(store, view).map_err(of_view)?;
    let why = match found {
        Found::Nothing => None,
        Found::Rows(stored) => match obstacle(log, &stored, view)? {
            None => {
                store.set_answering(view.kinds, side);
                tracked.resume(side, stored);
                return Ok(());
            }
            why @ Some(_) => why,
        },
        Found::Damaged(error) => Some(chain(&error)),
    };
    if let Some(why) = why {
        tracing::warn!(view = view.name, why, "the view is made again from the log");
    }
    // What was being made beside them is no longer needed.
    for side in Side::BOTH {
        clear(store, side, view).map_err(of_view)?;
    }
    store.set_answering(view.kinds, Side::First);
    tracked.resume(Side::First, Checkpoint::start(view.version, Role::Answering));
    Ok(())
}

/// Finds the rows of a view that are being made in a role, on the side that does not answer. What
/// is there and cannot be gone on with is deleted.
pub(super) fn in_the_making(
    log: &EventLog,
    store: &Store,
    tracked: &mut Tracked,
    role: Role,
) -> Result<(), CatchUpError> {
    let view = &*tracked.view;
    let of_view = |source| CatchUpError::View { view: view.name, source };
    let side = tracked.side;
    let stored = match on_side(store, side, view).map_err(of_view)? {
        Found::Rows(stored) if stored.role == role && stored.version == view.version => {
            obstacle(log, &stored, view)?.is_none().then_some(stored)
        }
        Found::Rows(_) | Found::Nothing | Found::Damaged(_) => None,
    };
    let checkpoint = match stored {
        Some(stored) => stored,
        None => {
            clear(store, side, view).map_err(of_view)?;
            Checkpoint::start(view.version, role)
        }
    };
    tracked.resume(side, checkpoint);
    Ok(())
}

/// Reads again how far a view has got, after a commit that may have failed.
pub(super) fn again(store: &Store, tracked: &mut Tracked) -> Result<(), CatchUpError> {
    let view = &*tracked.view;
    let stored = store.snapshot().get_on(tracked.side, &CheckpointKey { view: view.name.to_owned() });
    let stored = stored.map_err(|source| CatchUpError::View { view: view.name, source })?;
    let checkpoint = stored.unwrap_or(Checkpoint::start(view.version, tracked.checkpoint.role));
    tracked.resume(tracked.side, checkpoint);
    Ok(())
}

/// The side that answers, and what it holds: the first one, where there is none yet.
fn answering_side(store: &Store, view: &Registered) -> Result<(Side, Found), RowError> {
    let mut damaged = None;
    for side in Side::BOTH {
        match on_side(store, side, view)? {
            Found::Rows(stored) if stored.role == Role::Answering => return Ok((side, Found::Rows(stored))),
            Found::Rows(_) | Found::Nothing => {}
            Found::Damaged(error) => damaged = Some(error),
        }
    }
    Ok((Side::First, damaged.map_or(Found::Nothing, Found::Damaged)))
}

fn on_side(store: &Store, side: Side, view: &Registered) -> Result<Found, RowError> {
    match store.snapshot().get_on(side, &CheckpointKey { view: view.name.to_owned() }) {
        Ok(None) => Ok(Found::Nothing),
        Ok(Some(stored)) => Ok(Found::Rows(stored)),
        Err(error) if error.is_damage() => Ok(Found::Damaged(error)),
        Err(error) => Err(error),
    }
}

/// Why a view cannot go on from its checkpoint, if it cannot.
fn obstacle(log: &EventLog, stored: &Checkpoint, view: &Registered) -> Result<Option<String>, ReadError> {
    let head = log.head().get();
    if !(view.reads_since..=view.version).contains(&stored.version) {
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
