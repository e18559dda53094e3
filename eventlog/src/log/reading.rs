//! Reading what was recorded, and following it.

use std::ops::ControlFlow;

use domain::ids::{RunHash, RunId, ThreadId};

use super::EventLog;
use crate::{
    codec::fact::ReadFact,
    erase::run_hash,
    position::{Position, Seq},
    read::{EventFilter, ReadError, Room, RunQuery},
    recorded::RecordedEvent,
    replay::Replay,
    sealer,
    store::{Kept, StreamSummary},
    stream_id::StreamId,
    subscription::{SubscribeFrom, Subscription},
    verify::ExportedHead,
};

impl EventLog {
    /// Events of one stream after a seq, ascending: at most `limit`, and about `PAGE_BYTES_MAX` bytes
    /// of them. Only an empty page says that there are no more.
    pub fn read_stream(
        &self,
        stream: &StreamId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<RecordedEvent>, ReadError> {
        Ok(self.store()?.read_stream(stream, after, limit)?)
    }

    /// Events of one run after a seq, ascending. The limit counts what the filter admits, and is
    /// joined by that of bytes as in `read_stream`.
    pub fn read_run(
        &self,
        thread_id: &ThreadId,
        run_id: &RunId,
        filter: &EventFilter,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<RecordedEvent>, ReadError> {
        let (thread_id, run_id, filter) = (thread_id.clone(), run_id.clone(), filter.clone());
        Ok(self.store()?.read_run(&RunQuery { thread_id, run_id, filter, after, limit })?)
    }

    /// Events of the whole log after a position, ascending, bounded as in `read_stream`.
    pub fn read_all(&self, after: Position, limit: usize) -> Result<Vec<RecordedEvent>, ReadError> {
        Ok(self.store()?.read_all(after, limit)?)
    }

    /// Shows events of the whole log after a position as folds read them, ascending, bounded as in
    /// `read_stream`. Whoever reads page by page gives back what was kept after the page before.
    pub fn read_facts(
        &self,
        after: Position,
        limit: usize,
        kept: &mut Kept,
        show: &mut dyn FnMut(ReadFact),
    ) -> Result<(), ReadError> {
        let mut room = Room::of(limit);
        self.store()?.read_facts(after, limit, kept, &mut |fact, bytes| {
            room.take(bytes);
            show(fact);
            if room.is_left() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(())
    }

    /// Reads the whole log after a position in order, and checks each event against the chains.
    pub fn replay(&self, after: Position) -> Result<Replay, ReadError> {
        Ok(Replay::new(self.store()?, after))
    }

    /// Reads from a cursor on, for ever.
    pub fn subscribe(&self, from: SubscribeFrom) -> Subscription {
        Subscription::new(self.clone(), self.0.head.clone(), self.0.condition.subscriber(), from)
    }

    /// The last durable position.
    pub fn head(&self) -> Position {
        *self.0.head.borrow()
    }

    /// The seq of a stream's last event; none if there is no such stream.
    pub fn stream_tail(&self, stream: &StreamId) -> Result<Option<Seq>, ReadError> {
        Ok(self.store()?.tail(stream)?.map(|tail| tail.seq))
    }

    /// Streams in the order of their names, after one.
    pub fn streams(&self, after: Option<&StreamId>, limit: usize) -> Result<Vec<StreamSummary>, ReadError> {
        Ok(self.store()?.streams(after, limit)?)
    }

    /// Where the log ends, as proof for later that it went so far.
    pub fn exported_head(&self) -> Result<ExportedHead, ReadError> {
        Ok(self.store()?.head()?.into())
    }

    /// How many events a run has, those included that nobody can read.
    pub fn run_events(&self, run: RunHash) -> Result<u64, ReadError> {
        Ok(self.store()?.run_events(run)?)
    }

    /// Whether the thread was erased.
    pub fn is_erased(&self, thread_id: &ThreadId) -> bool {
        self.0.keyring.is_destroyed(sealer::thread_scope(thread_id))
    }

    /// Whether the run, or the whole thread, was erased.
    pub fn is_run_erased(&self, thread_id: &ThreadId, run_id: &RunId) -> bool {
        self.is_erased(thread_id) || self.is_run_key_destroyed(run_hash(thread_id, run_id))
    }

    /// Whether the key of this one run was destroyed.
    pub fn is_run_key_destroyed(&self, run: RunHash) -> bool {
        self.0.keyring.is_destroyed(sealer::hashed_scope(run))
    }
}
