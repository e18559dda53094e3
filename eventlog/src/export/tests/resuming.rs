//! Exports that were interrupted.

use super::*;

/// The files that are made while reading the log.
fn made_files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = [EVENTS_FILE, HASHES_FILE]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), fs::read(folder.join(name)).ok()?)))
        .collect();
    files.sort();
    files
}

/// Puts what an export has into the place of an unfinished one, cut at these lengths.
fn leave_unfinished(world: &World, filter: &Filter, lengths: [usize; 2]) {
    let place = place::Place::begin(&world.path("again"), filter, true).unwrap();
    for ((name, bytes), length) in made_files(&world.path("export")).into_iter().zip(lengths) {
        fs::write(place.folder.join(name), &bytes[..length.min(bytes.len())]).unwrap();
    }
}

#[tokio::test]
async fn an_export_goes_on_from_wherever_it_was_cut() {
    let world = World::filled().await;
    for filter in [Filter::default(), Filter { thread_id: Some(thread_id("t")), ..Filter::default() }] {
        let whole = world.export("export", filter.clone()).unwrap().manifest;
        let files = made_files(&world.path("export"));
        let length = |place: usize| files.get(place).map_or(0, |(_, bytes)| bytes.len());
        let mut resumed = 0;
        for part in 0..=6 {
            // The two files reach the disk independently of each other.
            for (one, other) in [(part, part), (6, part), (part, 6), (part, 0)] {
                leave_unfinished(&world, &filter, [length(0) * one / 6, length(1) * other / 6]);
                let made = world.export("again", filter.clone()).unwrap();
                assert_eq!(made.manifest, whole);
                assert_eq!(made_files(&world.path("again")), files, "{part}");
                assert_eq!(checked(&world.path("again")).damage, None);
                resumed += u64::from(made.resumed_after > Position::ZERO);
                fs::remove_dir_all(world.path("again")).unwrap();
            }
        }
        assert!(resumed > 8, "{resumed}");
        fs::remove_dir_all(world.path("export")).unwrap();
    }
}

#[tokio::test]
async fn half_an_export_is_none_and_takes_in_what_came_meanwhile() {
    let world = World::filled().await;
    // Long enough that a part is on disk when it stops.
    for number in 0..40 {
        let events = (0..100).map(|n| event(number * 100 + n, "ann", "long")).collect();
        world.append("t", events).await;
    }
    let interrupted = world.export_with("export", Filter::default(), false, &mut |progress| {
        if progress.position < Position::new(2_500) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    assert!(matches!(interrupted, Err(ExportError::Stopped)), "{interrupted:?}");
    assert!(!world.path("export").exists());
    let half = verify_export(&world.path("export.unfinished"), VerifyExport::default());
    assert!(matches!(half, Err(ExportError::NoExport { .. })), "{half:?}");

    let filter = Filter { thread_id: Some(thread_id("t")), ..Filter::default() };
    let other = world.export("export", filter);
    assert!(matches!(other, Err(ExportError::OtherUnfinished { .. })), "{other:?}");
    world.append("u", vec![event(1, "bob", "late")]).await;
    let mut first_seen = None;
    let made = world
        .export_with("export", Filter::default(), false, &mut |progress| {
            first_seen.get_or_insert(progress.position);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(made.resumed_after > Position::new(1_000) && first_seen.unwrap() > made.resumed_after);
    assert_eq!(made.manifest.position, world.head().position);
    assert_eq!(exported(&world.path("export")), world.events(&Filter::default()));
    assert_eq!(checked(&world.path("export")).damage, None);
}

#[tokio::test]
async fn what_was_begun_from_another_log_or_thrown_away_is_not_gone_on_with() {
    let (one, other) = (World::filled().await, World::filled().await);
    one.export("export", Filter::default()).unwrap();
    leave_unfinished(&one, &Filter::default(), [4_000, 0]);
    fs::rename(one.path("again.unfinished"), other.path("again.unfinished")).unwrap();
    let refused = other.export("again", Filter::default());
    // The events of this log do not follow from those of the other one.
    assert!(refused.is_err(), "{refused:?}");
    let made = other.export_with("again", Filter::default(), true, &mut on).unwrap();
    assert_eq!(made.resumed_after, Position::ZERO);
    assert_eq!(checked(&other.path("again")).damage, None);
}
