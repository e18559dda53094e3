//! A log in memory that has come far already, for tests of what happens to large numbers.

use super::{Commit, CommitGroup, EngineStore, LogStore as _, StoreError, Tail};
use crate::{
    chain,
    new_event::NewEvent,
    plan,
    position::{Position, Seq},
    recorded::{Place, RecordedEvent},
    stream_id::StreamId,
};

impl EngineStore {
    /// A log in memory whose only event is the last one before a place: its position, and its seq in
    /// this stream, are `last`. What would come before is not there, so such a log does not verify.
    pub fn in_memory_after(last: u64, stream: &StreamId, event: NewEvent) -> Result<Self, StoreError> {
        let store = Self::in_memory();
        let (position, seq, recorded_at) = (Position::new(last), Seq::new(last), event.created_at);
        let event = RecordedEvent::new(event, Place { position, stream: stream.clone(), seq, recorded_at });
        let hashes = event.hashes();
        let stored = plan::store_event(event, hashes, &chain::START)?;
        let tail = Tail { seq, hash: stored.event.hash, position };
        let chain = chain::log_chain(&chain::START, &tail.hash);
        let commit = Commit { first: position, last: position, chain, committed_at: recorded_at };
        let tails = vec![(stream.clone(), tail)];
        store.commit(CommitGroup { commit, events: vec![stored], tails, keys: Vec::new() })?;
        Ok(store)
    }
}
