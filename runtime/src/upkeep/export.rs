//! Exports of the log of a running server, into the folder for backups.

use std::{ops::ControlFlow, path::Path};

use domain::ids::JobId;
use eventlog::export::{self, ExportError, ExportRequest, Filter, SigningKey};

use super::{BackupName, FREE_BYTES_MIN, Failed, Inner, Job, JobKind, JobState, Upkeep, UpkeepError, failed};

/// The program, as exports name it.
const MADE_BY: &str = concat!("remit ", env!("CARGO_PKG_VERSION"));

/// What an export is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportOrder {
    /// The name of its folder; the time when none is given.
    pub name: Option<BackupName>,
    /// Which events.
    pub filter: Filter,
    /// Whether the outputs that its events name are written beside them, in plain.
    pub with_blobs: bool,
}

impl Upkeep {
    /// Begins an export, or goes on with one of the same name and filter that was stopped. It blocks
    /// for the moment that it takes to look at the disk.
    pub fn start_export(&self, order: ExportOrder) -> Result<Job, UpkeepError> {
        let name = order.name.unwrap_or_else(|| BackupName::of_time(self.0.clock.now()));
        let folder = self.0.backups.join(name.as_str());
        self.0.make_room(&name, &folder)?;
        let kind = JobKind::Export { name, folder: folder.clone(), manifest: None };
        self.begin(kind, |inner, job_id| {
            let work =
                move || inner.end(job_id, inner.export(job_id, &folder, (order.filter, order.with_blobs)));
            drop(self.0.tasks.spawn_blocking(work));
        })
    }
}

impl Inner {
    fn export(&self, job_id: JobId, folder: &Path, (filter, with_blobs): (Filter, bool)) -> JobState {
        let mut is_full = false;
        let mut progress = |progress| {
            self.change(job_id, |job| job.progress = progress);
            // What cannot be measured now was measured before.
            is_full = eventlog::free_bytes(&self.backups).is_ok_and(|free| free < FREE_BYTES_MIN);
            if is_full || self.is_stopping() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let made = SigningKey::of(self.signing_key.as_deref(), &self.data).and_then(|key| {
            let (key, made_at, made_by) = (&key, self.clock.now(), MADE_BY.to_owned());
            let progress = &mut progress;
            let request = ExportRequest {
                target: folder,
                filter,
                with_blobs,
                is_anew: false,
                key,
                made_at,
                made_by,
                progress,
            };
            export::export(&self.log, request)
        });
        match made {
            Ok(made) => {
                self.change(job_id, |job| {
                    if let JobKind::Export { manifest, .. } = &mut job.kind {
                        *manifest = Some(Box::new(made.manifest));
                    }
                });
                JobState::Done
            }
            Err(ExportError::Stopped) if is_full => JobState::Failed(Failed {
                reason: format!(
                    "the disk of {} is nearly full; when there is room, ask for it again by its name to go on",
                    self.backups.display()
                ),
                is_damage: false,
            }),
            Err(ExportError::Stopped) => JobState::Stopped,
            Err(error) => failed(&error),
        }
    }
}
