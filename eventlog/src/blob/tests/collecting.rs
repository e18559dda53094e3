//! What no event names is removed when the log is opened next; what an event names never is, wherever
//! the process died.

use proptest::prelude::*;

use super::*;

/// As if the process had died before the file was moved to its place.
fn move_back(world: &World, settled: &std::path::Path) {
    let stem = staged_file::random_stem().unwrap();
    let staged = world.place().staged(&stem);
    fs::rename(settled, &staged).unwrap();
    let key = place::key_beside(settled);
    if key.exists() {
        fs::rename(key, place::key_beside(&staged)).unwrap();
    }
}

#[tokio::test]
async fn what_no_event_names_is_removed_on_opening() {
    let world = World::new().await;
    let unnamed = world.stage("t", "a", b"nobody names it");
    let named = world.keep("t", "a", b"an event names it").await;
    // Mentioned before it was written, which does not count.
    let early = world.put("u", "a", b"early").whole;
    let world = world.reopened(|_| {}).await;
    world.name("u", "a", &[early]).await;
    world.stage("u", "a", b"early");
    let world = world.reopened(|_| {}).await;
    assert_eq!(world.staged(), Vec::<PathBuf>::new());
    assert_eq!(world.read("t", named).unwrap(), b"an event names it");
    assert!(matches!(world.read("t", unnamed), Err(BlobError::NotFound { .. })));
    assert!(matches!(world.read("u", early), Err(BlobError::Missing { .. })), "an event names it");
}

#[tokio::test]
async fn what_was_not_finished_is_removed_and_what_is_damaged_stays() {
    let world = World::new().await;
    let _blob = world.stage("t", "a", b"\xffbytes");
    let world = world
        .reopened(|world| {
            let staged = world.place().staged_folder();
            let whole = fs::read(&world.staged()[0]).unwrap();
            fs::write(staged.join("00"), []).unwrap();
            fs::write(staged.join("01"), &whole[..100]).unwrap();
            fs::write(staged.join("02"), [vec![0; header::HEADER_BYTES], noise(70_000)].concat()).unwrap();
            fs::write(staged.join("03"), &whole).unwrap();
            flip(&staged.join("03"), 100);
            fs::write(staged.join("04.key"), &whole[..50]).unwrap();
        })
        .await;
    let left = world.staged();
    assert_eq!(left.iter().map(|path| path.file_name().unwrap()).collect::<Vec<_>>(), ["03"]);
}

#[tokio::test]
async fn a_named_blob_that_was_not_moved_is_read_and_moved_later() {
    let world = World::new().await;
    let blob = world.keep("t", "a", b"\xffbytes").await;
    let world = world.reopened(|world| move_back(world, &world.settled()[0])).await;
    assert_eq!((world.settled().len(), world.staged().len()), (1, 0));
    assert_eq!(world.read("t", blob).unwrap(), b"\xffbytes");
}

#[tokio::test]
async fn a_shared_blob_may_be_cut_off_at_every_step() {
    let of_b = |world: &World| {
        let is_of_b = |path: &PathBuf| place::key_beside(path).exists();
        world.settled().into_iter().find(is_of_b).unwrap()
    };
    type Break = fn(&World, &std::path::Path);
    let breaks: [Break; 4] = [
        // Both were not moved.
        |world, path| move_back(world, path),
        // The blob was moved, and its key was not.
        |world, path| {
            let key = world.place().staged("ab.key");
            fs::rename(place::key_beside(path), key).unwrap();
        },
        // Both were moved, and the link is still there.
        |world, path| fs::hard_link(path, world.place().staged("ab")).unwrap(),
        // A second copy of its own was staged at the same time.
        |world, path| {
            fs::hard_link(path, world.place().staged("ab")).unwrap();
            fs::copy(place::key_beside(path), world.place().staged("ab.key")).unwrap();
        },
    ];
    for (number, cut_off) in breaks.into_iter().enumerate() {
        let world = World::new().await;
        let blob = world.keep("t", "a", b"\xffshared").await;
        world.keep("t", "b", b"\xffshared").await;
        let path = of_b(&world);
        let world = world.reopened(|world| cut_off(world, &path)).await;
        assert_eq!((world.settled().len(), world.staged()), (2, Vec::new()), "{number}");
        world
            .log
            .destroy_run_key(&thread_id("t"), run_hash(&thread_id("t"), &sample::run_id("a")))
            .await
            .unwrap();
        assert_eq!(world.read("t", blob).unwrap(), b"\xffshared", "{number}");
    }
}

