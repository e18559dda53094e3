//! Exports of erased threads.

use super::*;

/// Every file of an export that has the words of a thread.
fn with_words(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let has_words = |bytes: &[u8]| bytes.windows(12).any(|window| window == b"secret words");
    entries
        .filter(|entry| has_words(&fs::read(entry.path()).unwrap()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[tokio::test]
async fn an_erased_thread_is_places_and_hashes_without_a_word() {
    let world = World::filled().await;
    world.export("before", Filter::default()).unwrap();
    let before = exported(&world.path("before"));
    assert_eq!(with_words(&world.path("before")), [EVENTS_FILE]);
    for name in ["t", "u"] {
        world.log.destroy_thread_key(&thread_id(name)).await.unwrap();
    }
    let run =
        Filter { thread_id: Some(thread_id("t")), run_id: Some(sample::run_id("one")), ..Filter::default() };
    let owner = Filter { owner: Some(UserId::new("ann").unwrap()), ..Filter::default() };
    for (name, filter, events, erased) in
        [("whole", Filter::default(), 60, 48), ("run", run, 5, 5), ("owner", owner, 0, 0)]
    {
        let manifest = world.export(name, filter).unwrap().manifest;
        assert_eq!((manifest.events, manifest.erased), (events, erased));
        assert_eq!(with_words(&world.path(name)), [""; 0]);
        assert_eq!(checked(&world.path(name)).damage, None);
    }
    let after = exported(&world.path("whole"));
    let places = |events: &[RecordedEvent]| -> Vec<_> {
        events.iter().map(|event| (event.position, event.stream.clone(), event.seq, event.hash)).collect()
    };
    assert_eq!(places(&after), places(&before));
    // The export from before is as it was: no erasure reaches it.
    assert_eq!(checked(&world.path("before")).damage, None);
}

#[tokio::test]
async fn a_thread_that_is_erased_before_the_export_is_done_leaves_no_word_in_it() {
    let world = World::filled().await;
    world.export("export", Filter::default()).unwrap();
    let place = place::Place::begin(&world.path("again"), &Filter::default(), false).unwrap();
    let events = fs::read(world.path("export").join(EVENTS_FILE)).unwrap();
    fs::write(place.folder.join(EVENTS_FILE), &events[..events.len() / 2]).unwrap();
    drop(place);
    world.log.destroy_thread_key(&thread_id("t")).await.unwrap();
    world
        .log
        .destroy_run_key(&thread_id("u"), crate::run_hash(&thread_id("u"), &sample::run_id("two")))
        .await
        .unwrap();
    let made = world.export("again", Filter::default()).unwrap();
    assert_eq!((made.resumed_after, made.manifest.erased), (Position::ZERO, 24 + 19));
    let left: Vec<_> = exported(&world.path("again"))
        .into_iter()
        .filter(|event| event.content.get().contains("secret words"))
        .map(|event| (event.stream.to_string(), event.scope.run_id.unwrap().to_string()))
        .collect();
    assert_eq!(left, vec![("thread/u".to_owned(), "one".to_owned()); 5]);
    assert_eq!(checked(&world.path("again")).damage, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_in_the_middle_of_an_export_is_noticed_at_its_end() {
    let world = World::filled().await;
    let log = world.log.clone();
    let mut is_erased = false;
    let runtime = tokio::runtime::Handle::current();
    let made = tokio::task::block_in_place(|| {
        world.export_with("export", Filter::default(), false, &mut |_| {
            if !std::mem::replace(&mut is_erased, true) {
                runtime.block_on(log.destroy_thread_key(&thread_id("t"))).unwrap();
            }
            ControlFlow::Continue(())
        })
    })
    .unwrap();
    assert_eq!(made.manifest.erased, 24);
    let words =
        exported(&world.path("export")).into_iter().filter(|event| event.stream == sample::thread("t"));
    assert!(words.map(|event| event.content).all(|content| content == Json::null()));
}
