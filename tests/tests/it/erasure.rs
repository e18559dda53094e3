//! After an erasure nothing of a thread is anywhere in the data folder, and before
//! it nothing of it is there in plain but its own files.

use std::{fs, path::Path, sync::Arc};

use domain::{
    event::RunStatus,
    ids::{RunId, ThreadId, ToolCallId, UserId},
    message::HumanMessage,
};
use eventlog::{
    Append, EventLog, Expected, IdempotencyKey, Json, NewEvent, Options, Position, RecordedEvent, Scope, Seq,
    StreamId, VerifyRequest,
};
use projections::Projections;
use runtime::{
    Clock as _, IdSource as _, NewThread, RunRequest, Runtime, RuntimeParts, SystemClock, SystemIds,
    config::{Config, Recovery},
    models::{Models, OfflineModel},
};
use serde_json::{Map, json};

/// Stands in every text that is planted, and in nothing else.
const PLANTED: &str = "Zq7xPlanted";
/// The same as ids may be written.
const PLANTED_ID: &str = "zq7x-planted";

/// Every agent says, asks, writes, reads and fails with the planted text.
const SCENARIO: &str = r#"
agents:
  - agent: lead
    task_matches: fail
    turns:
      - error: "Zq7xPlanted in the error of a model"
  - agent: lead
    turns:
      - say: "Zq7xPlanted in what is said"
        calls:
          - tool: write_file
            args: { path: /mnt/user-data/workspace/Zq7xPlanted.txt, content: Zq7xPlanted in a file }
          - tool: read_file
            args: { path: /mnt/user-data/workspace/Zq7xPlanted.txt }
          - tool: read_file
            args: { path: /mnt/user-data/workspace/Zq7xPlanted-missing.txt }
      - say: "Zq7xPlanted again"
        calls:
          - tool: task
            args: { description: Zq7xPlanted look, subagent_type: general-purpose, prompt: "Zq7xPlanted: look around" }
          - tool: task
            args: { description: Zq7xPlanted look, subagent_type: Zq7xPlanted-nobody, prompt: "Zq7xPlanted" }
      - say: "Zq7xPlanted is the answer"
  - agent: "*"
    turns:
      - say: "Zq7xPlanted: I look"
        calls:
          - tool: ls
            args: { path: /mnt/user-data/workspace }
          - tool: grep
            args: { pattern: Zq7xPlanted, path: /mnt/user-data/workspace }
      - say: "Zq7xPlanted was found [r1 ls]"
"#;

/// The log, the views and a runtime on a folder.
struct Host {
    log: EventLog,
    views: Projections,
    runtime: Runtime,
}

