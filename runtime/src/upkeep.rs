//! Long work on the whole log while it is in use: backups, and verifications that read every record.
//!
//! Each reads the log from its beginning to where it ended when the work began, so they run one at a
//! time, on a thread of their own. A backup is made in one folder that the operator chose, under a
//! plain name, and gives up before it takes the disk's last space from the log. Nothing of this is
//! recorded: the last few pieces of work are remembered until the process ends.

use std::{
    collections::VecDeque,
    io,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use domain::{causes::with_causes, ids::JobId};
use eventlog::{
    EventLog, ExportedHead, Position, Progress, ReadError, VerifyError, VerifyRequest,
    backup::{BackupError, BackupRequest, THREADS_FOLDER},
};
use tokio_util::task::TaskTracker;

use crate::{clock::Clock, id_source::IdSource};

mod export;
mod job;
#[cfg(test)]
mod tests;

pub use export::ExportOrder;
pub use job::{BackupName, Failed, InvalidBackupName, Job, JobKind, JobState};

/// Pieces of work that are remembered. More are only of interest to whoever asked for them, and they
/// know the outcome by then.
const JOBS_MAX: usize = 32;
/// Space that a backup leaves on its disk. The log may be on the same one, and would take no more
/// writes without it.
const FREE_BYTES_MIN: u64 = 256 * 1024 * 1024;

/// Why a piece of work was not begun.
#[derive(Debug, thiserror::Error)]
pub enum UpkeepError {
    /// One at a time.
    #[error("{job_id} is at work on the log; ask again when it has ended, or stop the server to stop it")]
    Busy {
        /// What is at work.
        job_id: JobId,
    },
    /// There is a backup of that name.
    #[error("there is something named {name} among the backups already; choose another name")]
    Taken {
        /// The name.
        name: BackupName,
    },
    /// A backup would not fit.
    #[error(
        "{} has {free} bytes free, and a backup of this log wants {wanted}; free some space, or name another \
         folder in server.backups",
        .folder.display()
    )]
    NoSpace {
        /// The folder for backups.
        folder: PathBuf,
        /// What is there.
        free: u64,
        /// What it takes.
        wanted: u64,
    },
    /// The folder for backups cannot be used.
    #[error("could not use the folder for backups {}", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The log could not be measured.
    #[error("could not measure the log")]
    Read(#[from] ReadError),
    /// The process is going down.
    #[error("the server is shutting down")]
    ShuttingDown,
}

/// The long work of one process. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Upkeep(Arc<Inner>);

struct Inner {
    log: EventLog,
    data: PathBuf,
    threads: PathBuf,
    backups: PathBuf,
    /// The file of the key that signs exports; without one, the data folder has its own.
    signing_key: Option<PathBuf>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    /// The newest last. The last one alone may be at work.
    jobs: Mutex<VecDeque<Job>>,
    is_stopping: AtomicBool,
    tasks: TaskTracker,
}

/// What a backup is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupOrder {
    /// The name of its folder; the time when none is given.
    pub name: Option<BackupName>,
    /// Whether the files of threads belong to it.
    pub with_threads: bool,
}

impl Upkeep {
    pub(crate) fn new(
        log: EventLog,
        data_folder: &Path,
        backups: PathBuf,
        signing_key: Option<PathBuf>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        Self(Arc::new(Inner {
            log,
            data: data_folder.to_owned(),
            threads: data_folder.join(THREADS_FOLDER),
            backups,
            signing_key,
            clock,
            ids,
            jobs: Mutex::default(),
            is_stopping: AtomicBool::new(false),
            tasks: TaskTracker::new(),
        }))
    }

    /// Begins a backup. It blocks for the moment that it takes to look at the disk.
    pub fn start_backup(&self, order: BackupOrder) -> Result<Job, UpkeepError> {
        let now = self.0.clock.now();
        let name = order.name.unwrap_or_else(|| BackupName::of_time(now));
        let folder = self.0.backups.join(name.as_str());
        self.0.make_room(&name, &folder)?;
        let kind = JobKind::Backup { name, folder: folder.clone(), manifest: None };
        self.begin(kind, |inner, job_id| {
            let work = move || inner.end(job_id, inner.back_up(job_id, &folder, order.with_threads));
            drop(self.0.tasks.spawn_blocking(work));
        })
    }

    /// Begins to verify the log up to its present end, against a head that was written down earlier
    /// if one is given. It changes nothing, so a shutdown does not wait for it.
    pub fn start_verification(&self, exported: Option<ExportedHead>) -> Result<Job, UpkeepError> {
        self.begin(JobKind::Verification { report: None }, |inner, job_id| {
            drop(tokio::task::spawn_blocking(move || inner.end(job_id, inner.verify(job_id, exported))));
        })
    }

    /// Space that is left on the disk of the data folder.
    pub fn free_bytes(&self) -> io::Result<u64> {
        eventlog::free_bytes(&self.0.data)
    }

