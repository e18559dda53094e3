//! The log as everybody sees it: append, read, follow, close.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError, RwLock},
    thread::JoinHandle,
};

use domain::{
    ids::{RunHash, RunId, ThreadId},
    redaction::Redactor,
};
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    append::{Append, AppendError, Appended},
    backup::{self, BackupError, BackupRequest, Manifest},
    blob::{self, BlobDigest, BlobError, BlobReader, BlobScope, BlobStats, BlobWriter, Blobs, OverMax},
    condition::{CommitStats, Condition, Health, Stats},
    erase::{EraseError, run_hash},
    keyring::Keyring,
    lock::FolderLock,
    open::{self, OpenError, Parts},
    options::Options,
    plan::{Checked, Planner},
    position::{Position, Seq},
    read::{EventFilter, ReadError, RunQuery},
    recorded::RecordedEvent,
    redact,
    replay::Replay,
    sealer::{self, Sealer},
    store::{LogStore, SegmentStore, StreamSummary},
    stream_id::StreamId,
    subscription::{SubscribeFrom, Subscription},
    verify::{self, ExportedHead, Report, VerifyError, VerifyRequest},
    writer::{AppendRequest, EraseRequest, Request, WRITER_QUEUE, Writer},
};

/// Events in order, durable, for ever. Cheap to clone; all clones are one log.
#[derive(Clone)]
pub struct EventLog(Arc<Inner>);

/// Fields are dropped in order: what is stored before the lock on its folder.
struct Inner {
    queue: Option<mpsc::Sender<Request>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    store: RwLock<Option<Arc<dyn LogStore>>>,
    keyring: Arc<Keyring>,
    head: watch::Receiver<Position>,
    condition: Arc<Condition>,
    redactor: Option<Arc<Redactor>>,
    /// A log without a folder has none.
    blobs: Option<Arc<Blobs>>,
    lock: Mutex<Option<FolderLock>>,
}

impl EventLog {
    /// Opens or creates the log in a folder, and holds the folder's lock until it is closed or
    /// the last clone is dropped. Refuses a log that has lost durable events.
    pub fn open(folder: &Path, options: Options) -> Result<Self, OpenError> {
        let parts = open::open(folder, &options)?;
        let blobs = Blobs::open_folder(folder, &*parts.store)?;
        Self::start(parts, options, Some(Arc::new(blobs)))
    }

    /// The same, with a say in how the record and its index are opened.
    #[cfg(test)]
    pub(crate) fn open_by(
        folder: &Path,
        options: Options,
        prepare: &dyn Fn(&crate::segment::Segments),
        open_index: &open::OpenIndex<'_>,
    ) -> Result<Self, OpenError> {
        let parts = open::open_by(folder, &options, prepare, open_index)?;
        let blobs = Blobs::open_folder(folder, &*parts.store)?;
        Self::start(parts, options, Some(Arc::new(blobs)))
    }

    /// A log that keeps nothing when it is dropped.
    pub fn in_memory(options: Options) -> Self {
        #[expect(clippy::expect_used, reason = "an empty log in memory has no disk to fail")]
        Self::with_store(Arc::new(SegmentStore::in_memory()), options).expect("an empty log opens")
    }

    /// A log on a backend of one's own, without a folder, a lock or a watermark.
    pub fn with_store(store: Arc<dyn LogStore>, options: Options) -> Result<Self, OpenError> {
        let head = store.head().map_err(OpenError::Store)?;
        Self::start(Parts { store, head, lock: None, watermark: None, space: None }, options, None)
    }

