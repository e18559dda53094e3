//! Makes tables of what is in memory.
//!
//! The copies by task go first: the checkpoint is in the same load as the entries, so that it never
//! says more than there is. Whatever a crash leaves without its checkpoint is loaded again, with the
//! same keys and values.

use super::{
    Checkpoint,
    generation::{Entry, Generation, Scope},
};
use crate::{
    engine::{Engine, EngineError, Put},
    keys::{self, INDEX, TASKS, run_place::RunPlace},
};

/// Loads a generation into the tables. Gives how far they go then.
pub(super) fn flush(engine: &Engine, generation: &Generation) -> Result<Option<Checkpoint>, EngineError> {
    let Some(checkpoint) = generation.checkpoint() else {
        return Ok(None);
    };
    engine.ingest(TASKS, &mut |put| put_tasks(generation, put))?;
    engine.ingest(INDEX, &mut |put| {
        // In the order of their kinds.
        put_tails(generation, put)?;
        put_keys(generation, put)?;
        put(&keys::meta::checkpoint(), &keys::meta::encode_checkpoint(&checkpoint))?;
        put_streams(generation, put)?;
        put_runs(generation, put)?;
        put_commits(generation, put)
    })?;
    Ok(Some(checkpoint))
}

fn put_tasks(generation: &Generation, put: &mut Put<'_>) -> Result<(), EngineError> {
    each(generation, Scope::Task, &mut |task, entry| match generation.record(entry) {
        Some(record) => put(&keys::task_event::encode(task, entry.seq), record.bytes()),
        None => Ok(()),
    })
}

fn put_tails(generation: &Generation, put: &mut Put<'_>) -> Result<(), EngineError> {
    let mut tails: Vec<_> =
        generation.tails.iter().map(|(stream, tail)| (keys::stream::encode(stream), tail)).collect();
    tails.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    tails.iter().try_for_each(|(key, tail)| put(key, &keys::stream::encode_value(tail)))
}

fn put_keys(generation: &Generation, put: &mut Put<'_>) -> Result<(), EngineError> {
    let mut uses: Vec<_> = generation.keys.iter().collect();
    uses.sort_unstable_by_key(|(hash, _)| **hash);
    uses.iter().try_for_each(|(hash, key_use)| {
        put(&keys::idempotency::encode_hashed(**hash), &keys::idempotency::encode_value(key_use))
    })
}

fn put_streams(generation: &Generation, put: &mut Put<'_>) -> Result<(), EngineError> {
    each(generation, Scope::Stream, &mut |stream, entry| match generation.location(entry) {
        Some(location) => {
            put(&keys::stream_place::encode(stream, entry.seq), &keys::stream_place::encode_value(location))
        }
        None => Ok(()),
    })
}

fn put_runs(generation: &Generation, put: &mut Put<'_>) -> Result<(), EngineError> {
    each(generation, Scope::Run, &mut |run, entry| match generation.location(entry) {
        Some(location) => {
            let event_type = (&entry.event_type).into();
            let place = RunPlace { location, delegation_id: entry.delegation_id, event_type };
            put(&keys::run_place::encode(run, entry.seq), &keys::run_place::encode_value(&place))
        }
        None => Ok(()),
    })
}

fn put_commits(generation: &Generation, put: &mut Put<'_>) -> Result<(), EngineError> {
    generation.commits().iter().try_for_each(|kept| {
        let value = keys::commit_place::encode_value(&kept.commit, kept.address);
        put(&keys::commit_place::encode(kept.commit.last), &value)
    })
}

/// What is done with an entry of a scope.
type Each<'a> = dyn FnMut([u8; 16], &Entry) -> Result<(), EngineError> + 'a;

/// Shows the entries of every scope, ordered by scope and seq.
fn each(generation: &Generation, scope: Scope, each: &mut Each<'_>) -> Result<(), EngineError> {
    let mut hashes: Vec<_> = generation.all(scope).keys().copied().collect();
    hashes.sort_unstable();
    for hash in hashes {
        for entry in generation.of(scope, hash) {
            each(hash, entry)?;
        }
    }
    Ok(())
}
