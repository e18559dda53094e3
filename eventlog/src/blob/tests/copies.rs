//! A backup has the blobs, and a folder that is made of it as well.

use std::{ops::ControlFlow, os::unix::fs::MetadataExt, path::Path};

use super::*;
use crate::{
    VerifyRequest,
    backup::{self, BackupError, BackupRequest},
    export::{
        ExportDamage, ExportError, ExportRequest, Filter, Import, SigningKey, VerifyExport, export, import,
        verify_export,
    },
    verify_folder,
};

fn try_back_up(log: &EventLog, target: &Path) -> Result<backup::Manifest, BackupError> {
    let progress: &mut dyn FnMut(_) -> _ = &mut |_| ControlFlow::Continue(());
    log.back_up(target, BackupRequest { taken_at: sample::time(), threads: None, progress })
}

fn back_up(log: &EventLog, target: &Path) {
    try_back_up(log, target).unwrap();
}

#[tokio::test]
async fn blobs_are_backed_up_and_restored() {
    let world = World::new().await;
    let blob = world.keep("t", "a", &noise(100_000)).await;
    world.keep("t", "b", &noise(100_000)).await;
    world.stage("t", "b", b"\xffnot named");
    let erased = world.keep("u", "a", b"\xfferased").await;
    world.log.destroy_thread_key(&thread_id("u")).await.unwrap();
    let (backup, data) = (world.folder.path().join("backup"), world.folder.path().join("restored"));
    back_up(&world.log, &backup);
    let report = backup::restore(&backup, &data, &sample::options(), &mut |_| {}).unwrap();
    assert_eq!((report.damage, report.blobs), (None, 2));
    let log = EventLog::open(&data, sample::options()).unwrap();
    assert_eq!(read(&log, "t", blob).unwrap(), noise(100_000));
    assert!(matches!(read(&log, "u", erased), Err(BlobError::NotFound { .. })));
    log.close().await;
    let place = Place::in_data(&data);
    let thread = scope("t", "").thread();
    let inodes: std::collections::BTreeSet<_> = place
        .scopes(thread)
        .unwrap()
        .into_iter()
        .flat_map(|scope| fs::read_dir(place.scope(thread, scope)).unwrap())
        .map(|entry| entry.unwrap().metadata().unwrap())
        .filter(|file| file.len() > 50_000)
        .map(|file| file.ino())
        .collect();
    assert_eq!(inodes.len(), 1, "what is shared stays shared");
}

#[tokio::test]
async fn a_backup_that_lost_a_blob_is_not_restored() {
    let world = World::new().await;
    world.keep("t", "a", &noise(1_000)).await;
    let (backup, data) = (world.folder.path().join("backup"), world.folder.path().join("restored"));
    back_up(&world.log, &backup);
    assert!(backup::verify_backup(&backup, VerifyRequest::default()).unwrap().is_whole());
    fs::remove_dir_all(backup.join("blobs")).unwrap();
    let verified = backup::verify_backup(&backup, VerifyRequest::default()).unwrap_err();
    assert!(verified.is_damage(), "{verified:?}");
    let refused = backup::restore(&backup, &data, &sample::options(), &mut |_| {}).unwrap_err();
    assert!(refused.is_damage() && !data.exists(), "{refused:?}");
    assert!(verify_folder(&data, &sample::options(), VerifyRequest::default()).is_err());
}

#[tokio::test]
async fn a_backup_may_be_stopped_at_any_piece() {
    let world = World::new().await;
    for run in ["a", "b"] {
        world.keep("t", run, &noise(1_000 + run.len())).await;
    }
    let target = world.folder.path().join("backup");
    for stop_at in 0.. {
        let mut calls = 0;
        let progress: &mut dyn FnMut(_) -> _ = &mut |_| {
            calls += 1;
            if calls > stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let request = BackupRequest { taken_at: sample::time(), threads: None, progress };
        match world.log.back_up(&target, request) {
            Err(stopped) => {
                assert!(matches!(stopped, BackupError::Stopped), "{stopped:?}");
                assert!(!target.exists());
            }
            // The segment, the commits and the files of blobs were asked about.
            Ok(_) => return assert!(stop_at >= 5, "{stop_at}"),
        }
    }
}

/// What lacks a blob is no copy, and does not take the place of one that has it.
#[tokio::test]
async fn a_log_that_lost_a_blob_is_not_backed_up_and_the_backup_before_stays() {
    let world = World::new().await;
    world.keep("t", "a", &noise(1_000)).await;
    let at = |name: &str| world.folder.path().join(name);
    back_up(&world.log, &at("backup"));
    // What a second backup that was cut off had copied.
    fs::create_dir_all(at("backup/files/2/threads")).unwrap();
    back_up(&world.log, &at("backup"));
    assert!(!at("backup/files/2/threads").exists());
    assert!(!at("backup/blobs").exists(), "those of the first backup are gone");
    let thread = Place::in_data(world.folder.path()).thread(scope("t", "").thread());
    fs::remove_dir_all(thread).unwrap();
    for target in ["backup", "another"] {
        let refused = try_back_up(&world.log, &at(target)).unwrap_err();
        assert!(
            matches!(&refused, BackupError::LogDamaged(damage) if damage.position.get() > 0),
            "{refused:?}"
        );
    }
    assert!(!at("another").exists());
    let report = backup::restore(&at("backup"), &at("restored"), &sample::options(), &mut |_| {}).unwrap();
    assert_eq!((report.damage, report.blobs), (None, 1));
}

#[tokio::test]
async fn blobs_are_in_a_whole_export_and_in_the_log_that_is_made_of_it() {
    let world = World::new().await;
    let blob = world.keep("t", "a", &noise(100_000)).await;
    let at = |name: &str| world.folder.path().join(name);
    let key = SigningKey::open_or_create(&at("export.key")).unwrap();
    let export_to = |name: &str, filter: Filter| {
        let request = ExportRequest {
            target: &at(name),
            filter,
            is_anew: false,
            key: &key,
            made_at: sample::time(),
            made_by: "remit test".to_owned(),
            progress: &mut |_| ControlFlow::Continue(()),
        };
        export(&world.log, request)
    };
    let verify = |name: &str| verify_export(&at(name), VerifyExport::default()).unwrap().damage;
    export_to("whole", Filter::default()).unwrap();
    assert_eq!(verify("whole"), None);
    let import_to = |from: &str, data: &str| {
        import(Import {
            export: &at(from),
            data: &at(data),
            master_key: Some(at("keys/master.key")),
            options: &sample::options(),
            progress: &mut |_| {},
        })
    };
    let report = import_to("whole", "new").unwrap();
    assert_eq!((report.damage, report.blobs), (None, 1));
    let log = EventLog::open(&at("new"), sample::options()).unwrap();
    assert_eq!(read(&log, "t", blob).unwrap(), noise(100_000));
    fs::remove_dir_all(at("whole/blobs")).unwrap();
    assert!(
        matches!(verify("whole"), Some(ExportDamage::FileMissing { name }) if name.starts_with("blobs/"))
    );
    assert!(import_to("whole", "other").unwrap_err().is_damage());
    // What is withheld is not copied.
    export_to("part", Filter { thread_id: Some(thread_id("u")), ..Filter::default() }).unwrap();
    assert!(!at("part/blobs").exists());
    // What lacks a blob is no copy.
    fs::remove_dir_all(Place::in_data(world.folder.path()).thread(scope("t", "").thread())).unwrap();
    let refused = export_to("lacking", Filter::default()).unwrap_err();
    assert!(matches!(refused, ExportError::BlobDamaged(_)) && !at("lacking").exists(), "{refused:?}");
}
