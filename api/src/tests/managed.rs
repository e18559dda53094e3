//! Managed definitions over HTTP, and what runs make of them.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::app::{App, Reply, request, saying};

const BASE: &str = "/api/subagents/managed";

async fn send(app: &App, method: Method, path: &str, body: Value) -> Reply {
    app.send(request(method, &format!("{BASE}{path}"), Some(&body))).await
}

fn reviewer() -> Value {
    json!({"description": "Reviews a change", "system_prompt": "Look for what could break.", "tools": ["grep"]})
}

async fn create(app: &App, name: &str) -> Reply {
    send(app, Method::POST, "", json!({"name": name, "definition": reviewer()})).await
}

async fn names(app: &App) -> Vec<String> {
    let types = app.get("/api/subagents").await.json();
    types.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_definition_is_made_changed_taken_back_and_removed() {
    let app = App::new();
    let made = create(&app, "reviewer").await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    let mut made = made.json();
    for time in ["created_at", "updated_at"] {
        assert!(made.as_object_mut().unwrap().remove(time).unwrap().is_string());
    }
    let expected = json!({
        "name": "reviewer", "version": 1, "enabled": true, "hidden_by": null,
        "definition": {
            "description": "Reviews a change", "system_prompt": "Look for what could break.", "tools": ["grep"],
            "disallowed_tools": ["task", "ask_clarification", "present_files"], "skills": null,
            "model": "inherit", "max_turns": 50, "timeout_seconds": 900,
        },
    });
    assert_eq!(made, expected);
    assert_eq!(names(&app).await.last().unwrap(), "reviewer");

    let other = json!({"definition": {"description": "Other", "system_prompt": "p"}, "expected_version": 1});
    let updated = send(&app, Method::PUT, "/reviewer", other.clone()).await.json();
    assert_eq!((&updated["version"], &updated["definition"]["description"]), (&json!(2), &json!("Other")));
    let late = send(&app, Method::PUT, "/reviewer", other).await;
    // What is so already is no change, but a change for another version is refused before that is looked at.
    late.check_problem(409, "conflict", "is at version 2, not 1");
    let off = send(&app, Method::POST, "/reviewer/disable", json!({})).await.json();
    assert_eq!((&off["version"], &off["enabled"]), (&json!(3), &json!(false)));
    assert!(!names(&app).await.contains(&"reviewer".to_owned()));
    let again = send(&app, Method::POST, "/reviewer/disable", json!({})).await.json();
    assert_eq!(again["version"], 3, "nothing changed");
    let back = send(&app, Method::POST, "/reviewer/rollback", json!({"to_version": 1})).await.json();
    assert_eq!((&back["version"], &back["definition"]), (&json!(4), &expected["definition"]));
    send(&app, Method::POST, "/reviewer/enable", json!({"expected_version": 4})).await;
    let gone = app.send(request(Method::DELETE, &format!("{BASE}/reviewer"), None)).await;
    assert_eq!((gone.status, gone.text.as_str()), (StatusCode::NO_CONTENT, ""));
    for (method, path) in [(Method::GET, "/reviewer"), (Method::DELETE, "/reviewer")] {
        let reply = app.send(request(method, &format!("{BASE}{path}"), None)).await;
        reply.check_problem(404, "not_found", "managed definition reviewer not found");
    }
    let page = app.get(&format!("{BASE}/reviewer/history?limit=4")).await.json();
    let changes: Vec<_> = page["data"].as_array().unwrap().iter().map(|one| one["change"].clone()).collect();
    assert_eq!(changes, ["created", "updated", "disabled", "rolled_back"]);
    assert_eq!((&page["has_more"], &page["data"][3]["to_version"]), (&json!(true), &json!(1)));
    let rest = app.get(&format!("{BASE}/reviewer/history?after=4")).await.json();
    assert_eq!((&rest["has_more"], &rest["data"][1]["change"]), (&json!(false), &json!("deleted")));
    app.get(&format!("{BASE}/nobody/history")).await.check_problem(404, "not_found", "nobody not found");
    let log = app.get("/api/events?limit=500").await.json();
    for event in log.as_array().unwrap() {
        contracts::run_event_stream().validate(event).unwrap();
    }
    assert_eq!(log.as_array().unwrap().len(), 6);
}

#[tokio::test]
async fn what_cannot_be_used_is_refused_by_name() {
    let app = App::new();
    create(&app, "reviewer").await;
    create(&app, "reviewer").await.check_problem(409, "conflict", "exists at version 1");
    let broken = |definition: Value| json!({"name": "other", "definition": definition});
    for (body, words) in [
        (broken(json!({"description": "d"})), "missing field `system_prompt`"),
        (broken(json!({"description": "d", "system_prompt": "p", "colour": 1})), "unknown field `colour`"),
        (
            broken(json!({"description": "d", "system_prompt": "p", "max_turns": 0})),
            "definition.max_turns is 0",
        ),
        (broken(json!({"description": " ", "system_prompt": "p"})), "definition.description is blank"),
        (json!({"name": "a b", "definition": reviewer()}), "1 to 64 letters"),
        (json!({"name": "other", "definition": reviewer(), "x": 1}), "unknown field `x`"),
    ] {
        send(&app, Method::POST, "", body).await.check_problem(422, "invalid", words);
    }
    let nothing = send(&app, Method::POST, "/reviewer/rollback", json!({"to_version": 9})).await;
    nothing.check_problem(404, "not_found", "had no text at version 9");
    send(&app, Method::POST, "/nobody/enable", json!({})).await.check_problem(404, "not_found", "nobody");
    assert_eq!(app.get(BASE).await.json()["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_name_that_is_taken_hides_the_definition_and_lists_say_so() {
    let app = App::new();
    for name in ["zeta", "general-purpose", "alpha"] {
        create(&app, name).await;
    }
    let page = app.get(&format!("{BASE}?limit=2")).await.json();
    let rows = page["data"].as_array().unwrap();
    assert_eq!((&rows[0]["name"], &rows[1]["name"]), (&json!("alpha"), &json!("general-purpose")));
    assert_eq!((&rows[0]["hidden_by"], &rows[1]["hidden_by"]), (&json!(null), &json!("built_in")));
    assert_eq!(page["has_more"], true);
    let rest = app.get(&format!("{BASE}?after=general-purpose")).await.json();
    assert_eq!((&rest["data"][0]["name"], &rest["has_more"]), (&json!("zeta"), &json!(false)));
    let types = app.get("/api/subagents").await.json();
    let general: Vec<_> =
        types.as_array().unwrap().iter().filter(|one| one["name"] == "general-purpose").collect();
    assert_eq!((general.len(), &general[0]["source"]), (1, &json!("built_in")));
}

async fn types_of(app: &App, run_id: &Value) -> Vec<(String, bool)> {
    let path = format!("/api/threads/t/runs/{}/subagents", run_id.as_str().unwrap());
    let types = app.get(&path).await.json();
    let one = |one: &Value| (one["name"].as_str().unwrap().to_owned(), one["available"] == true);
    types.as_array().unwrap().iter().map(one).collect()
}

/// A run obeys what was there when it was started, whatever becomes of it.
#[tokio::test]
async fn a_run_keeps_the_definitions_that_it_was_started_with() {
    let app = App::new();
    app.thread("t").await;
    create(&app, "reviewer").await;
    let with = app.run("t").await;
    app.send(request(Method::DELETE, &format!("{BASE}/reviewer"), None)).await;
    let without = app.run("t").await;
    assert!(types_of(&app, &with["run_id"]).await.contains(&("reviewer".into(), true)));
    assert!(!types_of(&app, &without["run_id"]).await.iter().any(|(name, _)| name == "reviewer"));
    let path =
        format!("/api/threads/t/runs/{}/events?event_types=run.start", with["run_id"].as_str().unwrap());
    let start = &app.get(&path).await.json()[0]["content"];
    assert!(start["system_prompt"].as_str().unwrap().contains("- reviewer: Reviews a change"));
    assert_eq!(start["managed_subagents"]["reviewer"]["tools"], json!(["grep"]));
}

/// Facts §1.8: null allows all, an empty list none, a list those; it is frozen with the run.
#[tokio::test]
async fn a_request_may_say_which_types_its_run_has() {
    let app = App::new();
    app.thread("t").await;
    for (allowed, status, available) in [
        (json!(null), "completed", vec!["general-purpose"]),
        (json!(["general-purpose", "nobody"]), "completed", vec!["general-purpose"]),
        (json!(["bash"]), "refused", vec![]),
        (json!([]), "refused", vec![]),
    ] {
        let mut body = saying("go");
        body["config"]["configurable"]["allowed_subagents"] = allowed.clone();
        let reply = app.post("/api/threads/t/runs/wait", body).await;
        assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
        let run_id = &reply.json()["run_id"];
        let types = types_of(&app, run_id).await;
        let is_bash = |name: &str| name == "bash";
        let found: Vec<_> =
            types.iter().filter(|(name, can)| *can && !is_bash(name)).map(|(name, _)| name).collect();
        assert_eq!(found, available, "{allowed}");
        let path = format!("/api/threads/t/delegations?run_id={}", run_id.as_str().unwrap());
        assert_eq!(app.get(&path).await.json()[0]["status"], status, "{allowed}");
    }
    let mut bad = saying("go");
    bad["config"]["configurable"]["allowed_subagents"] = json!(["a b"]);
    app.post("/api/threads/t/runs", bad).await.check_problem(422, "invalid", "allowed_subagents");
}
