//! A run over HTTP: a lead delegates three tasks over real files, and every view of it agrees.

use std::path::Path;

use runtime::NewThread;
use serde_json::{Value, json};
use tests::{
    folders::write_files,
    invariants::assert_whole,
    plain_fold::{assert_card, assert_ledger},
    record::{last_seq, number, of_type, only, text, types},
    server::{Setup, TestServer},
    sse::records,
    stub_model::{Answer, Asked, Call, Reply, Seat, StubModel},
};

const WORKSPACE: &str = "/mnt/user-data/workspace";

/// The lead looks, delegates three tasks, writes a report and says so.
fn lead(asked: &Asked) -> Reply {
    match asked.turn {
        0 => Reply::calls([Call::new("ls", json!({"path": WORKSPACE}))]).and_says("I look first."),
        1 => Reply::calls([
            Call::task("general-purpose", "read the notes").id("call_notes"),
            Call::task("general-purpose", "read the code").id("call_code"),
            Call::task("bash", "count the files").id("call_count"),
        ]),
        2 => {
            let results: Vec<String> = asked.results().into_iter().map(|(_, text)| text).collect();
            let path = "/mnt/user-data/outputs/report.md";
            Reply::calls([Call::new("write_file", json!({"path": path, "content": results.join("\n")}))])
        }
        _ => Reply::says("The report is written."),
    }
}

fn subagent(asked: &Asked) -> Reply {
    let read = |name: &str| Call::new("read_file", json!({"path": format!("{WORKSPACE}/{name}")}));
    match (asked.seat, asked.turn) {
        (Seat::Bash, 0) => {
            Reply::calls([Call::new("bash", json!({"description": "count", "command": "ls | wc -l"}))])
        }
        (Seat::Bash, _) => Reply::says("There are three files [r1 bash]."),
        (_, 0) if asked.is_about("read the notes") => {
            let search = Call::new("grep", json!({"pattern": "milk", "path": WORKSPACE}));
            Reply::calls([read("notes.md"), search, read("missing.md")]).and_says("Three calls at once.")
        }
        (_, 0) => Reply::calls([read("code.rs")]),
        (_, _) => Reply::says(format!("Read as asked [r1 read_file]. {}", asked.results().len())),
    }
}

fn script(asked: &Asked) -> Answer {
    if asked.is_lead() { lead(asked).into() } else { subagent(asked).into() }
}

async fn thread_on(server: &TestServer, folder: &Path) -> String {
    let workspace = Some(folder.to_owned());
    let made = server.runtime.create_thread(NewThread { workspace, ..NewThread::default() }).await;
    made.unwrap().to_string()
}

// Facts §12 lines 61, 62 and 89; field report 50: the card is the same after a reload.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ledger_cards_stream_and_events_agree() {
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let files = tempfile::tempdir().unwrap();
    write_files(files.path(), &[("notes.md", "buy milk\n"), ("code.rs", "fn main() {}\n"), ("ä b.txt", "é")]);
    let thread_id = thread_on(&server, files.path()).await;

    let frames = server.client.start_and_follow(&thread_id, "report on the files").await.rest().await;
    assert_eq!(frames.first().unwrap().event, "metadata");
    assert_eq!(frames.last().unwrap().event, "end");
    let run_id = text(&frames[0].data, "run_id").to_owned();

    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    assert_eq!(records(&frames), server.client.events(&thread_id, &run_id).await);
    let run = server.client.run(&thread_id, &run_id).await;
    assert_eq!((text(&run, "status"), number(&run, "delegations")), ("success", 3), "{run}");
    assert_eq!(text(&run, "result"), "The report is written.");

    let ledger = server.client.ledger(&thread_id, last_seq(&events)).await;
    assert_eq!(
        ledger.iter().map(|row| text(row, "task_id")).collect::<Vec<_>>(),
        ["call_notes", "call_code", "call_count"]
    );
    assert_ledger(&ledger, &events);
    for row in &ledger {
        assert_eq!((text(row, "status"), &row["delivered"]), ("completed", &json!(true)), "{row}");
        let (task_id, delegation_id) = (text(row, "task_id"), text(row, "delegation_id"));
        let card = server.client.card(&thread_id, &run_id, task_id, last_seq(&events)).await;
        assert_card(&card, &events);
        let by_our_id = server.client.card(&thread_id, &run_id, delegation_id, last_seq(&events)).await;
        assert_eq!(card, by_our_id);
    }
    let notes = server.client.card(&thread_id, &run_id, "call_notes", last_seq(&events)).await;
    assert_steps_in_order(&notes);
    stub.assert_strict();
    server.stop().await;
}

/// One reply with three calls, their three results in call order, and the answer.
#[track_caller]
fn assert_steps_in_order(card: &Value) {
    let steps = card["steps"].as_array().unwrap();
    let shown: Vec<_> = steps.iter().map(|step| (text(step, "kind"), text(step, "tool_name"))).collect();
    let tool = |name| ("tool", name);
    assert_eq!(shown, [("ai", ""), tool("read_file"), tool("grep"), tool("read_file"), ("ai", "")]);
    assert!(text(&steps[1], "text").contains("buy milk"), "{card}");
    let outcomes: Vec<_> =
        card["receipts"].as_array().unwrap().iter().map(|one| text(one, "outcome")).collect();
    assert_eq!(outcomes, ["ok", "ok", "error"]);
}

// The views of a moment are what the log said then: the ledger as of each seq grows into the last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ledger_as_of_any_seq_is_the_fold_up_to_it() {
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let (thread_id, run) = server.client.run_to_end("report").await;
    assert_eq!(text(&run, "status"), "success", "{run}");
    let events = server.client.thread_events(&thread_id).await;
    for seq in (1..=events.len()).step_by(3) {
        let path = format!("/api/threads/{thread_id}/delegations?as_of={seq}");
        let ledger = server.client.get(&path).await.ok();
        assert_ledger(ledger.as_array().unwrap(), &events[..seq]);
    }
}

// What goes with a run is recorded in the order of its causes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_begins_and_ends_in_order() {
    let stub = StubModel::start(|_| Reply::says("hello").into()).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let (thread_id, run) = server.client.run_to_end("say hello").await;
    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    assert_eq!(
        types(&events),
        [
            "thread.created",
            "run.start",
            "run.status",
            "llm.human.input",
            "run.status",
            "llm.ai.response",
            "run.end",
            "run.status"
        ]
    );
    let said = only(&events, "llm.human.input");
    assert_eq!(text(&said["content"], "content"), "say hello");
    let states: Vec<_> =
        of_type(&events, "run.status").iter().map(|event| text(&event["content"], "status")).collect();
    assert_eq!(states, ["pending", "running", "success"]);
    assert_eq!(run["usage"]["total_tokens"], 110);
}

// Facts §12 line 49: whose thread it is, his are its subagents and everything that they leave.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_of_a_thread_is_its_owner_s() {
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let owner = domain::ids::UserId::new("alice").unwrap();
    let made = server.runtime.create_thread(NewThread { owner, ..NewThread::default() }).await.unwrap();
    let run_id = server.client.start_run(made.as_str(), "report").await;
    server.client.ended(made.as_str(), &run_id).await;
    let events = server.client.thread_events(made.as_str()).await;
    assert_whole(&events);
    assert_eq!(of_type(&events, "subagent.end").len(), 3);
    assert!(events.iter().all(|event| event["user_id"] == "alice"), "{events:?}");
}
