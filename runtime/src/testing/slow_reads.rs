//! A log whose reads of one thread stand still when they are told to.

use std::{
    collections::HashSet,
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use domain::ids::ThreadId;
use eventlog::{
    EventLog, Options, StreamId,
    store::{FaultyStore, LogStore, SegmentStore},
};

/// The longest that a read stands still; a test has failed then.
const STILL_MAX: Duration = Duration::from_secs(60);

/// Which threads are held.
#[derive(Default)]
pub(crate) struct SlowReads {
    held: Mutex<HashSet<StreamId>>,
    /// Reads that stand still now.
    waiting: Mutex<usize>,
    changed: Condvar,
}

impl SlowReads {
    /// A log whose reads are as fast as any.
    pub(crate) fn log() -> (Arc<Self>, EventLog) {
        let (reads, store) = (Arc::new(Self::default()), Arc::new(SegmentStore::in_memory()));
        let (passing, tails) = (Arc::clone(&reads), Arc::clone(&store));
        let store = FaultyStore::new(store).reading_after(move |stream, after| {
            // The log's writer looks behind the end and at the last event; those who read a thread begin
            // at its beginning, which is another place once the thread has two events.
            let tail = tails.tail(stream).unwrap();
            if tail.is_some_and(|tail| after.next() < tail.seq) {
                passing.pass(stream);
            }
        });
        let log = EventLog::with_store(Arc::new(store), Options::default()).unwrap();
        (reads, log)
    }

    /// Lets reads of a thread of two events or more stand still.
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
