use domain::{
    event::{Cap, CapAction, CapAxis, Event, RunEvent},
    ids::ToolCallId,
};
use serde_json::{Value, json};

use super::app::App;
use crate::testing::{append, run_event};

fn cap_event(run_id: &str, axis: CapAxis, action: CapAction) -> eventlog::NewEvent {
    let event = Event::Run(RunEvent::Capped(Cap { axis, action, used: 7, budget: 10 }));
    run_event(run_id, event.event_type(), &event.content().unwrap().to_string())
}

fn column(page: &Value, name: &str) -> Vec<String> {
    let text = |row: &Value| row[name].as_str().map_or_else(|| row[name].to_string(), str::to_owned);
    page["data"].as_array().unwrap_or_else(|| panic!("{page}")).iter().map(text).collect()
}

#[tokio::test]
async fn every_cap_is_listed_with_what_it_counted() {
    let app = App::new();
    let mut of_child = cap_event("b", CapAxis::Turns, CapAction::Stop);
    of_child.event_type = "subagent.cap".into();
    of_child.content =
        eventlog::Json::parse(r#"{"task_id":"call_1","axis":"turns","action":"stop","used":3,"budget":3}"#)
            .unwrap();
    of_child.scope.task_id = Some(ToolCallId::new("call_1").unwrap());
    of_child.scope.delegation_id = Some("0198f000-0000-7000-8000-0000000000aa".parse().unwrap());
    let events = vec![
        cap_event("a", CapAxis::Tokens, CapAction::Warn),
        cap_event("a", CapAxis::Tokens, CapAction::Stop),
        cap_event("b", CapAxis::Loop, CapAction::Warn),
        of_child,
    ];
    append(&app.log, "t", events).await;
    let all = app.get("/api/threads/t/caps").await.json();
    assert_eq!(column(&all, "axis"), ["tokens", "tokens", "loop", "turns"]);
    let mut first = all["data"][0].clone();
    assert!(first.as_object_mut().unwrap().remove("at").is_some());
    let expected =
        json!({"run_id": "a", "axis": "tokens", "action": "warn", "used": 7, "budget": 10, "seq": 1});
    assert_eq!(first, expected);
    assert_eq!(all["data"][3]["delegation_id"], "0198f000-0000-7000-8000-0000000000aa");
    for (query, expected) in [
        ("run_id=a", vec!["1", "2"]),
        ("action=warn", vec!["1", "3"]),
        ("axis=tokens&action=stop", vec!["2"]),
        ("task_id=call_1", vec!["4"]),
        ("task_id=0198f000-0000-7000-8000-0000000000aa", vec!["4"]),
        ("task_id=nobody", vec![]),
        ("after_seq=2", vec!["3", "4"]),
        ("as_of=3&after_seq=1", vec!["2", "3"]),
        ("run_id=nowhere", vec![]),
    ] {
        let page = app.get(&format!("/api/threads/t/caps?{query}")).await.json();
        assert_eq!((column(&page, "seq"), &page["has_more"]), (as_text(&expected), &json!(false)), "{query}");
    }
    // The limit counts what the filter admits.
    let page = app.get("/api/threads/t/caps?action=warn&limit=1").await.json();
    assert_eq!((column(&page, "seq"), &page["has_more"]), (as_text(&["1"]), &json!(true)));
    app.get("/api/threads/t/caps?axis=moon").await.check_problem(422, "invalid", "turns, tokens, loop");
    app.get("/api/threads/nowhere/caps").await.check_problem(404, "not_found", "Thread nowhere");
}

fn as_text(seqs: &[&str]) -> Vec<String> {
    seqs.iter().map(|seq| (*seq).to_owned()).collect()
}

#[tokio::test]
async fn receipts_are_those_of_the_cards() {
    let app = App::new();
    app.thread("t").await;
    let run = app.run("t").await;
    let run_id = run["run_id"].as_str().unwrap();
    let ledger = app.get("/api/threads/t/delegations").await.json();
    let (task_id, delegation_id) = (&ledger[0]["task_id"], &ledger[0]["delegation_id"]);
    let all = app.get("/api/threads/t/receipts").await.json();
    assert_eq!((column(&all, "tool_name"), &all["has_more"]), (vec!["ls".to_owned()], &json!(false)));
    let mut row = all["data"][0].clone();
    assert_eq!(
        (&row["run_id"], &row["task_id"], &row["delegation_id"]),
        (&json!(run_id), task_id, delegation_id)
    );
    let card = format!("/api/threads/t/runs/{run_id}/tasks/{}/card", delegation_id.as_str().unwrap());
    for owner in ["run_id", "task_id", "delegation_id"] {
        row.as_object_mut().unwrap().remove(owner);
    }
    assert_eq!(app.get(&card).await.json()["receipts"], json!([row]));
    let seq = row["seq"].as_u64().unwrap();
    for (query, count) in [
        (format!("run_id={run_id}"), 1),
        (format!("task_id={}", delegation_id.as_str().unwrap()), 1),
        (format!("task_id={}&run_id={run_id}", task_id.as_str().unwrap()), 1),
        ("tool_name=ls&outcome=ok".to_owned(), 1),
        ("tool_name=bash".to_owned(), 0),
        ("outcome=unknown".to_owned(), 0),
        (format!("after_seq={seq}"), 0),
        (format!("as_of={}", seq - 1), 0),
        (format!("as_of={seq}"), 1),
        ("run_id=nowhere".to_owned(), 0),
    ] {
        let page = app.get(&format!("/api/threads/t/receipts?{query}")).await.json();
        assert_eq!(column(&page, "seq").len(), count, "{query}: {page}");
    }
    app.get("/api/threads/t/receipts?outcome=good").await.check_problem(422, "invalid", "ok, error, denied");
}

#[tokio::test]
async fn the_types_of_subagent_are_listed_and_frozen_with_a_run() {
    let app = App::new();
    let now = app.get("/api/subagents").await.json();
    let first = &now[0];
    assert_eq!((&first["name"], &first["source"]), (&json!("general-purpose"), &json!("built_in")));
    assert_eq!((&first["max_turns"], &first["timeout_seconds"]), (&json!(150), &json!(1_800)));
    assert_eq!((&first["model"], &first["available"]), (&json!("inherit"), &json!(true)));
    assert_eq!(first["token_budget"]["max_tokens"], 2_000_000);
    assert_eq!((&first["tools"], &now[1]["name"]), (&Value::Null, &json!("bash")));
    app.thread("t").await;
    let run = app.run("t").await;
    let path = format!("/api/threads/t/runs/{}/subagents", run["run_id"].as_str().unwrap());
    let frozen = app.get(&path).await.json();
    assert_eq!(frozen[0], *first);
    assert_eq!(frozen.as_array().unwrap().len(), now.as_array().unwrap().len());
    app.get(&format!("{path}?as_of=1")).await.check_problem(404, "not_found", "not found");
    app.get(&format!("{path}?as_of=999")).await.check_problem(409, "stale", "not yet at 999");
    app.get("/api/threads/t/runs/nowhere/subagents").await.check_problem(404, "not_found", "Run nowhere");
    app.get("/api/subagents?x=1").await.check_problem(422, "invalid", "unknown query parameter");
}

// Field reports 25 and 69: how far a delegation has got is known by its id, at any moment.
#[tokio::test]
async fn the_state_of_a_delegation_is_its_card_without_the_steps() {
    let app = App::new();
    app.thread("t").await;
    let run = app.run("t").await;
    let run_id = run["run_id"].as_str().unwrap();
    let ledger = app.get("/api/threads/t/delegations").await.json();
    let delegation_id = ledger[0]["delegation_id"].as_str().unwrap();
    let path = format!("/api/threads/t/runs/{run_id}/tasks/{delegation_id}");
    let state = app.get(&format!("{path}?min_seq={}", run["seq"])).await.json();
    let card = app.get(&format!("{path}/card")).await.json();
    let count = |name: &str| card[name].as_array().unwrap().len();
    assert_eq!((&state["steps"], &state["receipts"]), (&json!(count("steps")), &json!(count("receipts"))));
    assert_eq!((&state["caps"], &state["last_receipt"]), (&json!(0), &card["receipts"][0]["id"]));
    assert_eq!((&state["last_tool"], &state["max_turns"]), (&json!("ls"), &json!(150)));
    for shared in ["status", "turns", "usage", "seq", "task_id", "model_name", "citations"] {
        assert_eq!(state[shared], card[shared], "{shared}");
    }
    for (name, value) in ledger[0].as_object().unwrap() {
        assert_eq!(&state[name], value, "{name}");
    }
    let first = ledger[0]["task_id"].as_str().unwrap();
    assert_eq!(app.get(&format!("/api/threads/t/runs/{run_id}/tasks/{first}")).await.json(), state);
    let seq = state["seq"].as_u64().unwrap();
    assert_eq!(app.get(&format!("{path}?as_of={seq}")).await.json(), state);
    let before = app.get(&format!("{path}?as_of={}", card["receipts"][0]["seq"])).await.json();
    assert_eq!((&before["status"], &before["receipts"]), (&json!("in_progress"), &json!(1)));
    app.get(&format!("/api/threads/t/runs/{run_id}/tasks/nobody")).await.check_problem(
        404,
        "not_found",
        "nobody",
    );
}