    fn start(parts: Parts, options: Options, blobs: Option<Arc<Blobs>>) -> Result<Self, OpenError> {
        let (queue, requests) = mpsc::channel(WRITER_QUEUE);
        let (head_sender, head) = watch::channel(parts.head.position);
        let condition = Arc::new(Condition::new());
        let writer = Writer {
            queue: requests,
            store: Arc::clone(&parts.store),
            planner: Planner::new(Arc::clone(&parts.store), parts.head),
            head: head_sender,
            condition: Arc::clone(&condition),
            clock: options.clock,
            watermark: parts.watermark,
            space: parts.space,
        };
        let thread = std::thread::Builder::new()
            .name("remit-log-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(OpenError::Writer)?;
        Ok(Self(Arc::new(Inner {
            queue: Some(queue),
            writer: Mutex::new(Some(thread)),
            keyring: Arc::clone(parts.store.keyring()),
            store: RwLock::new(Some(parts.store)),
            head,
            condition,
            redactor: options.redactor,
            blobs,
            lock: Mutex::new(parts.lock),
        })))
    }

    /// Records 1..n events in one stream, all or none. Answers when they are durable. Secrets in
    /// them are masked first: the answer has what was written.
    ///
    /// A call that is cancelled may still record them: use an idempotency key to find out.
    pub async fn append(&self, mut append: Append) -> Result<Appended, AppendError> {
        if let Some(redactor) = &self.0.redactor {
            append.events.iter_mut().for_each(|event| redact::redact(redactor, event));
        }
        let (reply, answer) = oneshot::channel();
        let request = AppendRequest { checked: Checked::new(append)?, reply };
        let queue = self.0.queue.as_ref().ok_or(AppendError::Closed)?;
        if queue.send(Request::Append(Box::new(request))).await.is_err() {
            return Err(self.refusal());
        }
        // Every request that the writer takes is answered, unless the writer meets a defect.
        let unanswered = || Err(AppendError::Poisoned { reason: "the writer stopped by a defect".into() });
        let answer = answer.await.unwrap_or_else(|_| unanswered());
        if let (Some(blobs), Ok(appended)) = (&self.0.blobs, &answer) {
            blobs.settle(&appended.events);
        }
        answer
    }

    /// Why the writer takes nothing.
    fn refusal(&self) -> AppendError {
        match self.0.condition.poison_reason() {
            Some(reason) => AppendError::Poisoned { reason },
            None => AppendError::Closed,
        }
    }

    /// Destroys the keys of a thread and of its runs: from when this answers on, nobody can read
    /// its events, and nothing is appended to it. Appends that were asked for before are recorded
    /// first. Says whether there was a key; asking again is harmless.
    ///
    /// Positions, seqs, times and chains stay. The events come back with
    /// [`RecordedEvent::is_erased`], and those of runs do not come back from `read_run`.
    pub async fn destroy_thread_key(&self, thread_id: &ThreadId) -> Result<bool, EraseError> {
        self.erase(thread_id, None).await
    }

    /// The same for one run on a thread.
    pub async fn destroy_run_key(&self, thread_id: &ThreadId, run: RunHash) -> Result<bool, EraseError> {
        self.erase(thread_id, Some(run)).await
    }

    async fn erase(&self, thread_id: &ThreadId, run: Option<RunHash>) -> Result<bool, EraseError> {
        let (reply, answer) = oneshot::channel();
        let request = EraseRequest { thread_id: thread_id.clone(), run, reply };
        let queue = self.0.queue.as_ref().ok_or(EraseError::Closed)?;
        if queue.send(Request::Erase(Box::new(request))).await.is_err() {
            return Err(EraseError::Closed);
        }
        let destroyed = answer.await.unwrap_or(Err(EraseError::Stopped))?;
        self.erase_blobs(thread_id.clone(), run).await?;
        Ok(destroyed)
    }

    /// Removes the files of blobs that no key opens any more.
    async fn erase_blobs(&self, thread_id: ThreadId, run: Option<RunHash>) -> Result<(), EraseError> {
        let Some(blobs) = self.0.blobs.clone() else { return Ok(()) };
        let thread = thread_id.clone();
        let erase = move || blobs.erase(&thread, run);
        // There may be many files; a log that is used without a runtime has no other thread for them.
        let erased = match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                let erasing = runtime.spawn_blocking(erase).await;
                erasing.unwrap_or_else(|failure| Err(std::io::Error::other(failure)))
            }
            Err(_) => erase(),
        };
        erased.map_err(|source| EraseError::Blobs { thread_id, source })
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

    /// How many events a run has, those included that nobody can read.
    pub fn run_events(&self, run: RunHash) -> Result<u64, ReadError> {
        Ok(self.store()?.run_extent(run)?.events)
    }

    /// The keys that its records are sealed with.
    pub(crate) fn keyring(&self) -> &Keyring {
        &self.0.keyring
    }

    /// Seals what is kept beside the log with the same keys.
    pub fn sealer(&self) -> Sealer {
        Sealer::new(Arc::clone(&self.0.keyring))
    }

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

    /// Reads the whole log after a position in order, and checks each event against the chains.
    pub fn replay(&self, after: Position) -> Result<Replay, ReadError> {
        Ok(Replay::new(self.store()?, after))
    }

    /// Begins a blob that an event of this scope will name (see [`domain::kept_output`]). Secrets in it are
    /// masked as in events. Fewer than `bytes_min` bytes are digested and not kept. A log without a
    /// folder keeps none.
    pub fn write_blob(&self, scope: &BlobScope, bytes_min: u64, over_max: OverMax) -> BlobWriter {
        let target = self.blob_target(scope);
        BlobWriter::new(target, self.0.redactor.clone(), bytes_min, over_max)
    }

    fn blob_target(&self, scope: &BlobScope) -> Result<blob::Target, BlobError> {
        let blobs = Arc::clone(self.0.blobs.as_ref().ok_or(BlobError::NoFolder)?);
        let after = self.stream_tail(&StreamId::Thread(scope.thread_id.clone()))?.unwrap_or(Seq::ZERO);
        Ok(blob::Target { blobs, scope: scope.clone(), after })
    }

    /// Opens a blob of a thread, to be read whole or in part.
    pub fn open_blob(&self, thread_id: &ThreadId, sha256: &BlobDigest) -> Result<BlobReader, BlobError> {
        self.0.blobs.as_ref().ok_or(BlobError::NoFolder)?.open(thread_id, sha256)
    }

