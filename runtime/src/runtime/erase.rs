//! Erasing threads and runs.
//!
//! An erasure is recorded before anything is done, and its steps may be done twice: stop the run,
//! destroy the keys, wait for tools that are still at work, remove the folders, record the end. So
//! one that a crash or a shutdown cut off is carried on from wherever it was.

mod again;
mod job;
mod request;

use domain::{
    event::ErasureReason,
    ids::{ErasureId, RunId, ThreadId, UserId},
};

use eventlog::Position;

pub use self::again::enforce;
use self::job::Job;
pub(super) use self::job::Jobs;
#[cfg(test)]
pub(super) use self::job::destroy_keys;
pub(super) use self::request::Target;
use super::Runtime;
use crate::{
    erasure::{self, Erasure, ErasureState},
    request::{EraseError, HistoryError},
};

/// What is to be erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Erase {
    /// A thread: its events, rows and folders. A workspace that a person chose is theirs, and stays.
    Thread(ThreadId),
    /// One run of a thread: its events and rows. What it wrote in the thread's folders is the thread's,
    /// and stays.
    Run(ThreadId, RunId),
    /// All threads that an owner has now.
    Owner(UserId),
}

/// An erasure that was asked for. It is carried out whether or not anybody waits for it.
#[derive(Debug)]
pub struct Erasing {
    /// Its record.
    pub erasure_id: ErasureId,
    job: Job,
}

impl Erasing {
    /// Waits until nothing is left.
    pub async fn done(self) -> Result<ErasureId, EraseError> {
        self.job.ended(self.erasure_id).await.map(|()| self.erasure_id)
    }
}

impl Runtime {
    /// Records what is to be erased, and begins with it: a run at work is cancelled and waited for, and
    /// keys are destroyed. Answers when the request is durable. Positions and seqs stay, and the log
    /// verifies as before.
    ///
    /// A caller that goes away does not stop it. One that was cut off earlier is carried on.
    pub async fn begin_erasing(&self, what: Erase) -> Result<Vec<Erasing>, EraseError> {
        if self.stop.cause().is_some() {
            return Err(EraseError::ShuttingDown);
        }
        let runtime = self.clone();
        let beginning = self.runs.spawn(async move {
            match what {
                Erase::Thread(thread_id) => {
                    let target = Target::Thread(thread_id);
                    runtime.request(target, ErasureReason::Thread, None).await.map(|one| vec![one])
                }
                Erase::Run(thread_id, run_id) => {
                    let target = Target::Run(thread_id, run_id);
                    runtime.request(target, ErasureReason::Run, None).await.map(|one| vec![one])
                }
                Erase::Owner(owner) => runtime.request_all_of(owner).await,
            }
        });
        match beginning.await {
            Ok(begun) => begun,
            Err(failure) if failure.is_panic() => std::panic::resume_unwind(failure.into_panic()),
            Err(_) => Err(EraseError::ShuttingDown),
        }
    }

    /// Erases a thread, and answers when nothing of it is left.
    pub async fn erase_thread(&self, thread_id: &ThreadId) -> Result<ErasureId, EraseError> {
        self.erase_one(Erase::Thread(thread_id.clone())).await
    }

    /// Erases one run of a thread, and answers when nothing of it is left but its files.
    pub async fn erase_run(&self, thread_id: &ThreadId, run_id: &RunId) -> Result<ErasureId, EraseError> {
        self.erase_one(Erase::Run(thread_id.clone(), run_id.clone())).await
    }

    /// Erases all threads of an owner. After an error those that were begun are carried on.
    pub async fn erase_owner(&self, owner: &UserId) -> Result<Vec<ErasureId>, EraseError> {
        let begun = self.begin_erasing(Erase::Owner(owner.clone())).await?;
        let mut erased = Vec::with_capacity(begun.len());
        for one in begun {
            erased.push(one.done().await?);
        }
        Ok(erased)
    }

    async fn erase_one(&self, what: Erase) -> Result<ErasureId, EraseError> {
        let mut begun = self.begin_erasing(what).await?;
        match begun.pop() {
            Some(one) => one.done().await,
            // A thread or a run is one erasure.
            None => Err(EraseError::ShuttingDown),
        }
    }

    /// All erasures, in the order in which they were asked for.
    pub fn erasures(&self) -> Result<Vec<Erasure>, HistoryError> {
        self.erasures_as_of(None)
    }

    /// The same as they stood when an event was the log's newest; `None` is now.
    pub fn erasures_as_of(&self, as_of: Option<Position>) -> Result<Vec<Erasure>, HistoryError> {
        match as_of {
            None => erasure::read_all(&self.services.log),
            Some(position) => erasure::read_until(&self.services.log, position),
        }
    }

    /// One erasure; none if there is no such.
    pub fn erasure(&self, erasure_id: ErasureId) -> Result<Option<Erasure>, HistoryError> {
        Ok(self.erasures()?.into_iter().find(|erasure| erasure.erasure_id == erasure_id))
    }

    /// Destroys again what an older copy of the keys has brought back, and carries on what was cut
    /// off.
    pub(super) async fn resume_erasures(&self) -> Result<(), EraseError> {
        let services = &self.services;
        enforce(&services.log, &*services.ids, &*services.clock).await?;
        let mut begun = Vec::new();
        let all = self.read(erasure::read_all).await?;
        for erasure in all.into_iter().filter(|one| one.state != ErasureState::Done) {
            begun.push(self.carry_out_aside(erasure));
        }
        for one in begun {
            // Whoever carries it out has told of what went wrong.
            drop(one.done().await);
        }
        Ok(())
    }
}
