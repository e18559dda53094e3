//! Where everything is: by stream, run, task, commit and idempotency key.
//!
//! The record is in the segments; this can be made from it at any time, and so needs no journal and
//! no sync of its own. What is new is kept in memory, with the bytes of its frames. Once there are
//! [`FLUSH_BYTES`] of it, a thread of its own loads it into sorted tables in one go and notes how far
//! it came, while the next commits go into memory again. After a restart whatever lies behind that
//! checkpoint is added once more from the record.
//!
//! Loading sorted tables costs a fraction of what entering each event into an ordered map and a
//! journal does, and none of it is done by the log's writer. A task's records are copied beside each
//! other, since a page of one task is the read that happens most.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    thread::JoinHandle,
};

use domain::ids::DelegationId;

pub(crate) use crate::keys::location::Location;
use crate::{
    codec::record::Type,
    engine::{Engine, EngineError},
    keys::{self, INDEX},
    position::Seq,
    store::{Commit, Head, KeyUse, StoreError, Tail},
    stream_id::StreamId,
};

mod flush;
mod generation;
mod read;
#[cfg(test)]
mod tests;

use generation::Generation;

/// What is kept in memory before it becomes tables. More makes fewer, larger tables; it costs memory
/// up to twice [`WAIT_BYTES`] (one part is being loaded, one is added to), and time at the next start,
/// which reads as much of the record again.
const FLUSH_BYTES: usize = 16 * 1024 * 1024;
/// From this much on the writer waits for the tables, so that memory is bounded.
const WAIT_BYTES: usize = 2 * FLUSH_BYTES;

/// How far the tables go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// The last event in them, and the chain of the log after it.
    pub(crate) head: Head,
    /// The address behind its frame.
    pub(crate) end: u64,
}

impl Checkpoint {
    /// Nothing is in the tables.
    pub(crate) const EMPTY: Self = Self { head: Head::EMPTY, end: 0 };
}

/// An event of a commit, and what it is found by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Indexed {
    pub(crate) seq: Seq,
    pub(crate) stream: [u8; 16],
    pub(crate) run: Option<[u8; 16]>,
    pub(crate) task: Option<[u8; 16]>,
    pub(crate) delegation_id: Option<DelegationId>,
    pub(crate) event_type: Type,
    /// Where its record begins in the frame.
    pub(crate) offset: u32,
    /// The length of its record.
    pub(crate) length: u32,
}

/// A commit, durable in the segments.
#[derive(Debug, Clone)]
pub(crate) struct IndexedCommit {
    pub(crate) commit: Commit,
    /// Where its frame begins.
    pub(crate) address: u64,
    /// The frame.
    pub(crate) frame: Arc<[u8]>,
    /// Its events in position order.
    pub(crate) events: Vec<Indexed>,
    /// The new end of each stream that it touches.
    pub(crate) tails: Vec<(StreamId, Tail)>,
    /// The hashes of the idempotency keys that it uses up.
    pub(crate) keys: Vec<([u8; 32], KeyUse)>,
}

impl IndexedCommit {
    fn checkpoint(&self) -> Checkpoint {
        let head = Head { position: self.commit.last, chain: self.commit.chain };
        Checkpoint { head, end: self.address + self.frame.len() as u64 }
    }
}

/// A record in a frame that is in memory.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    frame: Arc<[u8]>,
    offset: u32,
    length: u32,
}

impl Record {
    /// Its bytes, hash included.
    pub(crate) fn bytes(&self) -> &[u8] {
        let start = self.offset as usize;
        self.frame.get(start..start + self.length as usize).unwrap_or_default()
    }
}

/// Where the records of a page are: first those in the segments, then those that are in memory still.
/// There are no more of them than a page may have, by rows and by bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    /// In the segments.
    pub(crate) stored: Vec<Location>,
    /// In memory.
    pub(crate) recent: Vec<Record>,
}

/// A commit that holds a position.
#[derive(Debug, Clone)]
pub(crate) struct Located {
    pub(crate) commit: Commit,
    /// Where its frame begins.
    pub(crate) address: u64,
    /// The frame, if it is in memory.
    pub(crate) frame: Option<Arc<[u8]>>,
}

/// The index. One writer adds; anybody reads.
pub(crate) struct Index {
    shared: Arc<Shared>,
    /// The thread that makes tables.
    flusher: Mutex<Option<JoinHandle<()>>>,
    flush_bytes: usize,
}

struct Shared {
    engine: Engine,
    state: RwLock<State>,
}

