//! Verifying says which event names a blob that is not what it should be; looking says so too.

use super::*;
use crate::{Damage, DamageKind, Position, VerifyRequest, inspect, verify_folder};

#[tokio::test]
async fn a_whole_log_has_its_blobs_counted() {
    let world = World::new().await;
    world.keep("t", "a", &noise(70_000)).await;
    world.keep("t", "b", &noise(70_000)).await;
    world.keep("t", "", b"of the thread").await;
    let erased = world.keep("u", "a", b"erased").await;
    world.log.destroy_thread_key(&thread_id("u")).await.unwrap();
    assert!(world.read("u", erased).is_err());
    let report = world.log.verify(VerifyRequest::default()).unwrap();
    assert_eq!((report.damage, report.blobs), (None, 3));
    world.log.clone().close().await;
    let report = verify_folder(world.folder.path(), &sample::options(), VerifyRequest::default()).unwrap();
    assert_eq!((report.damage, report.blobs), (None, 3));
    let found = inspect(world.folder.path(), &sample::options()).unwrap().blobs;
    assert_eq!((found.blobs, found.staged, found.erased, found.damaged), (3, 0, 0, Vec::new()));
    assert!(found.disk_bytes > 140_000);
}

#[tokio::test]
async fn the_first_event_that_names_a_bad_blob_is_told() {
    type Break = fn(&World, &std::path::Path);
    let breaks: [(Break, BlobFault); 3] = [
        (|_, path| fs::remove_file(path).unwrap(), BlobFault::Missing),
        (|_, path| flip(path, 400), BlobFault::Damaged("a part of it was changed")),
        (|world, _| fs::remove_dir_all(world.place().root()).unwrap(), BlobFault::Missing),
    ];
    for (damage, fault) in breaks {
        let world = World::new().await;
        let blob = world.keep("t", "a", &noise(1_000)).await;
        damage(&world, &world.settled()[0]);
        let expected =
            Damage { position: Position::new(7), kind: DamageKind::Blob { sha256: blob.sha256, fault } };
        let live = world.log.verify(VerifyRequest::default()).unwrap();
        assert_eq!(live.damage, Some(expected.clone()));
        world.log.clone().close().await;
        let report =
            verify_folder(world.folder.path(), &sample::options(), VerifyRequest::default()).unwrap();
        assert_eq!(report.damage, Some(expected));
    }
}

#[tokio::test]
async fn an_event_that_names_another_length_is_told() {
    let world = World::new().await;
    let blob = world.stage("t", "a", b"four");
    world.name("t", "a", &[BlobRef { bytes: 5, ..blob }]).await;
    let fault = BlobFault::OtherLength { found: 4, named: 5 };
    let report = world.log.verify(VerifyRequest::default()).unwrap();
    let kind = DamageKind::Blob { sha256: blob.sha256, fault };
    assert_eq!(report.damage, Some(Damage { position: Position::new(7), kind }));
}

#[tokio::test]
async fn ingested_events_name_nothing() {
    let world = World::new().await;
    let blob = BlobRef { sha256: BlobDigest([7; 32]), bytes: 1 };
    let foreign = NewEvent { schema_version: crate::FOREIGN_SCHEMA_VERSION, ..naming("a", &[blob]) };
    let other = NewEvent { event_type: "note".to_owned(), ..naming("a", &[blob]) };
    let append = sample::to(&sample::thread("t"), Expected::Any, vec![foreign, other]);
    world.log.append(append).await.unwrap();
    assert!(world.log.verify(VerifyRequest::default()).unwrap().is_whole());
}

#[tokio::test]
async fn a_folder_with_a_staged_named_blob_is_whole() {
    let world = World::new().await;
    world.keep("t", "a", &noise(1_000)).await;
    world.log.clone().close().await;
    fs::rename(&world.settled()[0], world.place().staged("ab")).unwrap();
    let report = verify_folder(world.folder.path(), &sample::options(), VerifyRequest::default()).unwrap();
    assert_eq!((report.damage, report.blobs), (None, 1));
    assert_eq!(world.staged().len(), 1);
}

#[tokio::test]
async fn looking_tells_damaged_files_and_leftovers() {
    let world = World::new().await;
    world.keep("t", "a", b"\xffone").await;
    world.keep("u", "a", b"\xfftwo").await;
    let erased = world.settled().into_iter().find(|path| {
        world.place().thread(scope("u", "").thread()).eq(path.parent().unwrap().parent().unwrap())
    });
    let erased = erased.unwrap();
    let bytes = fs::read(&erased).unwrap();
    world.log.destroy_thread_key(&thread_id("u")).await.unwrap();
    world.log.clone().close().await;
    fs::create_dir_all(erased.parent().unwrap()).unwrap();
    fs::write(&erased, bytes).unwrap();
    let damaged = world.settled().into_iter().find(|path| *path != erased).unwrap();
    flip(&damaged, 295);
    let found = inspect(world.folder.path(), &sample::options()).unwrap().blobs;
    assert_eq!((found.blobs, found.erased, found.damaged.len()), (0, 1, 1));
    assert!(found.damaged[0].ends_with(": a part of it was changed"), "{:?}", found.damaged);
}
