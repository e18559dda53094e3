//! `kill -9` of a server at work, with readers on its streams: what they were shown is in the log,
//! and after a restart everything goes on to its end.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};
use tests::{
    client::Client,
    invariants::assert_whole,
    process::Remit,
    record::{number, of_type, only, text},
    seed::Seed,
    sse::records,
    stub_model::{Answer, Asked, Call, Gate, Reply, Seat, StubModel},
    wait,
};

use super::remit;

fn configure(remit: &Remit, stub: &StubModel, more: &str) {
    let config = format!(
        "models:\n  - {{name: stub, provider: openai, base_url: \"{}\", api_key: k}}\n{more}",
        stub.base_url()
    );
    remit.write("remit.yaml", &config);
}

/// A lead with one child, whose second reply is held.
fn held_child(gate: &Gate) -> impl Fn(&Asked) -> Answer + Send + Sync + use<> {
    let gate = gate.clone();
    move |asked| match (asked.is_lead(), asked.turn) {
        (true, 0) => Reply::calls([Call::task("general-purpose", "p").id("call_1")]).into(),
        (true, _) => Reply::says(asked.results()[0].1.clone()).into(),
        (false, 0) => Reply::calls([Call::new("ls", json!({}))]).into(),
        (false, _) => Reply::says("the report").held_by(&gate),
    }
}

// Field reports 57 and 59: the client resumes, gets the rest and the end; the child that was
// started is the child that is finished, and nothing that was recorded is asked for again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_resumes_over_a_crash() {
    let gate = Gate::closed();
    let stub = StubModel::start(held_child(&gate)).await;
    let remit = remit();
    configure(&remit, &stub, "");
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    let thread_id = client.create_thread().await;
    let mut reader = client.start_and_follow(&thread_id, "delegate").await;
    let run_id = text(&reader.expect().await.data, "run_id").to_owned();
    stub.wait_for("the child's second question", |requests| requests.len() == 3).await;
    served.crash().await;
    let seen = records(&reader.rest().await);
    assert!(of_type(&seen, "subagent.receipt").len() == 1, "the first turn was shown");

    gate.open();
    let served = remit.serve(&[]).await;
    assert!(served.said.iter().any(|line| line.contains(&run_id)), "{:?}", served.said);
    let client = Client::new(&served.url);
    let cursor = number(seen.last().unwrap(), "position").to_string();
    let frames =
        client.follow(&thread_id, &run_id, Some(&cursor)).await.rest_within(Duration::from_secs(30)).await;
    assert_eq!(frames.last().unwrap().event, "end");
    let both = [seen.clone(), records(&frames)].concat();
    assert_eq!(both, client.events(&thread_id, &run_id).await);
    let events = client.thread_events(&thread_id).await;
    assert_whole(&events);
    assert_eq!(of_type(&events, "delegation.requested").len(), 1, "no second child");
    let run = client.run(&thread_id, &run_id).await;
    assert_eq!(
        (text(&run, "status"), text(&run, "result").starts_with("Task Succeeded. Result: the report")),
        ("success", true),
        "{run}"
    );
    // Two recorded replies were not paid for twice: only the one in flight was asked for again.
    assert_eq!(stub.count(), 5);
    stub.assert_strict();
    served.crash().await;
}

// Field report 57, where the operator does not want to resume: the end says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_not_resumed_ends_with_the_reason() {
    let gate = Gate::closed();
    let stub = StubModel::start(held_child(&gate)).await;
    let remit = remit();
    configure(&remit, &stub, "recovery: fail\n");
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    let thread_id = client.create_thread().await;
    let run_id = client.start_run(&thread_id, "delegate").await;
    stub.wait_for("the child's second question", |requests| requests.len() == 3).await;
    served.crash().await;

    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    let frames = client.follow(&thread_id, &run_id, None).await.rest_within(Duration::from_secs(30)).await;
    assert_eq!(frames.last().unwrap().event, "end");
    let run = client.run(&thread_id, &run_id).await;
    assert_eq!((text(&run, "status"), text(&run, "stop_reason")), ("error", "orphan_recovered"), "{run}");
    let events = client.thread_events(&thread_id).await;
    assert_whole(&events);
    let end = &only(&events, "subagent.end")["content"];
    assert_eq!(end["status"], "failed");
    assert!(text(end, "error").starts_with("interrupted: "), "{end}");
    let next = client.start_run(&thread_id, "again").await;
    gate.open();
    assert_eq!(text(&client.ended(&thread_id, &next).await, "status"), "success");
    stub.assert_strict();
    served.crash().await;
}

