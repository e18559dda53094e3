//! `kill -9` of a real server before each of its commits in turn (DESIGN, promise 6): a run with three
//! delegations ends as if nothing had happened.
//!
//! The server that dies is the command itself; a debug build can be told the commit before which it
//! kills itself. So what was recorded by then was acted upon, and what came of that is lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Mutex,
};

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tests::{
    client::{Client, run_body},
    invariants::assert_whole,
    process::{Remit, Served},
    record::{of_type, text},
    stub_model::{Answer, Asked, Call, Reply, StubModel},
    wait,
};

use super::remit;

const THREAD: &str = "killed";
/// Rounds that go on at once: most of each is waiting for a disk.
const AT_ONCE: usize = 4;
/// More commits than any round makes.
const NO_CRASH: usize = 1_000_000;

/// What a round left behind.
struct Round {
    /// Whether the server was killed.
    is_killed: bool,
    /// What was recorded when it was.
    before: Vec<Value>,
    /// The ledger at the end, without what differs from run to run.
    ledger: Vec<Value>,
    /// How often each agent was asked for each of its turns.
    asked: BTreeMap<(String, usize), usize>,
}

impl Round {
    fn asked_in_all(&self) -> usize {
        self.asked.values().sum()
    }
}

/// How the lead delegates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lead {
    /// One task after the other: at most one agent asks its model at a time.
    InTurn,
    /// All in one reply.
    AtOnce,
}

impl Lead {
    /// Fewer crashes than commits of a run with three delegations would mean that rounds did not crash.
    /// Children that work at the same time share some.
    const fn crashes_min(self) -> usize {
        match self {
            Self::InTurn => 35,
            Self::AtOnce => 20,
        }
    }

    const fn slots(self) -> usize {
        match self {
            Self::InTurn => 1,
            Self::AtOnce => 3,
        }
    }
}

fn script(lead: Lead) -> impl Fn(&Asked) -> Answer + Send + Sync {
    move |asked| answer(lead, asked)
}

/// A lead with three children; the second and the lead itself do what must not be done twice.
fn answer(lead: Lead, asked: &Asked) -> Answer {
    let count = |line: &str| {
        let command = format!("echo {line} >> counter.txt");
        Reply::calls([Call::new("bash", json!({"description": "count", "command": command}))])
    };
    let look = || Reply::calls([Call::new("ls", json!({"path": "/mnt/user-data/workspace"}))]);
    let tasks = [
        Call::task("general-purpose", "task-a").id("call_a"),
        Call::task("bash", "task-b").id("call_b"),
        Call::task("general-purpose", "task-c").id("call_c"),
    ];
    let delegating = if lead == Lead::InTurn { 3 } else { 1 };
    let reply = match (who(asked), asked.turn) {
        ("lead", turn) if turn < delegating => match lead {
            Lead::InTurn => Reply::calls([tasks[turn].clone()]),
            Lead::AtOnce => Reply::calls(tasks),
        },
        ("lead", turn) if turn == delegating => count("lead"),
        ("task-a" | "task-c", 0) => look(),
        ("task-b", 0) => count("first"),
        ("task-b", 1) => count("second"),
        (who, _) => Reply::says(format!("{who} is done")),
    };
    reply.into()
}

fn who(asked: &Asked) -> &'static str {
    ["task-a", "task-b", "task-c"].into_iter().find(|task| asked.is_about(task)).unwrap_or("lead")
}

fn configured(stub: &StubModel, lead: Lead) -> Remit {
    let (remit, max_running) = (remit(), lead.slots());
    let model = format!("{{name: stub, provider: openai, base_url: \"{}\", api_key: k}}", stub.base_url());
    let config = format!("models: [{model}]\nsubagent_runtime: {{max_running: {max_running}}}\n");
    remit.write("remit.yaml", &config);
    remit
}

/// Sends a request to a server that may die meanwhile.
async fn ask(client: &Client, method: Method, path: &str, body: &Value) -> Option<Value> {
    let request = client.request(method, path);
    let request = if body.is_null() { request } else { request.json(body) };
    let response = request.send().await.ok()?;
    let is_ok = response.status().is_success();
    response.json().await.ok().filter(|_| is_ok)
}

