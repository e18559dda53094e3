//! Exports that are made, checked, changed, interrupted and made logs of.

use std::{fs, ops::ControlFlow, path::Path};

use domain::ids::{ThreadId, UserId};

use super::*;
use crate::{
    Append, EventLog, Expected, Json, NewEvent, RecordedEvent, Scope, StreamId, sample,
    verify::{DamageKind, ExportedHead, Progress},
};

mod erasing;
mod importing;
mod lines;
mod resuming;
mod tampering;

/// Goes on whatever happens.
fn on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A data folder with its log, and room beside it.
struct World {
    folder: tempfile::TempDir,
    log: EventLog,
    key: SigningKey,
}

fn thread_id(name: &str) -> ThreadId {
    ThreadId::new(name).unwrap()
}

impl World {
    /// Two threads with two runs each, and the registry: 60 events that come in turns.
    async fn filled() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = EventLog::open(&folder.path().join("data"), sample::options()).unwrap();
        let key = SigningKey::open_or_create(&folder.path().join("export.key")).unwrap();
        let world = Self { folder, log, key };
        for number in 0..12_u64 {
            for (name, owner) in [("t", "ann"), ("u", "bob")] {
                let first = event(number, owner, if number < 5 { "one" } else { "two" });
                world.append(name, vec![first, event(number + 100, owner, "two")]).await;
            }
            sample::add(&world.log, &StreamId::Registry, [number]).await.unwrap();
        }
        world
    }

    async fn append(&self, thread: &str, events: Vec<NewEvent>) {
        let append = sample::to(&sample::thread(thread), Expected::Any, events);
        self.log.append(Append { idempotency_key: None, ..append }).await.unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn export(&self, name: &str, filter: Filter) -> Result<Made, ExportError> {
        self.export_with(name, filter, false, &mut on)
    }

    fn export_with(
        &self,
        name: &str,
        filter: Filter,
        is_anew: bool,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Made, ExportError> {
        let request = ExportRequest {
            target: &self.path(name),
            filter,
            with_blobs: false,
            is_anew,
            key: &self.key,
            made_at: sample::time(),
            made_by: "remit test".to_owned(),
            progress,
        };
        export(&self.log, request)
    }

    /// The events of the log that a filter admits.
    fn events(&self, filter: &Filter) -> Vec<RecordedEvent> {
        let all = read_all(&self.log);
        all.into_iter().filter(|event| filter.admits(event)).collect()
    }

    fn head(&self) -> ExportedHead {
        self.log.exported_head().unwrap()
    }
}

fn event(number: u64, owner: &str, run: &str) -> NewEvent {
    NewEvent {
        event_type: if number.is_multiple_of(3) { "third".to_owned() } else { "other".to_owned() },
        scope: Scope { run_id: Some(sample::run_id(run)), task_id: None, delegation_id: None },
        owner: UserId::new(owner).unwrap(),
        content: Json::parse(&format!("{{\"text\":\"secret words {number}\",\n \"n\": 9007199254740993}}"))
            .unwrap(),
        ..sample::note(number)
    }
}

/// Every event of a log, page by page.
fn read_all(log: &EventLog) -> Vec<RecordedEvent> {
    let (mut replay, mut all) = (log.replay(Position::ZERO).unwrap(), Vec::new());
    loop {
        match replay.next_page(1_000).unwrap() {
            [] => return all,
            page => all.extend_from_slice(page),
        }
    }
}

fn checked(folder: &Path) -> ExportReport {
    verify_export(folder, VerifyExport::default()).unwrap()
}

/// The events that an export has, read as anybody would.
fn exported(folder: &Path) -> Vec<RecordedEvent> {
    let text = fs::read_to_string(folder.join(EVENTS_FILE)).unwrap();
    text.lines().map(|line| line::parse(format!("{line}\n").as_bytes()).unwrap().event).collect()
}

#[tokio::test]
async fn a_whole_export_has_every_event_and_is_proven_without_the_log() {
    let world = World::filled().await;
    let made = world.export("whole", Filter::default()).unwrap();
    let folder = world.path("whole");
    assert_eq!(exported(&folder), world.events(&Filter::default()));
    let report = checked(&folder);
    assert_eq!(report.damage, None);
    assert_eq!((report.events, report.position), (60, Position::new(60)));
    assert_eq!(report.manifest, made.manifest);
    assert_eq!((made.manifest.events, made.manifest.withheld, made.resumed_after), (60, 0, Position::ZERO));
    assert_eq!(made.manifest.head(), world.head());
    assert!(made.manifest.is_whole() && made.manifest.has_keys());
    let streams: Vec<_> =
        made.manifest.streams.iter().map(|entry| (entry.stream.to_string(), entry.events)).collect();
    assert_eq!(
        streams,
        [("registry".to_owned(), 12), ("thread/t".to_owned(), 24), ("thread/u".to_owned(), 24)]
    );
    assert_eq!(made.manifest.public_key, world.key.public_key());
    assert!(!world.path("whole.unfinished").exists());
    let is_private = |name: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o077 == 0
    };
    assert!([EVENTS_FILE, KEYS_FILE, MANIFEST_FILE, SIGNATURE_FILE].into_iter().all(is_private));
}