/// A lead that runs one command, which writes a line and then sleeps for long.
fn counting(nap: &str) -> impl Fn(&Asked) -> Answer + Send + Sync + use<> {
    let line = format!("echo once >> counter.txt; sleep {nap}");
    move |asked| match asked.turn {
        0 => Reply::calls([Call::new("bash", json!({"description": "count", "command": line}))]).into(),
        _ => Reply::says(asked.results()[0].1.clone()).into(),
    }
}

/// Numbers of live processes that sleep for so long.
fn sleeping(nap: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let is_sleeping = |entry: &std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line == format!("sleep\0{nap}\0").into_bytes()
    };
    entries.filter(is_sleeping).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Kills a server whose command is at work, and says what is left of the command before and after the
/// next start.
async fn check_command_at_work(remit: Remit, more: &str, nap: &str) -> usize {
    let stub = StubModel::start(counting(nap)).await;
    configure(&remit, &stub, more);
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    let thread_id = client.create_thread().await;
    let run_id = client.start_run(&thread_id, "count").await;
    let counter = remit.data().join("threads").join(&thread_id).join("user-data/workspace/counter.txt");
    wait::until("the command is at work", || counted(&counter) == 1 && !sleeping(nap).is_empty()).await;
    served.crash().await;
    let left = sleeping(nap).len();

    let served = remit.serve(&[]).await;
    assert_eq!(sleeping(nap), Vec::<String>::new(), "a command outlived its server");
    let client = Client::new(&served.url);
    let run = client.ended(&thread_id, &run_id).await;
    assert_eq!(text(&run, "status"), "success", "{run}");
    assert!(text(&run, "result").contains("whether it finished is unknown"), "{run}");
    assert_eq!(counted(&counter), 1);
    let events = client.thread_events(&thread_id).await;
    assert_whole(&events);
    assert_eq!(of_type(&events, "tool.started").len(), 1);
    served.crash().await;
    left
}

// Field report 60: a command that was at work when the server died may have done anything; it is
// not run again, the model is told, and what is left of it is ended before anybody goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_at_work_is_not_run_again() {
    let nap = format!("61.{}", std::process::id());
    check_command_at_work(remit(), "", &nap).await;
}

// Without bubblewrap nothing takes a command along with its server: the next start ends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_outlives_its_server_is_ended_by_the_next() {
    let nap = format!("62.{}", std::process::id());
    let without = remit().with("PATH", "/nowhere");
    let left = check_command_at_work(without, "sandbox: {allow_host_bash: true}\n", &nap).await;
    assert_eq!(left, 1, "it was still there before the next start");
}

fn counted(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap_or_default().lines().count()
}

/// How often the server is killed.
const ROUNDS: usize = 12;

// Whatever a reader was shown before the crash is in the log after it, byte by byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_reader_was_shown_is_there_after_the_crash() {
    let mut seed = Seed::from_time();
    println!("{seed}");
    let stub = StubModel::start(many_turns).await;
    let remit = remit();
    configure(&remit, &stub, "");
    let mut served = remit.serve(&[]).await;
    let thread_id = Client::new(&served.url).create_thread().await;
    let run_id = Client::new(&served.url).start_run(&thread_id, "work").await;
    let mut seen: Vec<Value> = Vec::new();
    for round in 0..ROUNDS {
        let client = Client::new(&served.url);
        let cursor = seen.last().map(|last| number(last, "position").to_string());
        let mut reader = client.follow(&thread_id, &run_id, cursor.as_deref()).await;
        for _ in 0..=seed.below(25) {
            match reader.next().await {
                Some(frame) if frame.id.is_some() => seen.push(frame.data),
                Some(_) => {}
                None => break,
            }
        }
        served.crash().await;
        seen.extend(records(&reader.rest().await));
        served = remit.serve(&[]).await;
        let kept = Client::new(&served.url).events(&thread_id, &run_id).await;
        assert!(
            kept.len() >= seen.len(),
            "round {round}: {} events were shown, {} are there",
            seen.len(),
            kept.len()
        );
        assert_eq!(kept[..seen.len()], seen, "round {round}");
    }
    assert!(seen.len() > ROUNDS, "only {} events were shown", seen.len());
    let client = Client::new(&served.url);
    let run = client.ended(&thread_id, &run_id).await;
    assert_eq!(text(&run, "status"), "success", "{run}");
    let events = client.thread_events(&thread_id).await;
    assert_whole(&events);
    assert_effects_once(&remit.data().join("threads").join(&thread_id), &events);
    stub.assert_strict();
    served.crash().await;
}

