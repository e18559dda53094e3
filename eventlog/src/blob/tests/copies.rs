//! A backup has the blobs, and a folder that is made of it as well.

use std::{collections::BTreeMap, ops::ControlFlow, os::unix::fs::MetadataExt, path::Path};

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

/// The files of blobs below a folder, by their paths within it, with what tells files apart.
fn inodes(root: &Path) -> BTreeMap<PathBuf, u64> {
    let files = crate::blob::copy::files(root).unwrap().into_iter();
    files.map(|name| (name.clone(), fs::metadata(root.join(name)).unwrap().ino())).collect()
}

#[tokio::test]
async fn a_blob_that_is_unchanged_is_shared_with_the_backup_before() {
    let world = World::new().await;
    let backup = world.folder.path().join("backup");
    world.keep("t", "a", &noise(100_000)).await;
    back_up(&world.log, &backup);
    let first = inodes(&backup);
    world.keep("t", "b", &noise(70_000)).await;
    back_up(&world.log, &backup);
    let second = inodes(&backup.join("files/2"));
    assert_eq!((first.len(), second.len()), (1, 2));
    assert!(first.iter().all(|(name, inode)| second.get(name) == Some(inode)), "{first:?} {second:?}");
    // What the backup before has lost is copied anew.
    for name in second.keys() {
        let path = backup.join("files/2").join(name);
        flip(&path, fs::metadata(&path).unwrap().len() / 2);
    }
    back_up(&world.log, &backup);
    let third = inodes(&backup.join("files/3"));
    assert!(second.iter().all(|(name, inode)| third.get(name).is_some_and(|new| new != inode)));
    assert!(backup::verify_backup(&backup, VerifyRequest::default()).unwrap().is_whole());
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
            with_blobs: false,
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

/// Whoever checks an export has no keys: outputs are in plain, and their names say that they are those.
#[tokio::test]
async fn a_filtered_export_has_the_outputs_of_its_events_where_they_are_wanted() {
    let world = World::new().await;
    let wanted = world.keep("t", "a", &noise(200_000)).await;
    world.keep("t", "b", &noise(1_000)).await;
    world.keep("u", "a", &noise(3_000)).await;
    let at = |name: &str| world.folder.path().join(name);
    let key = SigningKey::open_or_create(&at("export.key")).unwrap();
    let filter =
        Filter { thread_id: Some(thread_id("t")), run_id: Some(sample::run_id("a")), ..Filter::default() };
    let export_to = |name: &str, filter: &Filter, with_blobs: bool, pieces: usize| {
        let mut left = pieces;
        let mut progress = |_| {
            left = left.saturating_sub(1);
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let request = ExportRequest {
            target: &at(name),
            filter: filter.clone(),
            with_blobs,
            is_anew: false,
            key: &key,
            made_at: sample::time(),
            made_by: "remit test".to_owned(),
            progress: &mut progress,
        };
        export(&world.log, request)
    };
    let verify = |name: &str| verify_export(&at(name), VerifyExport::default()).unwrap().damage;
    // It is stopped in the middle of an output, and gone on with.
    let stopped = export_to("part", &filter, true, 3).unwrap_err();
    assert!(matches!(stopped, ExportError::Stopped), "{stopped:?}");
    let made = export_to("part", &filter, true, usize::MAX).unwrap();
    let names: Vec<_> = made.manifest.outputs.iter().map(|file| file.name.clone()).collect();
    assert_eq!(names, [format!("outputs/{}", wanted.sha256)]);
    let file = at("part").join(&names[0]);
    assert_eq!((fs::read(&file).unwrap(), verify("part")), (noise(200_000), None));
    let kept: Vec<_> = fs::read_dir(at("part/outputs")).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(kept, std::slice::from_ref(&file), "nothing half done is left");

    let mut changed = noise(200_000);
    changed[70_000] ^= 1;
    fs::write(&file, changed).unwrap();
    assert_eq!(verify("part"), Some(ExportDamage::File { name: names[0].clone() }));
    fs::remove_file(&file).unwrap();
    assert_eq!(verify("part"), Some(ExportDamage::FileMissing { name: names[0].clone() }));

    // Of everything, the sealed ones are there as well; unasked for, none is.
    let whole = export_to("whole", &Filter::default(), true, usize::MAX).unwrap().manifest;
    assert_eq!((whole.outputs.len(), whole.blobs.is_empty(), verify("whole")), (3, false, None));
    assert_eq!(export_to("bare", &filter, false, usize::MAX).unwrap().manifest.outputs, []);
    assert!(!at("bare/outputs").exists());
    // What was erased is not written down.
    world.log.destroy_thread_key(&thread_id("t")).await.unwrap();
    assert_eq!(export_to("erased", &filter, true, usize::MAX).unwrap().manifest.outputs, []);
}