    /// What was asked for last, the oldest first.
    pub fn jobs(&self) -> Vec<Job> {
        self.0.jobs().iter().cloned().collect()
    }

    /// One piece of work; none if it is forgotten or never was.
    pub fn job(&self, job_id: JobId) -> Option<Job> {
        self.0.jobs().iter().find(|job| job.job_id == job_id).cloned()
    }

    /// Stops what is at work, and answers when it has stopped: a backup that is not whole is removed.
    pub(crate) async fn shutdown(&self) {
        {
            let _nothing_begins = self.0.jobs();
            self.0.is_stopping.store(true, Ordering::SeqCst);
        }
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Takes the one place. The work is begun while the list is held, so that a shutdown either
    /// refuses it or waits for it.
    fn begin(&self, kind: JobKind, start: impl FnOnce(Arc<Inner>, JobId)) -> Result<Job, UpkeepError> {
        let head = self.0.log.head();
        let mut jobs = self.0.jobs();
        if self.0.is_stopping() {
            return Err(UpkeepError::ShuttingDown);
        }
        if let Some(busy) = jobs.back().filter(|job| job.state == JobState::Running) {
            return Err(UpkeepError::Busy { job_id: busy.job_id });
        }
        let job = Job {
            job_id: JobId::from_uuid(self.0.ids.uuid()),
            kind,
            state: JobState::Running,
            progress: Progress { position: Position::ZERO, head },
            started_at: self.0.clock.now(),
            ended_at: None,
        };
        jobs.push_back(job.clone());
        if jobs.len() > JOBS_MAX {
            jobs.pop_front();
        }
        start(Arc::clone(&self.0), job.job_id);
        Ok(job)
    }
}

impl Inner {
    fn jobs(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    fn change(&self, job_id: JobId, change: impl FnOnce(&mut Job)) {
        if let Some(job) = self.jobs().iter_mut().find(|job| job.job_id == job_id) {
            change(job);
        }
    }

    fn end(&self, job_id: JobId, state: JobState) {
        let now = self.clock.now();
        if let JobState::Failed(Failed { reason, .. }) = &state {
            tracing::error!(%job_id, %reason, "work on the log failed");
        }
        self.change(job_id, |job| {
            job.state = state;
            job.ended_at = Some(now);
        });
    }

    /// Makes the folder for backups, and sees that one more fits.
    fn make_room(&self, name: &BackupName, folder: &Path) -> Result<(), UpkeepError> {
        let unusable = |source| UpkeepError::Folder { folder: self.backups.clone(), source };
        std::fs::create_dir_all(&self.backups).map_err(unusable)?;
        if std::fs::symlink_metadata(folder).is_ok() {
            return Err(UpkeepError::Taken { name: name.clone() });
        }
        let free = eventlog::free_bytes(&self.backups).map_err(unusable)?;
        let wanted = self.log.disk_bytes()?.saturating_add(FREE_BYTES_MIN);
        if free < wanted {
            return Err(UpkeepError::NoSpace { folder: self.backups.clone(), free, wanted });
        }
        Ok(())
    }

    fn back_up(&self, job_id: JobId, folder: &Path, with_threads: bool) -> JobState {
        let mut is_full = false;
        let mut progress = |progress| {
            self.change(job_id, |job| job.progress = progress);
            // What cannot be measured now was measured before.
            is_full = eventlog::free_bytes(&self.backups).is_ok_and(|free| free < FREE_BYTES_MIN);
            if is_full || self.is_stopping() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let request = BackupRequest {
            taken_at: self.clock.now(),
            threads: with_threads.then_some(self.threads.as_path()),
            progress: &mut progress,
        };
        match self.log.back_up(folder, request) {
            Ok(made) => {
                self.change(job_id, |job| {
                    if let JobKind::Backup { manifest, .. } = &mut job.kind {
                        *manifest = Some(Box::new(made));
                    }
                });
                JobState::Done
            }
            Err(BackupError::Stopped) if is_full => JobState::Failed(Failed {
                reason: format!(
                    "the disk of {} is nearly full, so the backup was given up and removed",
                    self.backups.display()
                ),
                is_damage: false,
            }),
            Err(BackupError::Stopped) => JobState::Stopped,
            Err(error) => failed(&error),
        }
    }

    fn verify(&self, job_id: JobId, exported: Option<ExportedHead>) -> JobState {
        let mut progress = |progress| self.change(job_id, |job| job.progress = progress);
        match self.log.verify(VerifyRequest { exported, progress: Some(&mut progress) }) {
            Ok(found) => {
                self.change(job_id, |job| {
                    if let JobKind::Verification { report } = &mut job.kind {
                        *report = Some(Box::new(found));
                    }
                });
                JobState::Done
            }
            Err(VerifyError::Closed) => JobState::Stopped,
            Err(error) => failed(&error),
        }
    }
}

fn failed(error: &(dyn std::error::Error + 'static)) -> JobState {
    JobState::Failed(Failed { reason: with_causes(error), is_damage: eventlog::is_damage(error) })
}