#[tokio::test]
async fn a_link_that_was_staged_without_its_key_is_removed() {
    let world = World::new().await;
    let blob = world.keep("t", "a", b"\xffshared").await;
    let world =
        world.reopened(|world| fs::hard_link(&world.settled()[0], world.place().staged("ab")).unwrap()).await;
    assert_eq!((world.settled().len(), world.staged().len()), (1, 0));
    assert_eq!(world.read("t", blob).unwrap(), b"\xffshared");
}

#[tokio::test]
async fn a_refused_append_leaves_a_blob_that_is_removed_later() {
    let world = World::new().await;
    let blob = world.stage("t", "a", b"\xffbytes");
    let refused = Append {
        expected: Expected::Exact(Seq::new(99)),
        ..sample::to(&sample::thread("t"), Expected::Any, vec![naming("a", &[blob])])
    };
    world.log.append(refused).await.unwrap_err();
    assert_eq!(world.staged().len(), 1);
    // Nothing is lost by trying again.
    world.name("t", "a", &[world.stage("t", "a", b"\xffbytes")]).await;
    assert_eq!((world.settled().len(), world.staged().len()), (1, 0));
    assert_eq!(world.read("t", blob).unwrap(), b"\xffbytes");
}

#[derive(Debug, Clone)]
enum Step {
    Stage { run: usize, blob: u8 },
    Name { run: usize, blob: u8 },
    Crash { moved_back: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3_usize, 0..4_u8).prop_map(|(run, blob)| Step::Stage { run, blob }),
        3 => (0..3_usize, 0..4_u8).prop_map(|(run, blob)| Step::Name { run, blob }),
        1 => (0..9_usize).prop_map(|moved_back| Step::Crash { moved_back }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    // Whatever was staged, named, cut off and opened again: a named blob is there, and after an
    // opening nothing else is.
    #[test]
    fn named_blobs_are_never_lost_and_others_do_not_stay(steps in prop::collection::vec(step(), 1..25)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new().await;
            let (runs, mut staged, mut named) = (["", "a", "b"], vec![], std::collections::BTreeSet::new());
            for step in steps.into_iter().chain([Step::Crash { moved_back: 0 }]) {
                match step {
                    Step::Stage { run, blob } => {
                        world.stage("t", runs[run], &[0xff, blob]);
                        staged.push((run, blob));
                    }
                    // Only what is durable is named.
                    Step::Name { run, blob } if staged.contains(&(run, blob)) => {
                        let blob_ref = world.stage("t", runs[run], &[0xff, blob]);
                        world.name("t", runs[run], &[blob_ref]).await;
                        named.insert((run, blob));
                    }
                    Step::Name { .. } => {}
                    Step::Crash { moved_back } => {
                        world = world
                            .reopened(|world| {
                                world.settled().iter().take(moved_back).for_each(|path| move_back(world, path));
                            })
                            .await;
                        staged.clear();
                        assert_eq!(world.staged(), Vec::<PathBuf>::new());
                        assert_eq!(world.settled().len(), named.len());
                    }
                }
                for (_, blob) in &named {
                    let whole = world.log.open_blob(&thread_id("t"), &digest_of(*blob)).unwrap().blob();
                    assert_eq!(world.read("t", whole).unwrap(), [0xff, *blob]);
                }
            }
            let report = world.log.verify(crate::VerifyRequest::default()).unwrap();
            assert_eq!((report.damage, report.blobs), (None, named.len() as u64));
        });
    }
}

fn digest_of(blob: u8) -> BlobDigest {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &[0xff, blob]);
    hex::encode(digest).parse().unwrap()
}
