//! Every query can be asked as of any earlier moment and can wait for what was written, and those that
//! cannot say why.

use std::{collections::BTreeSet, sync::Arc};

use axum::http::StatusCode;
use eventlog::{NewEvent, Position, RecordedEvent};
use serde_json::Value;
use tokio::task::JoinSet;

use super::app::App;
use crate::{paths, testing};

/// What a route can be asked.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Takes {
    /// `as_of`, `as_of_position`, `min_seq` and `min_position`.
    Thread,
    /// `as_of_position` and `min_position`.
    Log,
    /// None of them.
    Nothing(Why),
}

/// Why not.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Why {
    /// It only changes something.
    Command,
    /// It tells of this process at this moment, which is not recorded.
    Process,
    /// It begins at a cursor and goes on for ever.
    Stream,
    /// It is named by what it contains, and so is the same at every moment.
    Content,
}

const ROUTES: &[(&str, Takes)] = &[
    (paths::EVENTS, Takes::Log),
    (paths::THREADS, Takes::Log),
    (paths::THREAD, Takes::Thread),
    (paths::THREAD_EVENTS, Takes::Thread),
    (paths::BLOB, Takes::Nothing(Why::Content)),
    (paths::DELEGATIONS, Takes::Thread),
    (paths::MESSAGES, Takes::Thread),
    (paths::MESSAGES_PAGE, Takes::Thread),
    (paths::MESSAGES_COUNT, Takes::Thread),
    (paths::MESSAGES_LAST_AI, Takes::Thread),
    (paths::RUN_MESSAGES, Takes::Thread),
    (paths::CAPS, Takes::Thread),
    (paths::RECEIPTS, Takes::Thread),
    (paths::RUNS, Takes::Thread),
    (paths::RUNS_STREAM, Takes::Nothing(Why::Command)),
    (paths::RUNS_WAIT, Takes::Nothing(Why::Command)),
    (paths::RUN, Takes::Thread),
    (paths::RUN_SUBAGENTS, Takes::Thread),
    (paths::RUN_CANCEL, Takes::Nothing(Why::Command)),
    (paths::RUN_TASKS_CANCEL, Takes::Nothing(Why::Command)),
    (paths::RUN_EVENTS, Takes::Thread),
    (paths::RUN_STREAM, Takes::Nothing(Why::Stream)),
    (paths::TASK, Takes::Thread),
    (paths::TASK_CANCEL, Takes::Nothing(Why::Command)),
    (paths::TASK_CARD, Takes::Thread),
    (paths::TASK_CARD_REPLAY, Takes::Nothing(Why::Stream)),
    (paths::TASK_RECEIPTS, Takes::Thread),
    (paths::CAPACITY, Takes::Nothing(Why::Process)),
    (paths::CONFIG, Takes::Nothing(Why::Process)),
    // With the configuration of this process.
    (paths::SUBAGENTS, Takes::Nothing(Why::Process)),
    (paths::MANAGED, Takes::Log),
    (paths::MANAGED_ONE, Takes::Log),
    (paths::MANAGED_ENABLE, Takes::Nothing(Why::Command)),
    (paths::MANAGED_DISABLE, Takes::Nothing(Why::Command)),
    (paths::MANAGED_ROLL_BACK, Takes::Nothing(Why::Command)),
    (paths::MANAGED_HISTORY, Takes::Log),
    (paths::USAGE, Takes::Log),
    (paths::PROJECTIONS, Takes::Nothing(Why::Process)),
    (paths::PROJECTIONS_REBUILD, Takes::Nothing(Why::Command)),
    (paths::PROJECTION_REBUILD, Takes::Nothing(Why::Command)),
    (paths::PROJECTION_PARKED, Takes::Log),
    (paths::ERASURES, Takes::Log),
    (paths::ERASURE, Takes::Log),
    (paths::EXPORTS, Takes::Nothing(Why::Process)),
    (paths::EXPORT, Takes::Nothing(Why::Process)),
    (paths::EXPORT_FILE, Takes::Nothing(Why::Process)),
    (paths::BACKUPS, Takes::Nothing(Why::Process)),
    (paths::BACKUP, Takes::Nothing(Why::Process)),
    (paths::VERIFY, Takes::Nothing(Why::Process)),
    (paths::VERIFICATION, Takes::Nothing(Why::Process)),
];

/// A path of thread `a`, and the beginning of its query.
fn filled(route: &str, run_id: &str, task_id: &str) -> String {
    let path = route.replace("{thread_id}", "a").replace("{run_id}", run_id).replace("{task_id}", task_id);
    let path = path.replace("{name}", "runs").replace("{erasure_id}", "0198f000-0000-7000-8000-0000000000ee");
    match route {
        paths::MESSAGES_LAST_AI => format!("{path}?run_ids={run_id}&"),
        paths::USAGE => format!("{path}?group_by=thread,run,model,caller,day&"),
        paths::EVENTS => format!("{path}?limit=2000&"),
        _ => format!("{path}?"),
    }
}