#[tokio::test]
async fn a_filtered_export_has_what_it_wants_and_the_hashes_of_the_rest() {
    let world = World::filled().await;
    let third = Some(vec!["third".to_owned()]);
    let (from, later) = (Some(sample::time()), Some("2030-01-01T00:00:00Z".parse().unwrap()));
    let filters = [
        Filter { thread_id: Some(thread_id("t")), ..Filter::default() },
        Filter { run_id: Some(sample::run_id("one")), ..Filter::default() },
        Filter { thread_id: Some(thread_id("u")), run_id: Some(sample::run_id("two")), ..Filter::default() },
        Filter { owner: Some(UserId::new("bob").unwrap()), ..Filter::default() },
        Filter { event_types: third.clone(), ..Filter::default() },
        Filter { from, to: later, event_types: third, ..Filter::default() },
        Filter { from: later, ..Filter::default() },
        Filter { event_types: Some(Vec::new()), ..Filter::default() },
    ];
    let counts = [24, 10, 19, 24, 16, 16, 0, 0];
    for (place, (filter, count)) in filters.into_iter().zip(counts).enumerate() {
        let name = format!("filtered-{place}");
        let made = world.export(&name, filter.clone()).unwrap();
        let folder = world.path(&name);
        assert_eq!(exported(&folder), world.events(&filter), "{filter:?}");
        let report = checked(&folder);
        assert_eq!(
            (report.damage, report.events, report.position),
            (None, count, Position::new(60)),
            "{filter:?}"
        );
        assert_eq!((made.manifest.events, made.manifest.withheld), (count, 60 - count));
        assert_eq!(made.manifest.head(), world.head());
        assert!(!made.manifest.has_keys());
        let hashes = fs::read_to_string(folder.join(HASHES_FILE)).unwrap();
        assert_eq!(hashes.lines().filter(|line| line.starts_with('+')).count() as u64, count);
    }
}

// Field report 103: dropped newest events are noticed against an exported head.
#[tokio::test]
async fn a_removed_tail_is_noticed_against_an_earlier_export() {
    let world = World::filled().await;
    let early = world.export("early", Filter::default()).unwrap().manifest.head();
    world.append("t", vec![event(7, "ann", "three")]).await;
    let filter = Filter { thread_id: Some(thread_id("u")), ..Filter::default() };
    let later = world.export("later", filter).unwrap().manifest.head();
    let against = |folder: &str, head| {
        let request = VerifyExport { against: Some(head), ..VerifyExport::default() };
        verify_export(&world.path(folder), request).unwrap().damage
    };
    assert_eq!(against("early", early), None);
    assert_eq!(against("later", early), None);
    let removed =
        Damage { position: Position::new(61), kind: DamageKind::TailRemoved { exported: later.position } };
    assert_eq!(against("early", later), Some(removed.into()));
    let forged = ExportedHead { chain: [9; 32], ..early };
    let differs = Damage { position: Position::new(60), kind: DamageKind::ExportDiffers };
    for folder in ["early", "later"] {
        assert_eq!(against(folder, forged), Some(differs.clone().into()));
    }
}

#[tokio::test]
async fn places_that_are_taken_are_left_alone() {
    let world = World::filled().await;
    world.export("whole", Filter::default()).unwrap();
    assert!(matches!(world.export("whole", Filter::default()), Err(ExportError::NotEmpty { .. })));
    let file = world.path("file");
    fs::write(&file, "mine").unwrap();
    assert!(matches!(world.export("file", Filter::default()), Err(ExportError::NotEmpty { .. })));
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    let held = place::Place::begin(&world.path("busy"), &Filter::default(), false).unwrap();
    assert!(matches!(world.export("busy", Filter::default()), Err(ExportError::Busy { .. })));
    drop(held);
    world.export("busy/", Filter::default()).unwrap();
    assert_eq!(checked(&world.path("busy")).damage, None);
    let missing = verify_export(&world.path("nowhere"), VerifyExport::default());
    assert!(matches!(missing, Err(ExportError::NoExport { .. })));
}

#[tokio::test]
async fn a_log_in_memory_is_exported_without_keys() {
    let folder = tempfile::tempdir().unwrap();
    let log = sample::memory_log();
    sample::add(&log, &sample::thread("t"), 1..=3).await.unwrap();
    let key = SigningKey::open_or_create(&folder.path().join("key")).unwrap();
    let world = World { folder, log, key };
    assert!(!world.export("whole", Filter::default()).unwrap().manifest.has_keys());
    assert_eq!(checked(&world.path("whole")).damage, None);
}

#[tokio::test]
async fn the_signing_key_is_made_once_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let made = SigningKey::open_or_create(&path).unwrap().public_key();
    assert_eq!(SigningKey::open_or_create(&path).unwrap().public_key(), made);
    assert_eq!(SigningKey::read(&path).unwrap().public_key(), made);
    assert_eq!(made.to_string().parse(), Ok(made));
    assert_eq!("12".parse::<PublicKey>(), Err(InvalidPublicKey));
    fs::write(&path, "not a key").unwrap();
    assert!(matches!(SigningKey::open_or_create(&path), Err(ExportError::SigningKey { .. })));
}
