//! The log as everybody sees it: append, read, follow, close.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError, RwLock},
    thread::JoinHandle,
};

use domain::redaction::Redactor;
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    blob::Blobs,
    condition::Condition,
    keyring::Keyring,
    lock::FolderLock,
    open::{self, OpenError, Parts},
    options::Options,
    plan::Planner,
    position::Position,
    read::ReadError,
    sealer::Sealer,
    store::{LogStore, SegmentStore},
    writer::{Request, WRITER_QUEUE, Writer},
};

mod blobs;
mod reading;
mod tending;
mod writing;

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

    /// The keys that its records are sealed with.
    pub(crate) fn keyring(&self) -> &Keyring {
        &self.0.keyring
    }

    /// Seals what is kept beside the log with the same keys.
    pub fn sealer(&self) -> Sealer {
        Sealer::new(Arc::clone(&self.0.keyring))
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
