//! What is shared between the writer and everybody else: the log's health and its figures.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::watch;

mod histogram;

pub use histogram::Histogram;
use histogram::{COMMIT_EVENTS, COMMIT_MICROS, Counting};

/// Whether the log takes writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Writable,
    /// A write failed, so it takes none until the process is started again.
    Poisoned {
        /// What failed.
        reason: Arc<str>,
    },
    /// It was closed.
    Closed,
}

/// Figures of one process's use of the log, since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Appends that were recorded. Repeats and refusals do not count.
    pub appends: u64,
    /// Events that were recorded.
    pub events: u64,
    /// Commits, each with one sync.
    pub commits: u64,
    /// Record bytes that were committed, without indexes and copies.
    pub record_bytes: u64,
    /// How long the last commit took, sync included, in microseconds.
    pub last_sync_micros: u64,
    /// Appends that wait for the writer now.
    pub queue_depth: u64,
    /// Appends that may wait for it. Who comes after them waits outside.
    pub queue_capacity: u64,
    /// Subscriptions that read or wait now: streams of clients, views, and what works in this process.
    pub subscribers: u64,
}

/// How commits were distributed since the log was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitStats {
    /// How long each took, sync included, in microseconds.
    pub micros: Histogram,
    /// How many events each had.
    pub events: Histogram,
}

/// One commit's share of the figures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Committed {
    pub(crate) appends: u64,
    pub(crate) events: u64,
    pub(crate) record_bytes: u64,
    pub(crate) sync_micros: u64,
}

/// Health and figures.
#[derive(Debug)]
pub(crate) struct Condition {
    health: watch::Sender<Health>,
    appends: AtomicU64,
    events: AtomicU64,
    commits: AtomicU64,
    record_bytes: AtomicU64,
    last_sync_micros: AtomicU64,
    commit_micros: Counting<{ COMMIT_MICROS.len() }>,
    commit_events: Counting<{ COMMIT_EVENTS.len() }>,
    /// Each subscription has a clone.
    subscribers: Arc<()>,
}

impl Condition {
    pub(crate) fn new() -> Self {
        Self {
            health: watch::Sender::new(Health::Writable),
            appends: AtomicU64::new(0),
            events: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            record_bytes: AtomicU64::new(0),
            last_sync_micros: AtomicU64::new(0),
            commit_micros: Counting::new(&COMMIT_MICROS),
            commit_events: Counting::new(&COMMIT_EVENTS),
            subscribers: Arc::default(),
        }
    }

    /// Counts a subscription for as long as what is given out lives.
    pub(crate) fn subscriber(&self) -> Arc<()> {
        Arc::clone(&self.subscribers)
    }

    pub(crate) fn health(&self) -> Health {
        self.health.borrow().clone()
    }

    /// Why the log is poisoned, if it is.
    pub(crate) fn poison_reason(&self) -> Option<Arc<str>> {
        match self.health() {
            Health::Poisoned { reason } => Some(reason),
            Health::Writable | Health::Closed => None,
        }
    }

    /// Ends all writing. The first reason stays, and is given back.
    pub(crate) fn poison(&self, reason: &str) -> Arc<str> {
        let mut first: Arc<str> = reason.into();
        self.health.send_if_modified(|health| match health {
            Health::Poisoned { reason } => {
                first = Arc::clone(reason);
                false
            }
            Health::Writable | Health::Closed => {
                *health = Health::Poisoned { reason: Arc::clone(&first) };
                true
            }
        });
        first
    }

    /// Notes that the log was closed; a poisoned one stays poisoned.
    pub(crate) fn close(&self) {
        self.health.send_if_modified(|health| match health {
            Health::Writable => {
                *health = Health::Closed;
                true
            }
            Health::Poisoned { .. } | Health::Closed => false,
        });
    }

    /// Waits until the log takes no more writes.
    pub(crate) async fn ended(&self) -> Health {
        let mut health = self.health.subscribe();
        match health.wait_for(|health| *health != Health::Writable).await {
            Ok(health) => health.clone(),
            // The sender lives as long as `self`.
            Err(_) => Health::Closed,
        }
    }

    pub(crate) fn count(&self, committed: Committed) {
        self.appends.fetch_add(committed.appends, Ordering::Relaxed);
        self.events.fetch_add(committed.events, Ordering::Relaxed);
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.record_bytes.fetch_add(committed.record_bytes, Ordering::Relaxed);
        self.last_sync_micros.store(committed.sync_micros, Ordering::Relaxed);
        self.commit_micros.count(committed.sync_micros);
        self.commit_events.count(committed.events);
    }

    pub(crate) fn commit_stats(&self) -> CommitStats {
        CommitStats { micros: self.commit_micros.now(), events: self.commit_events.now() }
    }

    pub(crate) fn stats(&self, queue_depth: u64, queue_capacity: u64) -> Stats {
        Stats {
            appends: self.appends.load(Ordering::Relaxed),
            events: self.events.load(Ordering::Relaxed),
            commits: self.commits.load(Ordering::Relaxed),
            record_bytes: self.record_bytes.load(Ordering::Relaxed),
            last_sync_micros: self.last_sync_micros.load(Ordering::Relaxed),
            queue_depth,
            queue_capacity,
            subscribers: (Arc::strong_count(&self.subscribers) - 1) as u64,
        }
    }
}
