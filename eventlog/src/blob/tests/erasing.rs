//! What is erased opens nowhere any more, and is removed.

use super::*;

fn holds(world: &World, wanted: &[u8]) -> bool {
    let files = world.files().into_iter().chain(world.staged());
    files.into_iter().any(|path| fs::read(path).unwrap().windows(wanted.len()).any(|w| w == wanted))
}

#[tokio::test]
async fn an_erased_thread_leaves_no_file_and_takes_none() {
    let world = World::new().await;
    let planted = b"zq-planted-in-a-blob";
    let blob = world.keep("t", "a", planted).await;
    let staged = world.stage("t", "b", b"zq-planted-and-not-named");
    let other = world.keep("u", "a", planted).await;
    assert!(!holds(&world, b"zq-planted"), "a blob is stored in plain");
    let mut begun = world.log.write_blob(&scope("t", "a"), 0, OverMax::Refuse);
    begun.write(&noise(200_000));
    world.log.destroy_thread_key(&thread_id("t")).await.unwrap();
    assert!(matches!(begun.finish().blob, Err(BlobError::Erased { .. })));
    assert_eq!((world.settled().len(), world.staged()), (1, Vec::new()));
    for gone in [blob, staged] {
        assert!(matches!(world.read("t", gone), Err(BlobError::NotFound { .. })));
    }
    for run in ["", "a", "new"] {
        let refused = world.put("t", run, b"more").blob;
        assert!(matches!(refused, Err(BlobError::Erased { .. })), "{run}: {refused:?}");
    }
    assert_eq!(world.read("u", other).unwrap(), planted);
    // Asking again is harmless.
    world.log.destroy_thread_key(&thread_id("t")).await.unwrap();
}

#[tokio::test]
async fn an_erased_run_takes_its_blobs_and_leaves_those_of_others() {
    let world = World::new().await;
    let shared = world.keep("t", "a", b"in both runs").await;
    world.keep("t", "b", b"in both runs").await;
    let own = world.keep("t", "a", b"in one run").await;
    let threads = world.keep("t", "", b"in no run").await;
    // A copy of what is erased does not open either.
    let copies: Vec<_> = world.settled().iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    world
        .log
        .destroy_run_key(&thread_id("t"), run_hash(&thread_id("t"), &sample::run_id("a")))
        .await
        .unwrap();
    let check = |world: &World| {
        assert!(matches!(world.read("t", own), Err(BlobError::NotFound { .. })));
        assert_eq!(world.read("t", shared).unwrap(), b"in both runs");
        assert_eq!(world.read("t", threads).unwrap(), b"in no run");
    };
    assert_eq!(world.settled().len(), 2);
    check(&world);
    for (path, bytes) in copies {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    check(&world);
    // The erased run's files are back, and nobody can open them.
    let refused = world.put("t", "a", b"more").blob;
    assert!(matches!(refused, Err(BlobError::Erased { .. })), "{refused:?}");
    world
        .log
        .destroy_run_key(&thread_id("t"), run_hash(&thread_id("t"), &sample::run_id("a")))
        .await
        .unwrap();
    assert_eq!(world.settled().len(), 2);
}

#[tokio::test]
async fn an_erasure_that_was_cut_off_leaves_nothing_that_opens() {
    let world = World::new().await;
    let blob = world.keep("t", "a", b"\xffbytes").await;
    world.stage("t", "a", b"\xffstaged");
    let files: Vec<_> = world.settled().into_iter().chain(world.staged()).collect();
    let kept: Vec<_> = files.iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    world.log.destroy_thread_key(&thread_id("t")).await.unwrap();
    // As if the files had not been removed before a crash.
    let world = world
        .reopened(|_| {
            for (path, bytes) in kept {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
        })
        .await;
    assert_eq!(world.staged(), Vec::<PathBuf>::new());
    assert!(matches!(world.read("t", blob), Err(BlobError::NotFound { .. })));
    world.log.destroy_thread_key(&thread_id("t")).await.unwrap();
    assert_eq!(world.settled(), Vec::<PathBuf>::new());
}
