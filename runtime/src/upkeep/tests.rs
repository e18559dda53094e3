//! Backups and verifications of a log in use.

use std::{fs, sync::Arc};

use domain::ids::{EventId, ThreadId, UserId};
use eventlog::{Append, Expected, Json, NewEvent, Options, Scope, StreamId, backup::verify_backup};

use super::*;
use crate::{SystemClock, SystemIds};

struct World {
    folder: tempfile::TempDir,
    log: EventLog,
    upkeep: Upkeep,
}

/// A log on disk with some thousand events, so that a backup takes several steps.
async fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let log = EventLog::open(&data, Options::default()).unwrap();
    for number in 0..30_u128 {
        let events = (0..100).map(|index| note(number * 100 + index)).collect();
        let stream = StreamId::Thread(ThreadId::new("t").unwrap());
        let append = Append { stream, expected: Expected::Any, idempotency_key: None, events };
        log.append(append).await.unwrap();
    }
    let outputs = data.join("threads/t/user-data/outputs");
    fs::create_dir_all(&outputs).unwrap();
    fs::write(outputs.join("report.md"), "the report").unwrap();
    let backups = folder.path().join("backups");
    let upkeep = Upkeep::new(log.clone(), &data, backups, None, Arc::new(SystemClock), Arc::new(SystemIds));
    World { folder, log, upkeep }
}

fn note(number: u128) -> NewEvent {
    NewEvent {
        event_id: EventId::from_uuid(uuid::Uuid::from_u128(number)),
        event_type: "note".to_owned(),
        schema_version: 1,
        category: "trace".to_owned(),
        scope: Scope::default(),
        owner: UserId::unowned(),
        causation_id: None,
        correlation_id: None,
        created_at: jiff::Timestamp::UNIX_EPOCH,
        content: Json::empty_object(),
        metadata: Json::empty_object(),
    }
}

fn named(name: &str) -> BackupOrder {
    BackupOrder { name: Some(BackupName::new(name).unwrap()), with_threads: true }
}

impl World {
    /// Waits until the work has ended.
    async fn ended(&self, job: &Job) -> Job {
        loop {
            let job = self.upkeep.job(job.job_id).unwrap();
            if job.state != JobState::Running {
                return job;
            }
            tokio::task::yield_now().await;
        }
    }

    fn names(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.folder.path().join("backups")) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_in_use_is_backed_up_and_verified() {
    let world = world().await;
    let job = world.upkeep.start_backup(named("monday")).unwrap();
    let done = world.ended(&job).await;
    assert_eq!(done.state, JobState::Done, "{done:?}");
    let JobKind::Backup { folder, manifest, .. } = &done.kind else { panic!("{done:?}") };
    let manifest = manifest.as_ref().unwrap();
    assert_eq!((manifest.events, manifest.threads.as_ref().unwrap().files), (3_000, 1));
    verify_backup(folder, VerifyRequest::default()).unwrap();

    let taken = world.upkeep.start_backup(named("monday")).unwrap_err();
    assert!(matches!(taken, UpkeepError::Taken { .. }), "{taken}");
    let without = BackupOrder { name: None, with_threads: false };
    let done = world.ended(&world.upkeep.start_backup(without).unwrap()).await;
    let JobKind::Backup { manifest, .. } = &done.kind else { panic!("{done:?}") };
    assert_eq!(manifest.as_ref().unwrap().threads, None);
    assert_eq!(world.names().len(), 2);

    let exported = world.log.exported_head().unwrap();
    let done = world.ended(&world.upkeep.start_verification(Some(exported)).unwrap()).await;
    let JobKind::Verification { report } = &done.kind else { panic!("{done:?}") };
    assert!(report.as_ref().unwrap().is_whole());
    let longer = ExportedHead { position: Position::new(9_999), ..exported };
    let done = world.ended(&world.upkeep.start_verification(Some(longer)).unwrap()).await;
    let JobKind::Verification { report } = &done.kind else { panic!("{done:?}") };
    assert!(report.as_ref().unwrap().damage.is_some());
    assert_eq!(world.upkeep.jobs().len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_at_a_time_and_the_last_few_are_remembered() {
    let world = world().await;
    let mut refused = 0;
    for _ in 0..JOBS_MAX + 4 {
        let job = world.upkeep.start_verification(None).unwrap();
        match world.upkeep.start_backup(named("second")) {
            Err(UpkeepError::Busy { job_id }) => {
                assert_eq!(job_id, job.job_id);
                refused += 1;
            }
            // The verification had ended by then.
            Ok(backup) => {
                world.ended(&backup).await;
                fs::remove_dir_all(world.folder.path().join("backups/second")).unwrap();
            }
            Err(error) => panic!("{error}"),
        }
        world.ended(&job).await;
    }
    assert!(refused > 0);
    assert_eq!(world.upkeep.jobs().len(), JOBS_MAX);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_leaves_no_half_backup() {
    let world = world().await;
    let job = world.upkeep.start_backup(named("cut")).unwrap();
    world.upkeep.shutdown().await;
    let job = world.upkeep.job(job.job_id).unwrap();
    match job.state {
        JobState::Stopped => assert_eq!(world.names(), Vec::<String>::new()),
        // It was quicker.
        JobState::Done => {
            drop(verify_backup(&world.folder.path().join("backups/cut"), VerifyRequest::default()).unwrap())
        }
        JobState::Running | JobState::Failed(_) => panic!("{job:?}"),
    }
    let late = world.upkeep.start_backup(named("late")).unwrap_err();
    assert!(matches!(late, UpkeepError::ShuttingDown), "{late}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_cannot_be_used_is_named() {
    let world = world().await;
    fs::write(world.folder.path().join("backups"), "a file").unwrap();
    let refused = world.upkeep.start_backup(named("x")).unwrap_err();
    assert!(matches!(refused, UpkeepError::Folder { .. }), "{refused}");
    assert!(world.upkeep.jobs().is_empty());
}
