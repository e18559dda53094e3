//! A log whose reads of one thread stand still when they are told to.

use std::{
    collections::HashSet,
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use domain::ids::{RunHash, ThreadId};
use eventlog::{
    EventLog, IdempotencyKey, Keyring, Options, Position, RecordedEvent, RunQuery, Seq, StreamId,
    StreamSummary,
    store::{Commit, CommitGroup, Head, KeyUse, LogStore, Replayed, SegmentStore, StoreError, Tail},
};

/// The longest that a read stands still; a test has failed then.
const STILL_MAX: Duration = Duration::from_secs(60);

/// Passes everything on to a store in memory, except reads of threads that are held.
pub(crate) struct SlowReads {
    inner: SegmentStore,
    held: Mutex<HashSet<StreamId>>,
    /// Reads that stand still now.
    waiting: Mutex<usize>,
    changed: Condvar,
}

impl SlowReads {
    /// A log whose reads are as fast as any.
    pub(crate) fn log() -> (Arc<Self>, EventLog) {
        let store = Arc::new(Self {
            inner: SegmentStore::in_memory(),
            held: Mutex::default(),
            waiting: Mutex::default(),
            changed: Condvar::new(),
        });
        let log = EventLog::with_store(store.clone(), Options::default()).unwrap();
        (store, log)
    }

    pub(crate) fn hold(&self, thread_id: &ThreadId) {
        self.held.lock().unwrap().insert(StreamId::Thread(thread_id.clone()));
    }

    pub(crate) fn let_go(&self) {
        self.held.lock().unwrap().clear();
        self.changed.notify_all();
    }

    /// Reads that stand still now.
    pub(crate) fn waiting(&self) -> usize {
        *self.waiting.lock().unwrap()
    }

    fn pass(&self, stream: &StreamId) {
        let held = self.held.lock().unwrap();
        if held.contains(stream) {
            *self.waiting.lock().unwrap() += 1;
            drop(self.changed.wait_timeout_while(held, STILL_MAX, |held| held.contains(stream)).unwrap());
            *self.waiting.lock().unwrap() -= 1;
        }
    }
}

impl LogStore for SlowReads {
    fn keyring(&self) -> &Arc<Keyring> {
        self.inner.keyring()
    }

    fn head(&self) -> Result<Head, StoreError> {
        self.inner.head()
    }

    fn commit_at(&self, last: Position) -> Result<Option<Commit>, StoreError> {
        self.inner.commit_at(last)
    }

    fn commit(&self, group: CommitGroup) -> Result<(), StoreError> {
        self.inner.commit(group)
    }

    fn tail(&self, stream: &StreamId) -> Result<Option<Tail>, StoreError> {
        self.inner.tail(stream)
    }

    fn key_use(&self, stream: &StreamId, key: &IdempotencyKey) -> Result<Option<KeyUse>, StoreError> {
        self.inner.key_use(stream, key)
    }

    fn read_all(&self, after: Position, limit: usize) -> Result<Vec<RecordedEvent>, StoreError> {
        self.inner.read_all(after, limit)
    }

    fn replay(&self, after: Position, limit: usize, visit: &mut Replayed<'_>) -> Result<(), StoreError> {
        self.inner.replay(after, limit, visit)
    }

    fn read_stream(
        &self,
        stream: &StreamId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<RecordedEvent>, StoreError> {
        // The log's writer looks behind the end; those who read a thread begin before it.
        if self.inner.tail(stream)?.is_some_and(|tail| after < tail.seq) {
            self.pass(stream);
        }
        self.inner.read_stream(stream, after, limit)
    }

    fn read_run(&self, query: &RunQuery) -> Result<Vec<RecordedEvent>, StoreError> {
        self.inner.read_run(query)
    }

    fn run_first(&self, run: RunHash) -> Result<Option<Position>, StoreError> {
        self.inner.run_first(run)
    }

    fn run_events(&self, run: RunHash) -> Result<u64, StoreError> {
        self.inner.run_events(run)
    }

    fn streams(&self, after: Option<&StreamId>, limit: usize) -> Result<Vec<StreamSummary>, StoreError> {
        self.inner.streams(after, limit)
    }
}