struct State {
    /// What is added to.
    active: Generation,
    /// What is being loaded into tables. It stays readable here until it is readable there.
    frozen: Option<Arc<Generation>>,
    checkpoint: Checkpoint,
    /// The last commit that was added.
    end: Checkpoint,
    /// Why the last load failed.
    failure: Option<EngineError>,
}

impl Shared {
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index {
    /// An index on an engine that was opened with the index's keyspaces. Add every commit behind its
    /// checkpoint before reading.
    pub(crate) fn open(engine: Engine) -> Result<Self, StoreError> {
        Self::with_limit(engine, FLUSH_BYTES)
    }

    fn with_limit(engine: Engine, flush_bytes: usize) -> Result<Self, StoreError> {
        let stored = engine.get(INDEX, &keys::meta::checkpoint())?;
        let checkpoint = stored.map(|value| keys::meta::decode_checkpoint(&value)).transpose();
        let checkpoint = checkpoint.map_err(damaged("the checkpoint of the index"))?;
        let checkpoint = checkpoint.unwrap_or(Checkpoint::EMPTY);
        let active = Generation::default();
        let state = State { active, frozen: None, checkpoint, end: checkpoint, failure: None };
        let shared = Arc::new(Shared { engine, state: RwLock::new(state) });
        Ok(Self { shared, flusher: Mutex::new(None), flush_bytes })
    }

    /// How far the tables go.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        self.shared.read().checkpoint
    }

    /// The last commit that was added, and the address behind its frame.
    pub(crate) fn end(&self) -> Checkpoint {
        self.shared.read().end
    }

    /// The tables, for checks that look at every entry up to a checkpoint.
    pub(crate) fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// Adds the commit that follows the last one. Readers see all of it from then on, and nothing of it
    /// after an error.
    pub(crate) fn add(&self, commit: IndexedCommit) -> Result<(), StoreError> {
        let bytes = self.shared.read().active.bytes();
        if bytes >= self.flush_bytes {
            self.start_flush(bytes >= self.flush_bytes.saturating_mul(WAIT_BYTES / FLUSH_BYTES))?;
        }
        let mut state = self.shared.write();
        state.end = commit.checkpoint();
        state.active.add(commit);
        Ok(())
    }

    /// Has what is in memory made into tables, unless that is being done already and nobody must wait.
    fn start_flush(&self, must_wait: bool) -> Result<(), StoreError> {
        let mut flusher = self.flusher.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = flusher.take_if(|running| must_wait || running.is_finished()) {
            join(running);
        }
        if flusher.is_some() {
            return Ok(());
        }
        {
            let mut state = self.shared.write();
            if let Some(failure) = state.failure.take() {
                return Err(failure.into());
            }
            if state.frozen.is_some() {
                // What could not be written stays where readers find it, and nothing takes its place.
                let failed = "an earlier load failed; start again, and it is made from the record";
                return Err(EngineError::new("write the index", failed).into());
            }
            state.frozen = Some(Arc::new(mem::take(&mut state.active)));
        }
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("remit-log-index".to_owned());
        let started = thread.spawn(move || flush_frozen(&shared));
        let started = started.map_err(|source| EngineError::new("start the index's thread", source))?;
        *flusher = Some(started);
        Ok(())
    }

    /// Waits until everything is in tables.
    pub(crate) fn flush(&self) -> Result<(), StoreError> {
        self.start_flush(true)?;
        let running = self.flusher.lock().unwrap_or_else(PoisonError::into_inner).take();
        running.into_iter().for_each(join);
        let failure = self.shared.write().failure.take();
        failure.map_or(Ok(()), |failure| Err(failure.into()))
    }
}

fn flush_frozen(shared: &Shared) {
    let Some(frozen) = shared.read().frozen.clone() else { return };
    let flushed = flush::flush(&shared.engine, &frozen);
    let mut state = shared.write();
    match flushed {
        Ok(checkpoint) => {
            state.checkpoint = checkpoint.unwrap_or(state.checkpoint);
            state.frozen = None;
        }
        Err(error) => {
            tracing::error!(%error, "the index could not be written");
            state.failure = Some(error);
        }
    }
}

/// A thread that panicked is a defect, and goes on as one.
fn join(thread: JoinHandle<()>) {
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        let running = self.flusher.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if running.is_some_and(|running| running.join().is_err()) {
            tracing::error!("the index's thread stopped by a defect");
        }
    }
}

fn damaged(what: &'static str) -> impl Fn(crate::DecodeError) -> StoreError {
    move |source| StoreError::Damaged { what: what.to_owned(), source }
}