/// Every command of the third child ran at most once, and once if its receipt says so.
fn assert_effects_once(thread_folder: &Path, events: &[Value]) {
    let counter = std::fs::read_to_string(thread_folder.join("user-data/workspace/counter.txt"));
    let counter = counter.unwrap_or_default();
    let mut lines: Vec<&str> = counter.lines().collect();
    lines.sort_unstable();
    let count = lines.len();
    lines.dedup();
    assert_eq!(lines.len(), count, "a command ran twice: {counter}");
    let receipts = of_type(events, "subagent.receipt");
    let of_commands = receipts.iter().filter(|receipt| receipt["content"]["tool_name"] == "bash");
    let outcomes: Vec<&str> = of_commands.map(|receipt| text(&receipt["content"], "outcome")).collect();
    let sure = outcomes.iter().filter(|outcome| **outcome == "ok").count();
    let unsure = outcomes.iter().filter(|outcome| **outcome == "unknown").count();
    assert_eq!((sure + unsure, outcomes.len()), (COMMANDS, COMMANDS), "{outcomes:?}");
    assert!(sure <= count && count <= COMMANDS, "{sure} receipts say ok, {count} lines were written");
}

/// Commands of the third child.
const COMMANDS: usize = 25;

/// A lead and three children with many turns each; the third writes a line in each turn.
fn many_turns(asked: &Asked) -> Answer {
    let look = || Call::new("ls", json!({"path": "/mnt/user-data/workspace"}));
    let reply = match (asked.is_lead(), asked.turn) {
        (true, 0) => Reply::calls([
            Call::task("general-purpose", "one"),
            Call::task("general-purpose", "two"),
            Call::task("bash", "three"),
        ]),
        // The loop guard ends this; what is said beside the calls is the answer then.
        (true, turn) if turn < 10 => Reply::calls([look()]).and_says("so far"),
        (false, turn) if asked.seat == Seat::Bash && turn < COMMANDS => {
            let command = format!("echo {turn} >> counter.txt");
            Reply::calls([Call::new("bash", json!({"description": "count", "command": command}))])
        }
        (false, turn) if asked.seat != Seat::Bash && turn < 25 => Reply::calls([look(), look()]),
        (true, _) | (false, _) => Reply::says("done"),
    };
    reply.into()
}

// A stop in good order: the server says so and exits with 0, streams end without an end, and the
// run goes on at the next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_in_good_order_ends_no_run() {
    for signal in ["-TERM", "-INT"] {
        let gate = Gate::closed();
        let stub = StubModel::start(held_child(&gate)).await;
        let remit = remit();
        configure(&remit, &stub, "");
        let served = remit.serve(&[]).await;
        let client = Client::new(&served.url);
        let thread_id = client.create_thread().await;
        let mut reader = client.start_and_follow(&thread_id, "delegate").await;
        let run_id = text(&reader.expect().await.data, "run_id").to_owned();
        stub.wait_for("the child's second question", |requests| requests.len() == 3).await;
        assert_eq!(served.stop(signal).await, Some(0), "{signal}");
        let frames = reader.rest_within(Duration::from_secs(10)).await;
        assert_ne!(frames.last().unwrap().event, "end", "{signal}: the run has not ended");

        gate.open();
        let served = remit.serve(&[]).await;
        let client = Client::new(&served.url);
        let run = client.ended(&thread_id, &run_id).await;
        assert_eq!(text(&run, "status"), "success", "{signal}: {run}");
        assert_whole(&client.thread_events(&thread_id).await);
        stub.assert_strict();
        served.crash().await;
    }
}