    /// The first event up to a position that names a blob which is not whole in a folder with copies.
    pub(crate) fn first_damaged_blob(
        &self,
        until: Position,
        copies: &Path,
    ) -> Result<Option<verify::Damage>, VerifyError> {
        let store = self.store().map_err(|_| VerifyError::Closed)?;
        let store = store.on_segments().ok_or(VerifyError::Unsupported)?;
        blob::check::first_damage(store.segments(), until, store.keyring_ref(), copies)
    }

    pub(crate) fn blobs(&self) -> Option<&Blobs> {
        self.0.blobs.as_deref()
    }

    /// Figures of the blobs since the log was opened.
    pub fn blob_stats(&self) -> BlobStats {
        self.0.blobs.as_ref().map(|blobs| blobs.stats()).unwrap_or_default()
    }

    /// Space on disk, in bytes; 0 in memory.
    pub fn disk_bytes(&self) -> Result<u64, ReadError> {
        let store = self.store()?;
        let disk_bytes = store.on_segments().map(SegmentStore::disk_bytes).transpose()?;
        Ok(disk_bytes.unwrap_or(0))
    }

    /// The seq of a stream's last event; none if there is no such stream.
    pub fn stream_tail(&self, stream: &StreamId) -> Result<Option<Seq>, ReadError> {
        Ok(self.store()?.tail(stream)?.map(|tail| tail.seq))
    }

    /// Streams in the order of their names, after one.
    pub fn streams(&self, after: Option<&StreamId>, limit: usize) -> Result<Vec<StreamSummary>, ReadError> {
        Ok(self.store()?.streams(after, limit)?)
    }

    /// The last durable position.
    pub fn head(&self) -> Position {
        *self.0.head.borrow()
    }

    /// Reads from a cursor on, for ever.
    pub fn subscribe(&self, from: SubscribeFrom) -> Subscription {
        Subscription::new(self.clone(), self.0.head.clone(), self.0.condition.subscriber(), from)
    }

    /// Where the log ends, as proof for later that it went so far.
    pub fn exported_head(&self) -> Result<ExportedHead, ReadError> {
        Ok(self.store()?.head()?.into())
    }

    /// Checks every record, chain, commit and index entry up to the present head, while others
    /// read and write. It takes as long as reading the whole log: call it outside of async code.
    pub fn verify(&self, request: VerifyRequest<'_>) -> Result<Report, VerifyError> {
        let store = self.store().map_err(|_| VerifyError::Closed)?;
        let store = store.on_segments().ok_or(VerifyError::Unsupported)?;
        verify::verify_live(store, self.0.blobs.as_deref(), request)
    }

    /// Copies the log up to its present head into a new folder, with its keys and the files of
    /// threads, while others read and write, or adds what is new to a backup of the same log. It takes
    /// as long as reading the whole log: call it outside of async code.
    pub fn back_up(&self, target: &Path, request: BackupRequest<'_>) -> Result<Manifest, BackupError> {
        let store = self.store()?;
        let store = store.on_segments().ok_or(BackupError::Unsupported)?;
        backup::copy(store, self.0.blobs.as_deref(), target, request)
    }

    /// Whether the log takes writes.
    pub fn health(&self) -> Health {
        self.0.condition.health()
    }

    /// Waits until the log takes no more writes, and says why: whoever serves it stops then.
    pub async fn ended(&self) -> Health {
        self.0.condition.ended().await
    }

    /// Whether a write has failed, so that only a restart helps.
    pub fn is_poisoned(&self) -> bool {
        self.0.condition.poison_reason().is_some()
    }

    /// Figures since the log was opened.
    pub fn stats(&self) -> Stats {
        let waiting = self.0.queue.as_ref().map_or(0, |queue| queue.max_capacity() - queue.capacity());
        self.0.condition.stats(waiting as u64, WRITER_QUEUE as u64)
    }

    /// How commits were distributed since the log was opened.
    pub fn commit_stats(&self) -> CommitStats {
        self.0.condition.commit_stats()
    }

    /// Writes into the lock where this process listens, for whoever finds the folder held.
    pub fn announce(&self, address: &str) -> std::io::Result<()> {
        match &mut *self.0.lock.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(lock) => lock.set_address(address),
            None => Ok(()),
        }
    }

    /// Records what is queued, then releases the folder. Other clones get `Closed` from then on.
    pub async fn close(self) {
        let (done, finished) = oneshot::channel();
        if let Some(queue) = &self.0.queue
            && queue.send(Request::Close(done)).await.is_ok()
        {
            // The writer drops the sender when it has released everything.
            drop(finished.await);
        }
        self.0.condition.close();
        drop(self.0.store.write().unwrap_or_else(PoisonError::into_inner).take());
        drop(self.0.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn store(&self) -> Result<Arc<dyn LogStore>, ReadError> {
        self.0.store.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or(ReadError::Closed)
    }
}

/// The last clone waits for the writer to finish what is queued: one commit or a few.
impl Drop for Inner {
    fn drop(&mut self) {
        drop(self.queue.take());
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer
            && writer.join().is_err()
        {
            tracing::error!("the log's writer stopped by a defect");
        }
    }
}