/// The run of the thread; it is started when there is none.
async fn run_of(client: &Client) -> Option<String> {
    ask(client, Method::POST, "/api/threads", &json!({"thread_id": THREAD})).await;
    let events = ask(client, Method::GET, &format!("/api/threads/{THREAD}/events"), &Value::Null).await?;
    let run_id = events.as_array()?.iter().find_map(|event| event["run_id"].as_str());
    if let Some(run_id) = run_id {
        return Some(run_id.to_owned());
    }
    let runs = format!("/api/threads/{THREAD}/runs");
    let run = ask(client, Method::POST, &runs, &run_body("go", json!({}))).await?;
    Some(text(&run, "run_id").to_owned())
}

/// Works until the run has ended, or the server has died.
async fn is_killed(served: &mut Served) -> bool {
    let client = Client::new(&served.url);
    let started = run_of(&client).await;
    let path = format!("/api/threads/{THREAD}/runs/{}", started.unwrap_or_default());
    let served = Mutex::new(served);
    wait::until_answer("the server has died or the run has ended", || async {
        if let Some(was_killed) = served.lock().unwrap().was_killed() {
            assert!(was_killed, "the server ended by itself");
            return Some(true);
        }
        let run = ask(&client, Method::GET, &path, &Value::Null).await?;
        (!["pending", "running"].contains(&text(&run, "status"))).then_some(false)
    })
    .await
}

/// What is recorded, read while no server is there.
async fn recorded(remit: &Remit) -> Vec<Value> {
    let events = remit.run(&["events", "--thread", THREAD, "--json"]).await;
    match events.code {
        Some(0) => events.json().as_array().unwrap().clone(),
        // The server died before it had made the thread, or the folder.
        _ => Vec::new(),
    }
}

/// One server that dies before this commit, and one that goes on.
async fn round(commit: usize, lead: Lead) -> Round {
    let stub = StubModel::start(script(lead)).await;
    let remit = configured(&stub, lead);
    let died = match remit.serve_until_commit(commit).await {
        Some(mut served) => {
            let died = is_killed(&mut served).await;
            served.crash().await;
            died
        }
        None => true,
    };
    let before = recorded(&remit).await;
    let (ledger, after) = gone_on(&remit).await;
    assert_eq!(after[..before.len()], before, "what was recorded has changed");
    assert_effects_once(&remit, &after);
    stub.assert_strict();
    let mut asked = BTreeMap::new();
    for request in stub.requests() {
        *asked.entry((who(&request).to_owned(), request.turn)).or_default() += 1;
    }
    Round { is_killed: died, before, ledger, asked }
}

/// Starts a server that is not killed, and waits for the end of the run: its ledger and events.
async fn gone_on(remit: &Remit) -> (Vec<Value>, Vec<Value>) {
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    let run_id = run_of(&client).await.unwrap();
    let run = client.ended(THREAD, &run_id).await;
    assert_eq!((text(&run, "status"), text(&run, "result")), ("success", "lead is done"), "{run}");
    let events = client.thread_events(THREAD).await;
    assert_whole(&events);
    let ledger = client.ledger(THREAD, events.len() as u64).await;
    served.crash().await;
    (ledger.iter().map(essence).collect(), events)
}

/// A row of the ledger without ids of ours and times.
fn essence(row: &Value) -> Value {
    let mut row = row.clone();
    let fields = row.as_object_mut().unwrap();
    for own in
        ["delegation_id", "run_id", "seq", "first_seq", "queued_at", "started_at", "ended_at", "requested_at"]
    {
        fields.remove(own);
    }
    row
}

/// Each line of the counter was written at most once, and once where its receipt says so.
fn assert_effects_once(remit: &Remit, events: &[Value]) {
    let counter: PathBuf = remit.data().join("threads").join(THREAD).join("user-data/workspace/counter.txt");
    let counter = std::fs::read_to_string(counter).unwrap_or_default();
    let lines: Vec<&str> = counter.lines().collect();
    for line in ["first", "second", "lead"] {
        let count = lines.iter().filter(|other| **other == line).count();
        assert!(count <= 1, "{line} was done {count} times: {counter}");
    }
    let receipts = of_type(events, "subagent.receipt");
    let of_commands: Vec<&str> = receipts
        .iter()
        .filter(|receipt| receipt["content"]["tool_name"] == "bash")
        .map(|receipt| text(&receipt["content"], "outcome"))
        .collect();
    assert_eq!(of_commands.len(), 2, "each command has one receipt: {of_commands:?}");
    let sure = of_commands.iter().filter(|outcome| **outcome == "ok").count();
    let done = lines.iter().filter(|line| **line != "lead").count();
    assert!(sure <= done, "{sure} receipts say ok, {done} commands were done: {counter}");
}

