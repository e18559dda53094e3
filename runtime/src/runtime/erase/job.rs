//! Carrying an erasure out. Jobs of different threads and runs go side by side; two that are asked for
//! the same are one.

use std::{
    collections::HashMap,
    fs, io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::{
    event::{CancelReason, RegistryEvent, RunErased, ThreadErased},
    ids::{ErasureId, RunHash, RunId, ThreadId},
};
use eventlog::{EventLog, Seq, StreamId};
use tokio::{
    sync::{OwnedMutexGuard, watch},
    task::JoinHandle,
};

use super::{Erasing, Runtime, request};
use crate::{
    cancellation::StopCause,
    erasure::{self, Erasure},
    request::EraseError,
    sandbox::ThreadFolders,
};

/// A thread, or a run on it.
type Key = (ThreadId, Option<RunHash>);
/// Has become true when a job has come to its end, and is closed when it has not.
type Ended = watch::Receiver<bool>;

/// The erasures that this process carries out. Clones are one list.
#[derive(Clone, Default)]
pub(in super::super) struct Jobs(Arc<Mutex<HashMap<Key, (ErasureId, Ended)>>>);

/// Strikes a job off the list when it is over, on whatever way out.
struct Listed {
    jobs: Jobs,
    key: Key,
}

/// The work on an erasure.
#[derive(Debug)]
pub(super) enum Job {
    /// Begun by whoever asked.
    Own(JoinHandle<Result<(), EraseError>>),
    /// Begun by somebody before.
    Joined(Ended),
}

impl Job {
    /// Waits for its end.
    pub(super) async fn ended(self, erasure_id: ErasureId) -> Result<(), EraseError> {
        match self {
            Self::Own(job) => match job.await {
                Ok(ended) => ended,
                Err(failure) if failure.is_panic() => std::panic::resume_unwind(failure.into_panic()),
                Err(_) => Err(EraseError::ShuttingDown),
            },
            Self::Joined(mut ended) => {
                let ended = ended.wait_for(|is_done| *is_done).await;
                ended.map(drop).map_err(|_| EraseError::Unfinished(erasure_id))
            }
        }
    }
}

impl Jobs {
    /// The job that is under way.
    pub(super) fn join(&self, thread_id: &ThreadId, run: Option<RunHash>) -> Option<Erasing> {
        let jobs = self.lock();
        let (erasure_id, ended) = jobs.get(&(thread_id.clone(), run))?;
        Some(Erasing { erasure_id: *erasure_id, job: Job::Joined(ended.clone()) })
    }

    fn enter(&self, erasure: &Erasure, ended: Ended) -> Listed {
        let key = (erasure.thread_id.clone(), erasure.run);
        self.lock().insert(key.clone(), (erasure.erasure_id, ended));
        Listed { jobs: self.clone(), key }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, (ErasureId, Ended)>> {
        // The map is whole between any two statements that could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.jobs.lock().remove(&self.key);
    }
}

impl Runtime {
    /// In a tokio task of its own, which a shutdown waits for.
    pub(super) fn carry_out_aside(&self, erasure: Erasure) -> Erasing {
        let (done, ended) = watch::channel(false);
        let listed = self.jobs.enter(&erasure, ended);
        let (runtime, erasure_id) = (self.clone(), erasure.erasure_id);
        let job = self.runs.spawn(async move {
            let carried_out = runtime.carry_out(&erasure).await;
            drop(listed);
            match &carried_out {
                Ok(()) => drop(done.send(true)),
                Err(EraseError::ShuttingDown) => {}
                Err(error) => {
                    let thread_id = &erasure.thread_id;
                    tracing::error!(%erasure_id, %thread_id, error = error as &dyn std::error::Error, "an erasure was not finished");
                }
            }
            carried_out
        });
        Erasing { erasure_id, job: Job::Own(job) }
    }

    async fn carry_out(&self, erasure: &Erasure) -> Result<(), EraseError> {
        let no_starts = self.idle(erasure).await?;
        destroy_keys(&self.services.log, erasure).await?;
        drop(no_starts);
        self.tools_ended(erasure).await?;
        self.remove_folders(erasure).await?;
        self.record_end(erasure).await
    }

    /// Cancels the run that is to be erased, or whichever the thread has, and waits for its end.
    /// While the guard is held, none can start.
    async fn idle(&self, erasure: &Erasure) -> Result<OwnedMutexGuard<()>, EraseError> {
        let thread_id = &erasure.thread_id;
        loop {
            let no_starts = self.no_starts(thread_id).await?;
            let active = self.services.live_runs.active(thread_id);
            let Some(run_id) = active.filter(|run_id| is_of(erasure, thread_id, run_id)) else {
                return Ok(no_starts);
            };
            let Some(context) = self.live(thread_id, &run_id) else { continue };
            drop(no_starts);
            context.stop.stop(StopCause::Cancelled(CancelReason::CancelledByUser));
            drop(context);
            // Whether it has an end or could not record one: it has stopped.
            drop(self.wait(thread_id, &run_id).await);
        }
    }

    /// A shutdown may come first; what is not done by then is carried on later.
    async fn no_starts(&self, thread_id: &ThreadId) -> Result<OwnedMutexGuard<()>, EraseError> {
        tokio::select! {
            biased;
            () = self.stop.stopped() => Err(EraseError::ShuttingDown),
            guard = self.starting.lock(thread_id) => Ok(guard),
        }
    }

    /// Tools outlive the run that called them by as long as it takes to write a file or to kill a
    /// process. None of them may write after the end.
    async fn tools_ended(&self, erasure: &Erasure) -> Result<(), EraseError> {
        tokio::select! {
            biased;
            () = self.stop.stopped() => Err(EraseError::ShuttingDown),
            () = self.services.tool_work.ended(|thread, run| is_of(erasure, thread, run)) => Ok(()),
        }
    }

    /// Removes a thread's folders. Those of a run are its thread's, and go only when nothing of the
    /// thread can be read any more: then nobody would find them again.
    pub(in super::super) async fn remove_folders(&self, erasure: &Erasure) -> Result<(), EraseError> {
        let thread_id = &erasure.thread_id;
        if erasure.run.is_none() {
            return self.remove_folders_of(thread_id).await;
        }
        let no_starts = self.no_starts(thread_id).await?;
        let wanted = thread_id.clone();
        let owner = self.read(move |log| Ok(request::owner_of(log, &wanted)?)).await?;
        if owner.is_some() || self.services.live_runs.active(thread_id).is_some() {
            return Ok(());
        }
        let whole = Erasure { run: None, ..erasure.clone() };
        self.tools_ended(&whole).await?;
        let removed = self.remove_folders_of(thread_id).await;
        drop(no_starts);
        removed
    }

    async fn remove_folders_of(&self, thread_id: &ThreadId) -> Result<(), EraseError> {
        let folder = ThreadFolders::root(&self.services.data_folder, thread_id);
        let removed = tokio::task::spawn_blocking(move || remove(&folder)).await;
        let removed = removed.unwrap_or_else(|failure| Err(io::Error::other(failure)));
        removed.map_err(|source| EraseError::Folders { thread_id: thread_id.clone(), source })
    }

    /// Each event counts for one erasure only: of two that overlap, for the one whose end is recorded
    /// first.
    async fn record_end(&self, erasure: &Erasure) -> Result<(), EraseError> {
        let Erasure { erasure_id, reason, requested_at, .. } = *erasure;
        let (log, thread_id) = (&self.services.log, erasure.thread_id.clone());
        let _one_at_a_time = self.erasing.lock(&thread_id).await;
        let known = self.read(erasure::read_all).await?;
        let event = match erasure.run {
            Some(run_hash) => {
                let went_before = erasure::is_thread_erased(&known, &thread_id);
                let events = if went_before { 0 } else { log.run_events(run_hash)? };
                RegistryEvent::RunErased(RunErased { erasure_id, thread_id, run_hash, events, requested_at })
            }
            None => {
                let tail = log.stream_tail(&StreamId::Thread(thread_id.clone()))?.unwrap_or(Seq::ZERO);
                let events = tail.get().saturating_sub(erasure::erased_by_runs(&known, &thread_id));
                RegistryEvent::ThreadErased(ThreadErased {
                    erasure_id,
                    thread_id,
                    reason,
                    events,
                    requested_at,
                })
            }
        };
        self.register(&erasure.thread_id, event).await
    }
}

/// Whether the run goes with the erasure.
fn is_of(erasure: &Erasure, thread_id: &ThreadId, run_id: &RunId) -> bool {
    erasure.thread_id == *thread_id
        && erasure.run.is_none_or(|run| run == eventlog::run_hash(thread_id, run_id))
}

/// Removes the folder durably; that it is not there is no error. Links in it are not followed.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        removed => removed?,
    }
    match folder.parent() {
        Some(parent) => fs::File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Destroys the keys of what is erased. That they are gone already is no error.
pub(in super::super) async fn destroy_keys(log: &EventLog, erasure: &Erasure) -> Result<(), EraseError> {
    let thread_id = &erasure.thread_id;
    let destroyed = match erasure.run {
        Some(run) => log.destroy_run_key(thread_id, run).await,
        None => log.destroy_thread_key(thread_id).await,
    };
    let failed = |source| EraseError::Keys { thread_id: thread_id.clone(), source: Box::new(source) };
    destroyed.map(drop).map_err(failed)
}
