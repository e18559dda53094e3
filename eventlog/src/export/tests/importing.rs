//! Logs that are made of exports.

use super::*;
use crate::{EventFilter, Options, Seq, VerifyRequest, verify_folder};

fn import_to(
    world: &World,
    export: &str,
    data: &str,
    master_key: &str,
) -> Result<crate::Report, ExportError> {
    import(Import {
        export: &world.path(export),
        data: &world.path(data),
        master_key: (!master_key.is_empty()).then(|| world.path(master_key)),
        options: &sample::options(),
        progress: &mut |_| (),
    })
}

const MASTER: &str = "data/keys/master.key";

#[tokio::test]
async fn an_imported_log_has_the_same_events_seqs_and_hashes() {
    let world = World::filled().await;
    world
        .log
        .destroy_run_key(&thread_id("t"), crate::run_hash(&thread_id("t"), &sample::run_id("one")))
        .await
        .unwrap();
    world.log.destroy_thread_key(&thread_id("u")).await.unwrap();
    world.export("export", Filter::default()).unwrap();
    let report = import_to(&world, "export", "new", MASTER).unwrap();
    assert_eq!((report.head, report.events, report.streams, report.damage), (world.head(), 60, 3, None));
    let whole = verify_folder(&world.path("new"), &Options::default(), VerifyRequest::default()).unwrap();
    assert_eq!(whole.damage, None);
    let before = read_all(&world.log);
    let page = |log: &EventLog| {
        let run = sample::run_id("two");
        log.read_run(&thread_id("t"), &run, &EventFilter::default(), Seq::ZERO, 99).unwrap()
    };
    let log = EventLog::open(&world.path("new"), sample::options()).unwrap();
    assert_eq!(read_all(&log), before);
    assert_eq!((page(&log), page(&log).len()), (page(&world.log), 19));
    assert!(log.is_erased(&thread_id("u")));
    // It goes on where the other one was, and its export is the same.
    let added = sample::add(&log, &sample::thread("t"), [1]).await.unwrap();
    assert_eq!((added.events[0].position, added.events[0].seq), (Position::new(61), Seq::new(25)));
    let again = World {
        folder: tempfile::tempdir().unwrap(),
        log,
        key: SigningKey::read(&world.path("export.key")).unwrap(),
    };
    again.export("again", Filter::default()).unwrap();
    let read = |path: PathBuf| fs::read_to_string(path.join(EVENTS_FILE)).unwrap();
    assert!(read(again.path("again")).starts_with(&read(world.path("export"))));
}

#[tokio::test]
async fn what_cannot_be_imported_leaves_nothing() {
    let world = World::filled().await;
    world.export("export", Filter::default()).unwrap();
    world.export("filtered", Filter { thread_id: Some(thread_id("t")), ..Filter::default() }).unwrap();
    fs::write(world.path("wrong.key"), "ab".repeat(32)).unwrap();
    let wrong = import_to(&world, "export", "new", "wrong.key");
    assert!(matches!(wrong, Err(ExportError::Keys(OpenError::MasterKeyWrong { .. }))), "{wrong:?}");
    let missing = import_to(&world, "export", "new", "nowhere.key");
    assert!(matches!(missing, Err(ExportError::Io { .. })), "{missing:?}");
    let lost = import_to(&world, "export", "new", "");
    assert!(matches!(lost, Err(ExportError::Keys(OpenError::MasterKeyLost { .. }))), "{lost:?}");
    let filtered = import_to(&world, "filtered", "new", MASTER);
    assert!(matches!(filtered, Err(ExportError::NotImportable { .. })), "{filtered:?}");
    let taken = import_to(&world, "export", "data", MASTER);
    assert!(matches!(taken, Err(ExportError::NotEmpty { .. })), "{taken:?}");
    let path = world.path("export").join(EVENTS_FILE);
    let mut events = fs::read(&path).unwrap();
    events[5_000] ^= 1;
    fs::write(&path, events).unwrap();
    let damaged = import_to(&world, "export", "new", MASTER);
    assert!(damaged.as_ref().is_err_and(ExportError::is_damage), "{damaged:?}");
    assert!(!world.path("new").exists() && !world.path("new.unfinished").exists());
}
