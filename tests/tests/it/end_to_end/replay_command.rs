//! `remit replay` and `remit card --replay`: states of the past, and whether it can be made again.

use std::process::Stdio;

use serde_json::{Value, json};
use tests::{
    process::{Ended, Remit},
    record::{number, text},
    wait,
};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use super::remit;

/// Runs that are cut off by kill -9.
const CUT_OFF: usize = 2;

fn lines(ended: &Ended) -> Vec<Value> {
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn json(remit: &Remit, words: &[&str]) -> Value {
    remit.run(&[words, &["--json"]].concat()).await.exited(0).json()
}

/// A folder with the demo's run, which delegates. Gives the thread and a delegation of it.
async fn demo() -> (Remit, String, Value) {
    let remit = remit();
    remit.write("notes.md", "# Notes\nTODO: more\n");
    remit.run(&["demo", "."]).await.exited(0);
    let runs = json(&remit, &["runs"]).await;
    let ledger = json(&remit, &["ledger"]).await;
    (remit, text(&runs[0], "thread_id").to_owned(), ledger[0].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_state_of_the_past_can_be_looked_at() {
    let (remit, thread, delegation) = demo().await;
    let events = json(&remit, &["events", "--thread", &thread]).await;
    let events = events.as_array().unwrap();
    let states = lines(&remit.run(&["replay", "--thread", &thread, "--step", "--json"]).await.exited(0));
    assert_eq!(states.len(), events.len());
    for (state, event) in states.iter().zip(events) {
        for key in ["seq", "position", "event_type"] {
            assert_eq!(state[key], event[key]);
        }
    }
    // Each is what the other commands show of that moment.
    for state in states.iter().step_by(9).chain(states.last()) {
        let seq = state["seq"].to_string();
        let as_of = ["--thread", &thread, "--as-of", &seq];
        assert_eq!(state["runs"], json(&remit, &[&["runs"], &as_of[..]].concat()).await, "{seq}");
        assert_eq!(state["delegations"], json(&remit, &[&["ledger"], &as_of[..]].concat()).await, "{seq}");
        let folded = json(&remit, &["replay", "--thread", &thread, "--seq", &seq]).await;
        assert_eq!(&folded, state);
    }
    let task = text(&delegation, "delegation_id");
    let cards = lines(&remit.run(&["replay", "--task-id", task, "--step", "--json"]).await.exited(0));
    assert_eq!(cards.last().unwrap()["card"], json(&remit, &["card", task]).await);
    let replayed = lines(&remit.run(&["card", task, "--replay", "--speed", "max", "--json"]).await.exited(0));
    let changes: Vec<_> = cards.iter().filter(|state| state["event_type"] != "tool.started").collect();
    assert_eq!(replayed.len(), changes.len());
    for (card, state) in replayed.iter().zip(changes) {
        assert_eq!(card, &state["card"]);
    }
    let shown = remit.run(&["card", task, "--replay", "--speed", "1000000"]).await.exited(0);
    assert_eq!(shown.stdout.matches("== seq ").count(), replayed.len(), "{}", shown.stdout);
    remit.run(&["replay", "--thread", &thread, "--seq", "999999"]).await.exited(4);
    remit.run(&["replay", "--thread", "nobody"]).await.exited(3);
    remit.run(&["card", task, "--replay", "--speed", "-1"]).await.exited(2);
    remit.run(&["replay", "--check", "--step"]).await.exited(2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stepping_goes_on_back_and_to_a_seq() {
    let (remit, thread, _) = demo().await;
    let mut command = remit.command(&["replay", "--thread", &thread, "--step"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"\n\nb\n7\nb\n1\nb\n999999\nq\n").await.unwrap();
    drop(input);
    let output = child.wait_with_output().await.unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{shown}");
    let seqs: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("== seq ")).collect();
    let last = seqs.last().unwrap();
    assert_eq!(seqs[..8], ["1", "2", "3", "2", "7", "6", "1", "1"]);
    assert!(last.parse::<u64>().unwrap() > 20, "{seqs:?}");
    assert!(shown.contains("run.start") && shown.contains("STATUS"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_runs_can_be_made_again() {
    let (remit, thread, _) = demo().await;
    remit.run(&["run", "And more?", "--thread", &thread]).await.exited(0);
    remit.run(&["run", "Something else"]).await.exited(0);
    let checked = json(&remit, &["replay", "--check"]).await;
    assert_eq!(
        (&checked["deterministic"], &checked["threads"], &checked["runs"]),
        (&json!(true), &json!(2), &json!(3))
    );
    assert!(number(&checked, "delegations") >= 3 && number(&checked, "effects") > 20, "{checked}");
    let one = json(&remit, &["replay", "--check", "--thread", &thread]).await;
    assert_eq!((&one["threads"], &one["runs"]), (&json!(1), &json!(2)));
    let shown = remit.run(&["replay", "--check"]).await.exited(0);
    assert!(shown.stdout.contains("what was recorded is what the agents ask for"), "{}", shown.stdout);
}

// A run that was cut off by kill -9 and went on is one that can be made again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_was_resumed_can_be_made_again() {
    let remit = remit();
    remit.write("notes.md", "# Notes\n");
    // Demos are killed while their subagents work, and a server carries them on.
    for _ in 0..CUT_OFF {
        let mut child = remit.command(&["demo", "."]).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        loop {
            let line = wait::within(wait::PATIENCE, "a subagent", said.next_line()).await.unwrap();
            if line.expect("the demo goes on").contains("Survey the files") {
                break;
            }
        }
        child.kill().await.unwrap();
    }
    let cut = json(&remit, &["runs"]).await;
    assert!(cut.as_array().unwrap().iter().all(|run| text(run, "status") == "running"), "{cut}");
    let served = remit.serve(&[]).await;
    let there = ["--server", &served.url];
    let all_ended = || async {
        let runs = remit.run(&[&["runs", "--json"], &there[..]].concat()).await.json();
        let runs = runs.as_array().unwrap().clone();
        runs.iter()
            .all(|run| text(run, "status") != "running" && text(run, "status") != "pending")
            .then_some(())
    };
    wait::until_answer("the runs have ended", all_ended).await;
    let checked = json(&remit, &[&["replay", "--check"], &there[..]].concat()).await;
    assert_eq!((&checked["deterministic"], &checked["runs"]), (&json!(true), &json!(CUT_OFF)), "{checked}");
    assert!(served.stop("-TERM").await.is_some());
    let here = json(&remit, &["replay", "--check"]).await;
    assert_eq!((&here["deterministic"], &here["effects"]), (&json!(true), &checked["effects"]));
}