#[test]
fn every_route_says_what_it_takes() {
    let all = include_str!("../paths.rs").split('"').filter(|text| text.starts_with("/api/"));
    let known: BTreeSet<_> = ROUTES.iter().map(|(route, _)| *route).collect();
    assert_eq!(all.collect::<BTreeSet<_>>(), known);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_query_says_where_it_is_when_it_cannot_know_yet() {
    let app = Arc::new(App::new());
    app.thread("a").await;
    let run = app.run("a").await;
    let (run_id, task_id) = (text(&run["run_id"]), text(&ledger_row(&app).await["delegation_id"]));
    let mut asked = JoinSet::new();
    for (route, takes) in ROUTES {
        let (of_thread, of_log) = match takes {
            Takes::Thread => (true, true),
            Takes::Log => (false, true),
            Takes::Nothing(_) => (false, false),
        };
        let wishes = [
            ("as_of", of_thread),
            ("min_seq", of_thread),
            ("as_of_position", of_log),
            ("min_position", of_log),
        ];
        for (name, is_taken) in wishes {
            let (app, path) = (Arc::clone(&app), filled(route, &run_id, &task_id));
            let is_refused = !matches!(takes, Takes::Nothing(Why::Command));
            asked.spawn(async move {
                let reply = app.get(&format!("{path}{name}=987654")).await;
                match is_taken {
                    true => reply.check_problem(409, "stale", "not yet at 987654"),
                    false if is_refused => {
                        assert!(reply.status.is_client_error(), "{path} {name}: {reply:?}")
                    }
                    false => {}
                }
            });
        }
    }
    while let Some(done) = asked.join_next().await {
        done.unwrap();
    }
    let both = app.get("/api/threads/a?as_of=1&as_of_position=1").await;
    both.check_problem(422, "invalid", "as_of");
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

async fn ledger_row(app: &App) -> Value {
    app.get("/api/threads/a/delegations").await.json()[0].clone()
}

fn again(event: &RecordedEvent) -> NewEvent {
    NewEvent {
        event_id: event.event_id,
        event_type: event.event_type.clone(),
        schema_version: event.schema_version,
        category: event.category.clone(),
        scope: event.scope.clone(),
        owner: event.owner.clone(),
        causation_id: event.causation_id,
        correlation_id: event.correlation_id.clone(),
        created_at: event.created_at,
        content: event.content.clone(),
        metadata: event.metadata.clone(),
    }
}

// What a query says as of then is what it said then.
#[tokio::test(flavor = "multi_thread")]
async fn every_query_answers_of_a_moment_what_it_answered_then() {
    let recorded = App::new();
    for thread in ["a", "b"] {
        recorded.thread(thread).await;
    }
    let run_id = text(&recorded.run("a").await["run_id"]);
    recorded.run("b").await;
    recorded.run("a").await;
    let task_id = text(&ledger_row(&recorded).await["delegation_id"]);
    let queries: Vec<_> = ROUTES.iter().filter(|(_, takes)| !matches!(takes, Takes::Nothing(_))).collect();

    let app = App::new();
    let mut then = Vec::new();
    for event in recorded.log.read_all(Position::ZERO, 10_000).unwrap() {
        let thread_id = event.stream.thread_id().unwrap().as_str().to_owned();
        let stored = testing::append(&app.log, &thread_id, vec![again(&event)]).await;
        for (route, takes) in &queries {
            let path = filled(route, &run_id, &task_id);
            let reply = app.get(&format!("{path}min_position={}", stored[0].position)).await;
            let seq = (*takes == Takes::Thread && thread_id == "a").then_some(stored[0].seq);
            then.push((path, stored[0].position, seq, reply.status, reply.text));
        }
    }
    assert!(then.len() > 1_000, "{}", then.len());
    for (path, position, seq, status, text) in then {
        let of_thread = seq.map(|seq| format!("as_of={seq}"));
        for wish in [Some(format!("as_of_position={position}")), of_thread].into_iter().flatten() {
            let reply = app.get(&format!("{path}{wish}")).await;
            assert_eq!((reply.status, &reply.text), (status, &text), "{path}{wish}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_and_erasures_of_a_moment_are_those_of_then() {
    let app = App::new();
    let mut definition = serde_json::json!({
        "name": "reviewer",
        "definition": {"description": "Reads.", "system_prompt": "You read.", "tools": ["read_file"]},
    });
    let made = app.post("/api/subagents/managed", definition.clone()).await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    let first = app.log.head();
    app.post("/api/subagents/managed/reviewer/disable", serde_json::json!({})).await;
    definition["name"] = "writer".into();
    app.post("/api/subagents/managed", definition).await;
    let managed = app.get(&format!("/api/subagents/managed?as_of_position={first}")).await.json();
    assert_eq!(managed["data"], serde_json::json!([made.json()]));
    let one = app.get(&format!("/api/subagents/managed/reviewer?as_of_position={first}")).await.json();
    assert_eq!(one, made.json());
    let history = format!("/api/subagents/managed/reviewer/history?as_of_position={first}");
    assert_eq!(app.get(&history).await.json()["data"].as_array().unwrap().len(), 1);
    let early = app.get(&format!("/api/subagents/managed/writer?as_of_position={first}")).await;
    early.check_problem(404, "not_found", "writer");

    app.thread("t").await;
    let before = app.log.head();
    let erased =
        app.send(super::app::request(axum::http::Method::DELETE, "/api/threads/t", None)).await.json();
    let erasure = format!("/api/erasures/{}", text(&erased["erasure_id"]));
    assert_eq!(app.get(&erasure).await.json()["state"], "done");
    let requested = before.get() + 1;
    assert_eq!(app.get(&format!("{erasure}?as_of_position={requested}")).await.json()["state"], "requested");
    let early = app.get(&format!("{erasure}?as_of_position={before}")).await;
    early.check_problem(404, "not_found", "not found");
    let list = app.get(&format!("/api/erasures?as_of_position={before}")).await.json();
    assert_eq!(list["data"], serde_json::json!([]));
}
