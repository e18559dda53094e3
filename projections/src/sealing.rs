//! Rows carry what was said on a thread, and are forgotten with it: each is sealed before the engine
//! has it. A row that the events of one run made is sealed with the run's key and forgotten with the
//! run; one that several made, or none, with the thread's. A row whose key was destroyed is not there.

use domain::ids::RunHash;
use eventlog::{Sealer, Unsealed};

use crate::{
    keys::{self, KeyKind},
    store::RowError,
};

/// Whose events made a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Those of one run.
    Run(RunHash),
    /// Those of several runs, or of none.
    Thread,
}

impl Origin {
    /// Of an event.
    pub(crate) fn of(run: Option<RunHash>) -> Self {
        run.map_or(Self::Thread, Self::Run)
    }

    /// Of a row after an event.
    pub(crate) fn and(self, event: Self) -> Self {
        if self == event { self } else { Self::Thread }
    }
}

/// What rows are sealed with.
#[derive(Clone, Default)]
pub(crate) enum Sealing {
    /// Nothing: rows of a store that belongs to no log yet.
    #[default]
    Plain,
    /// The keys of the log that they are made of.
    With(Sealer),
}

impl Sealing {
    /// A row as the engine gets it. What belongs to no thread stays as it is.
    pub(crate) fn seal(&self, key: &[u8], origin: Origin, row: Vec<u8>) -> Vec<u8> {
        match (self, keys::thread_of(key), origin) {
            (Self::With(sealer), Some(thread_id), Origin::Run(run)) => sealer.seal_run(&thread_id, run, &row),
            (Self::With(sealer), Some(thread_id), Origin::Thread) => sealer.seal(&thread_id, &row),
            (Self::Plain, ..) | (Self::With(_), None, _) => row,
        }
    }

    /// What [`Self::seal`] was given; none if the thread or run was erased. A row that does not open
    /// although its key is there is damaged.
    pub(crate) fn open(
        &self,
        kind: KeyKind,
        key: &[u8],
        sealed: &[u8],
    ) -> Result<Option<(Vec<u8>, Origin)>, RowError> {
        let (Self::With(sealer), Some(thread_id)) = (self, keys::thread_of(key)) else {
            return Ok(Some((sealed.to_vec(), Origin::Thread)));
        };
        match sealer.open(&thread_id, sealed) {
            Unsealed::Said(row, run) => Ok(Some((row, Origin::of(run)))),
            Unsealed::Erased => Ok(None),
            Unsealed::Broken => Err(RowError::Unopened { kind: format!("{kind:?}") }),
        }
    }
}