/// Rounds with a crash before each commit, from the first on until a run ends without one.
async fn every_round(lead: Lead) -> Vec<Round> {
    let mut rounds: Vec<Round> = Vec::new();
    loop {
        let first = rounds.len() + 1;
        let some = join_all((first..first + AT_ONCE).map(|commit| round(commit, lead))).await;
        let is_over = some.iter().any(|round| !round.is_killed);
        rounds.extend(some);
        if is_over {
            return rounds.into_iter().filter(|round| round.is_killed).collect();
        }
    }
}

/// Replies that were recorded, by agent and turn.
fn replies(events: &[Value]) -> BTreeSet<(String, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut replies = BTreeSet::new();
    for event in events {
        let content = &event["content"];
        let who = match text(event, "event_type") {
            "llm.ai.response" => "lead",
            "subagent.message" if content["message"]["type"] == "ai" => match text(content, "task_id") {
                "call_a" => "task-a",
                "call_b" => "task-b",
                _ => "task-c",
            },
            _ => continue,
        };
        let turn = counts.entry(who).or_default();
        replies.insert((who.to_owned(), *turn));
        *turn += 1;
    }
    replies
}

/// What must hold of a round, beside one without a crash.
#[track_caller]
fn check(round: &Round, whole: &Round, at_once: usize) {
    let last = round.before.last().map(|event| event["event_type"].to_string());
    assert_eq!(round.ledger, whole.ledger, "killed after {last:?}");
    let paid = replies(&round.before);
    for (turn, count) in &round.asked {
        let most = if paid.contains(turn) { 1 } else { 2 };
        assert!(*count <= most, "killed after {last:?}: {turn:?} was asked for {count} times");
    }
    let (asked, needed) = (round.asked_in_all(), whole.asked_in_all());
    assert!(
        (needed..=needed + at_once).contains(&asked),
        "killed after {last:?}: {asked} calls, {needed} needed"
    );
}

async fn check_every_crash(lead: Lead) -> Vec<Round> {
    let whole = round(NO_CRASH, lead).await;
    assert!(!whole.is_killed);
    assert_eq!(whole.asked.values().filter(|count| **count != 1).count(), 0);
    let calls = if lead == Lead::InTurn { 12 } else { 10 };
    assert_eq!((whole.ledger.len(), whole.asked_in_all()), (3, calls));
    let crashed = every_round(lead).await;
    assert!(crashed.len() >= lead.crashes_min(), "{} crashes", crashed.len());
    for round in &crashed {
        check(round, &whole, lead.slots());
    }
    crashed
}

// One after the other, so that at most one call is in flight.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_before_any_commit_costs_at_most_the_call_in_flight() {
    let crashed = check_every_crash(Lead::InTurn).await;
    let last: BTreeSet<&str> =
        crashed.iter().filter_map(|round| Some(text(round.before.last()?, "event_type"))).collect();
    for boundary in [
        "delegation.requested",
        "subagent.start",
        "subagent.message",
        "subagent.step",
        "tool.started",
        "subagent.receipt",
        "subagent.end",
        "llm.tool.result",
        "llm.ai.response",
    ] {
        assert!(last.contains(boundary), "no crash came after {boundary}: {last:?}");
    }
}

// Side by side, each of three children has a call of its own in flight.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_while_three_work_costs_at_most_a_call_of_each() {
    check_every_crash(Lead::AtOnce).await;
}

/// Commits that each server gets before it dies: some of them only say that it was started again.
const COMMITS_EACH: usize = 6;

// Server after server dies; each goes on where the one before it stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_crash_after_another_does_nothing_twice() {
    let stub = StubModel::start(script(Lead::AtOnce)).await;
    let remit = configured(&stub, Lead::AtOnce);
    let mut crashes = 0;
    let mut is_over = false;
    while !is_over {
        if let Some(mut served) = remit.serve_until_commit(COMMITS_EACH + 1).await {
            is_over = !is_killed(&mut served).await;
            served.crash().await;
        }
        crashes += usize::from(!is_over);
        assert!(crashes < 100, "the run does not get on");
    }
    let (ledger, events) = gone_on(&remit).await;
    assert!(crashes > 4, "{crashes}");
    assert!(ledger.iter().all(|row| row["status"] == "completed" && row["delivered"] == true), "{ledger:?}");
    assert_effects_once(&remit, &events);
    stub.assert_strict();
}
