//! After an erasure nothing of a thread is anywhere in the data folder, and before
//! it nothing of it is there in plain but its own files.

use std::{fs, ops::ControlFlow, path::Path, sync::Arc};

use domain::{
    event::RunStatus,
    ids::{RunId, ThreadId, ToolCallId, UserId},
    message::HumanMessage,
};
use eventlog::{
    Append, EventFilter, EventLog, Expected, IdempotencyKey, Json, NewEvent, Options, Position,
    RecordedEvent, Scope, Seq, StreamId, VerifyRequest,
    backup::BackupRequest,
    export::{ExportRequest, Filter, SigningKey, export},
};
use projections::{CapFilter, Feed, FeedQuery, Listing, Projections, ReceiptFilter, as_of};
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

/// The planted text, so often, is too large for an event, and goes into a blob.
const LARGE_TIMES: usize = 600;

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
          - tool: write_file
            args: { path: /mnt/user-data/workspace/large.txt, content: "LARGE" }
          - tool: read_file
            args: { path: /mnt/user-data/workspace/large.txt }
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

/// Stands in every text of the run that stays.
const STAYING: &str = "Kq4xStaying";

/// The run that goes is told "erase", and says `Zq7xPlanted` wherever it can; the one that stays is told
/// "keep", and says `Kq4xStaying` there.
fn two_runs() -> String {
    let part = |asked: &str, word: &str| {
        format!(
            r#"
  - agent: lead
    task_matches: {asked}
    turns:
      - say: "{word} in what is said"
        calls:
          - tool: write_file
            args: {{ path: /mnt/user-data/workspace/notes.txt, content: plain }}
          - tool: read_file
            args: {{ path: /mnt/user-data/workspace/{word}-missing.txt }}
          - tool: task
            args: {{ description: {word} look, subagent_type: general-purpose, prompt: "{word}: look around" }}
          - tool: task
            args: {{ description: {word} look, subagent_type: {word}-nobody, prompt: "{word}" }}
      - say: "{word} is the answer"
  - agent: "*"
    task_matches: "{word}: look"
    turns:
      - say: "{word}: I look"
        calls:
          - tool: grep
            args: {{ pattern: {word}, path: /mnt/user-data/workspace }}
      - say: "{word} was found [r1 grep]""#
        )
    };
    format!("agents:{}{}\n", part("erase", PLANTED), part("keep", STAYING))
}

/// The log, the views and a runtime on a folder.
struct Host {
    log: EventLog,
    views: Projections,
    runtime: Runtime,
}

impl Host {
    fn open(folder: &Path) -> Self {
        let large = format!("{PLANTED} in a large output. ").repeat(LARGE_TIMES);
        Self::playing(folder, &SCENARIO.replace("LARGE", &large))
    }

