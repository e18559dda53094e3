//! A backend that fails when it is told to, for tests of what happens then.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use domain::ids::RunHash;

use super::{
    Commit, CommitGroup, Head, Kept, KeyUse, LogStore, Replayed, SegmentStore, StoreError, StreamSummary,
    Tail,
};
use crate::{
    append::IdempotencyKey,
    keyring::Keyring,
    position::{Position, Seq},
    read::RunQuery,
    recorded::RecordedEvent,
    stream_id::StreamId,
};

/// Means that no commit fails.
const NEVER: u64 = u64::MAX;

/// Is told of a read of a stream after a seq before it is done, and may let it wait.
type BeforeRead = dyn Fn(&StreamId, Seq) + Send + Sync;

/// Passes everything on to another backend, except the commits that are to fail.
pub struct FaultyStore {
    inner: Arc<dyn LogStore>,
    commits_until_fault: AtomicU64,
    before_read: Option<Box<BeforeRead>>,
}

impl FaultyStore {
    /// Wraps a backend; nothing fails yet.
    pub fn new(inner: Arc<dyn LogStore>) -> Self {
        Self { inner, commits_until_fault: AtomicU64::new(NEVER), before_read: None }
    }

    /// The same, and each read of a stream comes by here first.
    #[must_use]
    pub fn reading_after(self, before_read: impl Fn(&StreamId, Seq) + Send + Sync + 'static) -> Self {
        Self { before_read: Some(Box::new(before_read)), ..self }
    }

    /// Lets this many commits through, and fails every one after them.
    pub fn fail_after(&self, commits: u64) {
        self.commits_until_fault.store(commits, Ordering::SeqCst);
    }

    /// Counts one commit down and says whether it may pass.
    fn may_commit(&self) -> bool {
        self.commits_until_fault
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| match left {
                NEVER => Some(NEVER),
                0 => None,
                more => Some(more - 1),
            })
            .is_ok()
    }
}

impl LogStore for FaultyStore {
    fn keyring(&self) -> &Arc<Keyring> {
        self.inner.keyring()
    }

    fn on_segments(&self) -> Option<&SegmentStore> {
        self.inner.on_segments()
    }

    fn head(&self) -> Result<Head, StoreError> {
        self.inner.head()
    }

    fn commit_at(&self, last: Position) -> Result<Option<Commit>, StoreError> {
        self.inner.commit_at(last)
    }

    fn commit(&self, group: CommitGroup) -> Result<(), StoreError> {
        if self.may_commit() { self.inner.commit(group) } else { Err(StoreError::Injected) }
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

    fn replay(
        &self,
        after: Position,
        limit: usize,
        kept: &mut Kept,
        visit: &mut Replayed<'_>,
    ) -> Result<(), StoreError> {
        self.inner.replay(after, limit, kept, visit)
    }

    fn read_stream(
        &self,
        stream: &StreamId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<RecordedEvent>, StoreError> {
        if let Some(before_read) = &self.before_read {
            before_read(stream, after);
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
