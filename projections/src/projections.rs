//! The views as everybody sees them: open, bring up to date, ask.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
};

use eventlog::{
    EventLog, Position,
    engine::{Engine, EngineError},
};
use tokio::sync::watch;

use crate::{
    keys::checkpoint::CheckpointKey,
    rebuild::Board,
    runner::{CatchUpError, PAGE_EVENTS, Runner},
    store::{KEYSPACES, Side, Store},
    view::Registered,
    views,
};

/// Why the views could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The log could not be read.
    #[error("could not compare the views with the log")]
    Log(#[source] CatchUpError),
    /// The folder cannot be emptied to begin again.
    #[error("could not empty the views' folder {}; remove it by hand", .folder.display())]
    Empty {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// An empty folder cannot be used either.
    #[error("could not open the views in {}; check the disk and the folder's permissions", .folder.display())]
    Unusable {
        /// The folder.
        folder: PathBuf,
        /// What failed.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// All views of one log. Cheap to clone; all clones are the same views.
#[derive(Clone)]
pub struct Projections(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) log: EventLog,
    pub(crate) store: Store,
    /// Name and version of each view.
    pub(crate) views: Vec<(&'static str, u32)>,
    pub(crate) position: watch::Sender<Position>,
    pub(crate) runner: Mutex<Runner>,
    pub(crate) rebuilds: Arc<Board>,
    /// Tells whoever makes views again to stop after the page at hand.
    pub(crate) is_stopping: AtomicBool,
    /// Events of one step.
    pub(crate) page_events: usize,
}

/// Why a first try to open the folder did not do.
enum Obstacle {
    Engine(EngineError),
    Runner(CatchUpError),
    Unsealed,
}

/// The views that there were before rows were sealed with the keys of their runs, and their first
/// version that does so. Deleting older rows would leave their bytes, in plain or sealed with their
/// thread's key, in the engine's files for as long as it likes.
const SEALED_SINCE: [(&str, u32); 4] = [("threads", 3), ("runs", 3), ("ledger", 3), ("cards", 3)];

#[derive(Debug, thiserror::Error)]
#[error("rows were written by a version that did not seal them with the keys of their runs")]
struct UnsealedRows;

/// Whether a view was made before rows were sealed so. One whose checkpoint cannot be read is made
/// again in any case.
fn is_unsealed(store: &Store) -> bool {
    let snapshot = store.snapshot();
    SEALED_SINCE.iter().any(|(view, since)| {
        let checkpoint = snapshot.get_on(Side::First, &CheckpointKey { view: (*view).to_owned() });
        checkpoint.is_ok_and(|found| found.is_some_and(|found| found.version < *since))
    })
}

impl Projections {
    /// Opens or creates the views in a folder of their own, which nobody else may have open.
    /// Views that cannot be read are thrown away and made again by the next `catch_up` or `follow`.
    pub fn open(folder: &Path, log: EventLog) -> Result<Self, OpenError> {
        let obstacle = match Self::try_open(folder, &log) {
            Ok(projections) => return Ok(projections),
            Err(Obstacle::Runner(error @ CatchUpError::Log(_))) => return Err(OpenError::Log(error)),
            Err(obstacle) => obstacle,
        };
        tracing::warn!(
            folder = %folder.display(),
            error = crate::runner::chain(obstacle.error()),
            "the views cannot be read: they are made again from the log"
        );
        drop(obstacle);
        empty(folder).map_err(|source| OpenError::Empty { folder: folder.to_owned(), source })?;
        Self::try_open(folder, &log)
            .map_err(|obstacle| OpenError::Unusable { folder: folder.to_owned(), source: obstacle.into() })
    }

    /// Views that keep nothing when they are dropped.
    pub fn in_memory(log: EventLog) -> Result<Self, OpenError> {
        Self::with_store(Store::new(Engine::in_memory(&KEYSPACES)), log, views::all()).map_err(OpenError::Log)
    }

    fn try_open(folder: &Path, log: &EventLog) -> Result<Self, Obstacle> {
        let engine = Engine::open(folder, &KEYSPACES).map_err(Obstacle::Engine)?;
        let (store, views) = (Store::new(engine), views::all());
        if is_unsealed(&store) {
            return Err(Obstacle::Unsealed);
        }
        Self::with_store(store, log.clone(), views).map_err(Obstacle::Runner)
    }

    pub(crate) fn with_store(
        store: Store,
        log: EventLog,
        views: Vec<Registered>,
    ) -> Result<Self, CatchUpError> {
        let store = store.sealed_with(log.sealer());
        let names = views.iter().map(|view| (view.name, view.version)).collect();
        let views: Vec<_> = views.into_iter().map(Arc::new).collect();
        let runner = Runner::answering(log.clone(), store.clone(), &views)?;
        let position = watch::Sender::new(runner.position());
        Ok(Self(Arc::new(Inner {
            log,
            store,
            views: names,
            position,
            runner: Mutex::new(runner),
            rebuilds: Arc::default(),
            is_stopping: AtomicBool::new(false),
            page_events: PAGE_EVENTS,
        })))
    }

    /// The same with another number of events in a step.
    #[cfg(test)]
    pub(crate) fn with_page(mut self, page_events: usize) -> Self {
        Arc::get_mut(&mut self.0).expect("nobody else has it yet").page_events = page_events;
        self
    }

    /// Brings every view to where the log ends now. Blocks for as long as that takes; a server
    /// follows instead.
    pub fn catch_up(&self) -> Result<Position, CatchUpError> {
        let head = self.0.log.head();
        loop {
            let at = self.step(self.0.page_events)?;
            if at >= head {
                return Ok(at);
            }
        }
    }

    /// Takes one page of at most `limit` events. The lock is held for one page, so that several
    /// callers may bring the views along together.
    pub(crate) fn step(&self, limit: usize) -> Result<Position, CatchUpError> {
        let mut runner = self.0.runner.lock().unwrap_or_else(PoisonError::into_inner);
        let at = runner.step(limit)?;
        self.publish(at);
        Ok(at)
    }

    /// Tells whoever waits where the views are.
    pub(crate) fn publish(&self, at: Position) {
        self.0.position.send_if_modified(|position| std::mem::replace(position, at) != at);
    }
}

impl Obstacle {
    fn error(&self) -> &(dyn std::error::Error + 'static) {
        match self {
            Self::Engine(error) => error,
            Self::Runner(error) => error,
            Self::Unsealed => &UnsealedRows,
        }
    }
}

impl From<Obstacle> for Box<dyn std::error::Error + Send + Sync> {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::Engine(error) => error.into(),
            Obstacle::Runner(error) => error.into(),
            Obstacle::Unsealed => UnsealedRows.into(),
        }
    }
}

/// Removes the folder; that it is not there is no error.
fn empty(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
