//! An engine in memory as a disk: what was committed is there after a crash.

use std::{path::Path, sync::Mutex};

use super::{engine_world::Medium, seed::Seed, world::Point};
use crate::{
    engine::{Batch, Durability, Engine, EngineError, Operation},
    keys::{self, INDEX},
};

pub(super) struct Memory(Mutex<State>);

struct State {
    /// What is on the disk.
    disk: Engine,
    /// What is there if the commit that is being made is lost, and if it is made good.
    without: Option<Engine>,
    with: Option<Engine>,
}

impl Medium for Memory {
    fn new() -> Self {
        let disk = Engine::in_memory(&keys::KEYSPACES);
        Self(Mutex::new(State { disk, without: None, with: None }))
    }

    fn open(&self, _: &Path) -> Result<Engine, EngineError> {
        Ok(self.0.lock().unwrap().disk.clone())
    }

    fn before(&self, batch: &mut Batch, point: Option<Point>) {
        if !matches!(point, Some(Point::HalfThenLost | Point::HalfThenKept)) {
            return;
        }
        let mut state = self.0.lock().unwrap();
        let with = state.disk.fork().unwrap();
        with.commit(batch.clone(), Durability::Synced).unwrap();
        (state.without, state.with) = (state.disk.fork(), Some(with));
        batch.operations.truncate(batch.operations.len() / 2);
    }

    fn die(&self, point: Point, _: &mut Seed) {
        let mut state = self.0.lock().unwrap();
        let (without, with) = (state.without.take(), state.with.take());
        let survives = if point == Point::HalfThenKept { with } else { without };
        if let Some(survives) = survives {
            state.disk = survives;
        }
    }

    fn bury(&self, _: &Path) {}
}

/// How a disk can be broken so that nobody is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Defect {
    /// A commit is answered before it is durable: the last one is lost in a crash.
    AcknowledgesBeforeWriting,
    /// A commit that failed can be read until the next start.
    ShowsWhatIsNotDurable,
    /// The ends of streams are not written each time, so that seqs are given out again.
    ForgetsEndsOfStreams,
    /// Idempotency keys are not written.
    ForgetsIdempotencyKeys,
    /// A commit in the middle of which the process died is there by half.
    KeepsHalves,
    /// A destroyed key is there again after a crash.
    UndoesErasures,
    /// The last event of some commits is changed.
    ChangesEvents,
}

/// A disk with the defect whose number it is.
pub(super) struct Broken<const DEFECT: usize> {
    inner: Memory,
    /// The disk as it was before the last commit.
    behind: Mutex<Option<Engine>>,
}

impl Defect {
    pub(super) const ALL: [Self; 7] = [
        Self::AcknowledgesBeforeWriting,
        Self::ShowsWhatIsNotDurable,
        Self::ForgetsEndsOfStreams,
        Self::ForgetsIdempotencyKeys,
        Self::KeepsHalves,
        Self::UndoesErasures,
        Self::ChangesEvents,
    ];
}

impl<const DEFECT: usize> Broken<DEFECT> {
    const IS: Defect = Defect::ALL[DEFECT];
}

impl<const DEFECT: usize> Medium for Broken<DEFECT> {
    fn new() -> Self {
        Self { inner: Memory::new(), behind: Mutex::new(None) }
    }

    fn open(&self, folder: &Path) -> Result<Engine, EngineError> {
        self.inner.open(folder)
    }

    fn before(&self, batch: &mut Batch, point: Option<Point>) {
        let now = self.inner.0.lock().unwrap().disk.fork().unwrap();
        match Self::IS {
            Defect::AcknowledgesBeforeWriting => *self.behind.lock().unwrap() = Some(now),
            Defect::ShowsWhatIsNotDurable if point == Some(Point::FailedButWritten) => {
                *self.behind.lock().unwrap() = Some(now);
            }
            Defect::ForgetsEndsOfStreams if has_event(batch) && batch.len().is_multiple_of(3) => {
                remove(batch, |key| key.starts_with(&keys::stream::prefix()));
            }
            Defect::ForgetsIdempotencyKeys => {
                remove(batch, |key| key.starts_with(&keys::idempotency::all()));
            }
            Defect::ChangesEvents if has_event(batch) && batch.len().is_multiple_of(5) => change(batch),
            Defect::ShowsWhatIsNotDurable
            | Defect::ForgetsEndsOfStreams
            | Defect::KeepsHalves
            | Defect::UndoesErasures
            | Defect::ChangesEvents => {}
        }
        self.inner.before(batch, point);
    }

    fn die(&self, point: Point, dice: &mut Seed) {
        if Self::IS == Defect::KeepsHalves {
            let mut state = self.inner.0.lock().unwrap();
            (state.without, state.with) = (None, None);
        }
        self.inner.die(point, dice);
        if let Some(behind) = self.behind.lock().unwrap().take() {
            self.inner.0.lock().unwrap().disk = behind;
        }
    }

    fn bury(&self, _: &Path) {
        if let Some(behind) =
            self.behind.lock().unwrap().take().filter(|_| Self::IS == Defect::ShowsWhatIsNotDurable)
        {
            self.inner.0.lock().unwrap().disk = behind;
        }
    }

    fn keeps_erasures(&self) -> bool {
        Self::IS != Defect::UndoesErasures
    }
}

fn has_event(batch: &Batch) -> bool {
    batch
        .operations
        .iter()
        .any(|operation| !matches!(operation, Operation::Put { keyspace, .. } if *keyspace == INDEX))
}

fn remove(batch: &mut Batch, is_meant: impl Fn(&[u8]) -> bool) {
    batch.operations.retain(|operation| match operation {
        Operation::Put { keyspace, key, .. } => *keyspace != INDEX || !is_meant(key),
        Operation::PutTwice { .. } | Operation::Delete { .. } => true,
    });
}

/// Changes the last byte of the last record.
fn change(batch: &mut Batch) {
    for operation in batch.operations.iter_mut().rev() {
        match operation {
            Operation::Put { keyspace, value, .. } if *keyspace != INDEX => return value[0] ^= 1,
            Operation::PutTwice { value, .. } => return *value.last_mut().unwrap() ^= 1,
            Operation::Put { .. } | Operation::Delete { .. } => {}
        }
    }
}
