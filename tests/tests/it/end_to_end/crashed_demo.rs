//! `kill -9` in the middle of the demo, at a random moment, again and again.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use tests::{
    invariants::{assert_whole, is_terminal},
    plain_fold::assert_ledger,
    process::Remit,
    record::{assert_gapless, assert_valid, text},
    seed::Seed,
    wait::{self, PATIENCE},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    time::Instant,
};

use super::remit;

const ROUNDS: usize = 20;
/// Rounds that go on at once.
const AT_ONCE: usize = 4;
/// The demo takes about so long.
const DEMO_MS: u64 = 4_500;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledged_event_is_missing_after_a_crash() {
    let mut seed = Seed::from_time();
    let rounds: Vec<u64> = (0..ROUNDS).map(|_| seed.below(DEMO_MS)).collect();
    println!("{seed}: kills after {rounds:?} ms");
    let mut in_the_middle = 0;
    for some in rounds.chunks(AT_ONCE) {
        let ended = some.iter().map(|after| round(Duration::from_millis(*after)));
        in_the_middle += futures::future::join_all(ended).await.into_iter().filter(|is_so| *is_so).count();
    }
    assert!(in_the_middle * 4 > ROUNDS, "only {in_the_middle} of {ROUNDS} kills hit a demo at work");
}

/// Kills that are meant for the demo's first moments.
const EARLY_ROUNDS: usize = 24;
/// A demo makes its data folder in about so long.
const START_MS: u64 = 150;

// A folder that was being made when the process was killed can be used as if nothing had been.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demo_that_is_killed_at_its_start_leaves_no_folder_that_cannot_be_opened() {
    let mut seed = Seed::from_time();
    println!("{seed}");
    let moments: Vec<u64> = (0..EARLY_ROUNDS).map(|_| seed.below(START_MS)).collect();
    for some in moments.chunks(AT_ONCE) {
        futures::future::join_all(some.iter().map(|after| early(Duration::from_millis(*after)))).await;
    }
}

async fn early(after: Duration) {
    let remit = remit();
    killed_demo(&remit, after).await;
    // A part of a data folder is one that was being made, or that has lost the rest.
    let is_begun = ["log", "head", "keys/threads"].iter().any(|part| remit.data().join(part).exists());
    let expected = if is_begun { 0 } else { 3 };
    let runs = remit.run(&["runs", "--json"]).await;
    assert_eq!(runs.code, Some(expected), "killed after {after:?}: {}", runs.stderr);
    let served = remit.serve(&[]).await;
    let client = tests::client::Client::new(&served.url);
    let (_, run) = client.run_to_end("Look at the files here").await;
    assert_eq!(text(&run, "status"), "success", "killed after {after:?}: {run}");
    served.crash().await;
}

/// Whether the demo was at work when it was killed.
async fn round(after: Duration) -> bool {
    let remit = remit();
    tests::folders::write_files(remit.folder(), &[("files/a.md", "# A\n"), ("files/b.txt", "b\n")]);
    let observed = killed_demo(&remit, after).await;
    if !remit.data().join("log").is_dir() {
        assert!(observed.is_empty(), "{after:?}: something was shown, and there is no log");
        return false;
    }
    let runs = remit.run(&["runs", "--json"]).await.exited(0).json();
    let Some(run) = runs.as_array().unwrap().first() else {
        assert!(observed.is_empty(), "{after:?}: {observed:?}");
        return false;
    };
    let events = remit.run(&["events", "--json"]).await.exited(0).json();
    let events = events.as_array().unwrap();
    assert_valid(events);
    assert_gapless(events);
    let ledger = remit.run(&["ledger", "--json"]).await.exited(0).json();
    assert_ledger(ledger.as_array().unwrap(), events);
    assert_observed(&observed, events, after);
    assert_goes_on(&remit, run, events).await;
    !observed.is_empty() && !events.iter().any(is_terminal)
}

/// Kills the demo and gives the most turns that it showed of each agent, by its line's beginning.
async fn killed_demo(remit: &Remit, after: Duration) -> BTreeMap<String, usize> {
    let mut child = remit.command(&["demo", "."]).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut observed = BTreeMap::new();
    let moment = Instant::now() + after;
    while let Ok(Ok(Some(line))) = tokio::time::timeout_at(moment, lines.next_line()).await {
        note(&mut observed, &line);
    }
    tokio::time::sleep_until(moment).await;
    child.kill().await.unwrap();
    while let Ok(Some(line)) = wait::within(PATIENCE, "the rest of the lines", lines.next_line()).await {
        note(&mut observed, &line);
    }
    observed
}

fn note(observed: &mut BTreeMap<String, usize>, line: &str) {
    let parts: Vec<&str> = line.split("  ").collect();
    let turns: Option<usize> = parts
        .iter()
        .find_map(|part| part.strip_suffix(" turns").or(part.strip_suffix(" turn"))?.parse().ok());
    if let (Some(who), Some(turns)) = (parts.get(..2), turns) {
        let who = if who[0] == "lead" { "lead".to_owned() } else { who[1].trim_matches('"').to_owned() };
        let known: &mut usize = observed.entry(who).or_default();
        *known = turns.max(*known);
    }
}

/// What was shown had been recorded before: at least so many replies of each agent are there.
fn assert_observed(observed: &BTreeMap<String, usize>, events: &[Value], after: Duration) {
    let mut recorded: BTreeMap<String, usize> = BTreeMap::new();
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for event in events {
        let content = &event["content"];
        match text(event, "event_type") {
            "llm.ai.response" => *recorded.entry("lead".to_owned()).or_default() += 1,
            "delegation.requested" => {
                names.insert(text(event, "delegation_id"), text(content, "description"));
            }
            "subagent.message" if content["message"]["type"] == "ai" => {
                *recorded.entry(names[text(event, "delegation_id")].to_owned()).or_default() += 1;
            }
            _ => {}
        }
    }
    for (who, turns) in observed {
        let kept = recorded.get(who).copied().unwrap_or_default();
        assert!(kept >= *turns, "killed after {after:?}: {who} had shown {turns} turns, {kept} are recorded");
    }
}

/// A server on the folder goes on with what was left, and the run ends.
async fn assert_goes_on(remit: &Remit, run: &Value, before: &[Value]) {
    let served = remit.serve(&[]).await;
    let client = tests::client::Client::new(&served.url);
    let (thread_id, run_id) = (text(run, "thread_id"), text(run, "run_id"));
    let ended = client.ended(thread_id, run_id).await;
    let events = client.thread_events(thread_id).await;
    assert_eq!(events[..before.len()], *before, "what was there has changed");
    assert_whole(&events);
    assert!(is_terminal(events.last().unwrap()), "{ended}");
    assert_eq!(text(&ended, "status"), "success", "{ended}");
    served.crash().await;
}