impl Host {
    fn open(folder: &Path) -> Self {
        let log = EventLog::open(folder, Options::default()).unwrap();
        let views = Projections::open(&folder.join("views"), log.clone()).unwrap();
        let runtime = Runtime::new(RuntimeParts {
            log: log.clone(),
            config: Config::default(),
            models: Models::of(OfflineModel::from_yaml("offline", SCENARIO).unwrap()),
            data_folder: folder.to_owned(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
        });
        views.catch_up().unwrap();
        Self { log, views, runtime }
    }

    async fn close(self) {
        self.views.catch_up().unwrap();
        self.runtime.shutdown().await;
        drop((self.views, self.runtime));
        self.log.close().await;
    }

    async fn thread(&self, thread_id: &ThreadId) {
        let metadata = Map::from_iter([(PLANTED.to_owned(), json!({ "title": PLANTED }))]);
        let owner = UserId::new(PLANTED).unwrap();
        let new = NewThread { thread_id: Some(thread_id.clone()), metadata, owner, workspace: None };
        self.runtime.create_thread(new).await.unwrap();
    }

    async fn run(&self, thread_id: &ThreadId, run_id: &str, words: &str) -> RunStatus {
        let message = HumanMessage { content: format!("{PLANTED}: {words}"), id: None };
        let mut request = RunRequest::saying(vec![message]);
        request.run_id = Some(RunId::new(run_id).unwrap());
        request.metadata = Map::from_iter([("note".to_owned(), json!(PLANTED))]);
        let run = self.runtime.start_run(thread_id, request).await.unwrap();
        self.runtime.wait(thread_id, &run).await.unwrap()
    }

    /// What somebody else records: every field that takes a text has it. The last one claims to be
    /// ours and cannot be read, so that views say why.
    async fn ingest(&self, thread_id: &ThreadId) {
        let foreign = |event_type: &str, schema_version| NewEvent {
            event_id: SystemIds.event_id(),
            event_type: event_type.into(),
            schema_version,
            category: "Zq7xPlanted-cat".into(),
            scope: Scope {
                run_id: Some(RunId::new(format!("{PLANTED_ID}-theirs")).unwrap()),
                task_id: Some(ToolCallId::new(format!("{PLANTED} task")).unwrap()),
                delegation_id: None,
            },
            owner: UserId::new(PLANTED).unwrap(),
            causation_id: None,
            correlation_id: Some(PLANTED.into()),
            created_at: SystemClock.now(),
            content: Json::from_serialize(&json!({ "text": PLANTED, "status": PLANTED })).unwrap(),
            metadata: Json::from_serialize(&json!({ "note": PLANTED })).unwrap(),
        };
        let events = vec![foreign("Zq7xPlanted.type", 0), foreign("run.status", 1)];
        let key = IdempotencyKey::new(format!("{PLANTED} key")).unwrap();
        let stream = StreamId::Thread(thread_id.clone());
        let append = Append { stream, expected: Expected::Any, idempotency_key: Some(key), events };
        self.log.append(append).await.unwrap();
    }

    fn events(&self) -> Vec<RecordedEvent> {
        self.log.read_all(Position::ZERO, 100_000).unwrap()
    }
}

/// Every file below the folder whose name or content has the bytes.
fn holders(folder: &Path, wanted: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_named = path.file_name().is_some_and(|name| name.to_string_lossy().contains(wanted));
        let is_inside = || {
            let bytes = fs::read(&path).unwrap();
            bytes.windows(wanted.len()).any(|window| window == wanted.as_bytes())
        };
        if path.is_dir() {
            found.extend(holders(&path, wanted));
        }
        if is_named || (path.is_file() && is_inside()) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[track_caller]
fn check_nowhere(folder: &Path) {
    assert_eq!(holders(folder, PLANTED), Vec::<String>::new());
    assert_eq!(holders(folder, PLANTED_ID), Vec::<String>::new());
}

/// What of an event stays for ever.
fn places(events: &[RecordedEvent]) -> Vec<(Position, StreamId, Seq, [u8; 32])> {
    events.iter().map(|event| (event.position, event.stream.clone(), event.seq, event.hash)).collect()
}

fn of_thread(events: &[RecordedEvent], thread_id: &ThreadId) -> Vec<RecordedEvent> {
    events.iter().filter(|event| event.stream.thread_id() == Some(thread_id)).cloned().collect()
}

/// Everything that the views say of a thread.
fn answers(views: &Projections, thread_id: &ThreadId) -> String {
    views.catch_up().unwrap();
    let (thread, ledger) = (views.thread(thread_id).unwrap(), views.ledger(thread_id, None).unwrap());
    let runs = views.runs(thread_id, None, 100).unwrap();
    let cards: Vec<_> = ledger
        .iter()
        .map(|entry| {
            let task = projections::TaskRef::DelegationId(entry.delegation_id);
            views.card(thread_id, &entry.run_id, &task).unwrap()
        })
        .collect();
    format!("{thread:?} {runs:?} {ledger:?} {cards:?}")
}

const NOTHING: &str = "None [] [] []";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_an_erased_thread_is_anywhere_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let (gone, stays) = (ThreadId::new("gone").unwrap(), ThreadId::new("stays").unwrap());
    let host = Host::open(data);
    for (thread_id, run) in [(&gone, format!("{PLANTED_ID}-run")), (&stays, "run".to_owned())] {
        host.thread(thread_id).await;
        assert_eq!(host.run(thread_id, &run, "go").await, RunStatus::Success);
        assert_eq!(host.run(thread_id, &format!("{run}-2"), "fail").await, RunStatus::Error);
    }
    host.ingest(&gone).await;
    let told = serde_json::to_string(&host.events()).unwrap();
    assert!(told.matches(PLANTED).count() > 60, "the scenario has said it often: {told}");
    assert!(answers(&host.views, &gone).contains(PLANTED));
    assert!(!host.views.parked("runs", Position::ZERO, 9).unwrap().is_empty(), "a view could not take one");
    host.close().await;

    // Before: the thread's files have it, and nothing else.
    let before = holders(data, PLANTED);
    let threads = data.join("threads").display().to_string();
    assert!(!before.is_empty() && before.iter().all(|path| path.starts_with(&threads)), "{before:?}");
    assert_eq!(holders(data, PLANTED_ID), Vec::<String>::new(), "the ids of runs are hashed");

    let host = Host::open(data);
    let (events, kept) = (host.events(), answers(&host.views, &stays));
    let erasure_id = host.runtime.erase_thread(&gone).await.unwrap();
    let erasure = host.runtime.erasure(erasure_id).unwrap().unwrap();
    assert_eq!(erasure.events, of_thread(&events, &gone).len() as u64);

    let after = host.events();
    assert_eq!(places(&after)[..events.len()], places(&events), "positions, seqs and hashes stay");
    assert_eq!(of_thread(&after, &stays), of_thread(&events, &stays));
    let left = of_thread(&after, &gone);
    assert!(left.iter().all(RecordedEvent::is_erased));
    let exported = serde_json::to_string(&left).unwrap();
    assert!(!exported.contains(PLANTED) && !exported.contains(PLANTED_ID), "{exported}");
    assert!(host.log.verify(VerifyRequest::default()).unwrap().is_whole());
    assert_eq!((answers(&host.views, &gone).as_str(), &answers(&host.views, &stays)), (NOTHING, &kept));
    assert_eq!(host.views.threads(None, 9).unwrap().len(), 1);
    assert!(host.views.parked("runs", Position::ZERO, 9).unwrap().is_empty());

    // What stays is erased too, so that whatever is found is what the erasures left.
    host.runtime.erase_thread(&stays).await.unwrap();
    host.close().await;
    check_nowhere(data);

    // A view that is made again from what is left has nothing of it either.
    fs::remove_dir_all(data.join("views")).unwrap();
    let host = Host::open(data);
    host.runtime.recover(Recovery::Resume).await.unwrap();
    assert_eq!(answers(&host.views, &gone), NOTHING);
    host.close().await;
    check_nowhere(data);
}