    fn playing(folder: &Path, scenario: &str) -> Self {
        let log = EventLog::open(folder, Options::default()).unwrap();
        let views = Projections::open(&folder.join("views"), log.clone()).unwrap();
        let runtime = Runtime::new(RuntimeParts {
            log: log.clone(),
            config: Config::default(),
            models: Models::of(OfflineModel::from_yaml("offline", scenario).unwrap()),
            data_folder: folder.to_owned(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
        })
        .unwrap();
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
        self.run_of(thread_id, run_id, words, PLANTED).await
    }

    async fn run_of(&self, thread_id: &ThreadId, run_id: &str, words: &str, word: &str) -> RunStatus {
        let message = HumanMessage { content: format!("{word}: {words}"), id: None, images: Vec::new() };
        let mut request = RunRequest::saying(vec![message]);
        request.run_id = Some(RunId::new(run_id).unwrap());
        request.metadata = Map::from_iter([("note".to_owned(), json!(word))]);
        let run = self.runtime.start_run(thread_id, request).await.unwrap();
        self.runtime.wait(thread_id, &run).await.unwrap()
    }

    /// What somebody else records: every field that takes a text has it. The last one claims to be
    /// ours and cannot be read, so that views say why.
    async fn ingest(&self, thread_id: &ThreadId, run_id: &str) {
        let foreign = |event_type: &str, schema_version| NewEvent {
            event_id: SystemIds.event_id(),
            event_type: event_type.into(),
            schema_version,
            category: "Zq7xPlanted-cat".into(),
            scope: Scope {
                run_id: Some(RunId::new(run_id).unwrap()),
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

/// A backup with the files of threads, and an export of everything.
fn copy_out(log: &EventLog, data: &Path, copies: &Path) {
    let (threads, made_at) = (data.join("threads"), SystemClock.now());
    let progress = &mut |_| ControlFlow::Continue(());
    let request = BackupRequest { taken_at: made_at, threads: Some(&threads), progress };
    log.back_up(&copies.join("backup"), request).unwrap();
    let (target, key) = (copies.join("export"), SigningKey::of(None, copies).unwrap());
    let (filter, made_by) = (Filter::default(), "a test".to_owned());
    let progress = &mut |_| ControlFlow::Continue(());
    let request = ExportRequest {
        target: &target,
        filter,
        with_blobs: true,
        is_anew: false,
        key: &key,
        made_at,
        made_by,
        progress,
    };
    export(log, request).unwrap();
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
    host.ingest(&gone, &format!("{PLANTED_ID}-theirs")).await;
    let told = serde_json::to_string(&host.events()).unwrap();
    assert!(told.matches(PLANTED).count() > 60, "the scenario has said it often: {told}");
    assert!(answers(&host.views, &gone).contains(PLANTED));
    assert!(!host.views.parked("runs", Position::ZERO, 9).unwrap().is_empty(), "a view could not take one");
    host.close().await;

    // Before: the thread's files have it, and nothing else.
    assert!(fs::read_dir(data.join("blobs")).unwrap().count() > 0, "a large output is a blob");
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
    let copies = tempfile::tempdir().unwrap();
    copy_out(&host.log, data, copies.path());
    host.close().await;
    check_nowhere(data);
    check_nowhere(copies.path());

    // A view that is made again from what is left has nothing of it either.
    fs::remove_dir_all(data.join("views")).unwrap();
    let host = Host::open(data);
    host.runtime.recover(Recovery::Resume).await.unwrap();
    assert_eq!(answers(&host.views, &gone), NOTHING);
    host.close().await;
    check_nowhere(data);
}

/// Everything that is said of one run, as of now and as of then.
fn of_run(host: &Host, thread_id: &ThreadId, run_id: &RunId, then: Seq) -> String {
    let views = &host.views;
    views.catch_up().unwrap();
    let ledger = views.ledger(thread_id, Some(run_id)).unwrap();
    let cards: Vec<_> = ledger
        .iter()
        .map(|entry| {
            let task = projections::TaskRef::DelegationId(entry.delegation_id);
            let card = views.card(thread_id, run_id, &task).unwrap();
            (card, as_of::card_as_of(views, thread_id, run_id, &task, then).unwrap())
        })
        .collect();
    let events = host.log.read_run(thread_id, run_id, &EventFilter::default(), Seq::ZERO, 10_000).unwrap();
    let rows = (views.run(thread_id, run_id).unwrap(), as_of::run_as_of(views, thread_id, run_id, then));
    format!(
        "{rows:?} {ledger:?} {cards:?} {events:?} {:?}",
        feed(views, thread_id, Feed::OfRun(run_id.clone()))
    )
}

fn feed(views: &Projections, thread_id: &ThreadId, feed: Feed) -> Vec<RecordedEvent> {
    let thread_id = thread_id.clone();
    let query = FeedQuery { thread_id, feed, before: None, after: None, as_of: None, limit: 1_000 };
    views.messages(&query).unwrap().messages
}

/// Everything that is said of the thread, in lists, counts, sums and feeds, as of now and as of then.
fn of_thread_with_runs(host: &Host, thread_id: &ThreadId, then: Seq) -> String {
    let views = &host.views;
    views.catch_up().unwrap();
    let lists = (
        answers(views, thread_id),
        views.receipts(thread_id, &ReceiptFilter::default(), Listing::WHOLE).unwrap(),
        views.caps(thread_id, &CapFilter::default(), Listing::WHOLE).unwrap(),
        [feed(views, thread_id, Feed::Whole), feed(views, thread_id, Feed::Visible)],
        views.message_count(thread_id, None).unwrap(),
        ["threads", "runs", "ledger", "cards"].map(|view| views.parked(view, Position::ZERO, 99).unwrap()),
        of_thread(&host.events(), thread_id)
            .into_iter()
            .filter(|event| !event.is_erased())
            .collect::<Vec<_>>(),
    );
    let past = (
        as_of::thread_as_of(views, thread_id, then).unwrap(),
        as_of::runs_as_of(views, thread_id, then, None, usize::MAX).unwrap(),
        as_of::ledger_as_of(views, thread_id, None, then).unwrap(),
    );
    format!("{lists:?} {past:?}")
}

#[track_caller]
fn check_has_nothing(told: &str) {
    for word in [PLANTED, PLANTED_ID] {
        assert!(!told.contains(word), "{word} in {told}");
    }
}

// Facts §12 line 106: given run A deleted, B intact.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_an_erased_run_is_told_and_everything_of_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let (data, scenario) = (folder.path(), two_runs());
    let thread = ThreadId::new("t").unwrap();
    let (gone, stays) = (RunId::new(format!("{PLANTED_ID}-run")).unwrap(), RunId::new("stays").unwrap());
    let host = Host::playing(data, &scenario);
    host.runtime
        .create_thread(NewThread { thread_id: Some(thread.clone()), ..NewThread::default() })
        .await
        .unwrap();
    assert_eq!(host.run(&thread, gone.as_str(), "erase").await, RunStatus::Success);
    assert_eq!(host.run_of(&thread, stays.as_str(), "keep", STAYING).await, RunStatus::Success);
    host.ingest(&thread, gone.as_str()).await;
    let then = host.log.stream_tail(&StreamId::Thread(thread.clone())).unwrap().unwrap();
    let before = host.events();
    for (run, word) in [(&gone, PLANTED), (&stays, STAYING)] {
        let told = of_run(&host, &thread, run, then);
        assert!(told.matches(word).count() > 20, "{run} has said it often: {told}");
    }
    // The second run's lead has read what the first one said, and none of it stands in its own events.
    let kept = of_run(&host, &thread, &stays, then);
    check_has_nothing(&kept);
    assert!(of_thread_with_runs(&host, &thread, then).contains(PLANTED));
    host.close().await;
    check_nowhere(data);

    let host = Host::playing(data, &scenario);
    let erasure_id = host.runtime.erase_run(&thread, &gone).await.unwrap();
    let of_gone = before.iter().filter(|event| event.scope.run_id.as_ref() == Some(&gone)).count();
    assert_eq!(host.runtime.erasure(erasure_id).unwrap().unwrap().events, of_gone as u64);
    let after = host.events();
    assert_eq!(places(&after)[..before.len()], places(&before), "positions, seqs and hashes stay");
    assert!(host.log.verify(VerifyRequest::default()).unwrap().is_whole());
    check_has_nothing(&serde_json::to_string(&after).unwrap());
    check_has_nothing(&of_run(&host, &thread, &gone, then).replace(gone.as_str(), ""));
    let told = of_thread_with_runs(&host, &thread, then);
    check_has_nothing(&told);
    assert!(told.contains(STAYING));
    assert_eq!(of_run(&host, &thread, &stays, then), kept);
    assert_eq!(host.views.thread(&thread).unwrap().unwrap().runs, 1);
    let copies = tempfile::tempdir().unwrap();
    copy_out(&host.log, data, copies.path());
    check_nowhere(copies.path());
    host.close().await;
    check_nowhere(data);

    // Views that are made again from what is left say the same.
    fs::remove_dir_all(data.join("views")).unwrap();
    let host = Host::playing(data, &scenario);
    host.runtime.recover(Recovery::Resume).await.unwrap();
    assert_eq!(of_thread_with_runs(&host, &thread, then), told);
    assert_eq!(of_run(&host, &thread, &stays, then), kept);
    host.close().await;
    check_nowhere(data);
}
