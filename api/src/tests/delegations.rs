use domain::ids::ToolCallId;
use serde_json::{Value, json};

use super::app::App;
use crate::testing::{append, run_event};

#[tokio::test]
async fn the_ledger_and_the_card_tell_of_one_delegation() {
    let app = App::new();
    app.thread("t").await;
    let run = app.run("t").await;
    let run_id = run["run_id"].as_str().unwrap();

    let ledger = app.get("/api/threads/t/delegations").await.json();
    assert_eq!(ledger.as_array().unwrap().len(), 1);
    let row = &ledger[0];
    assert_eq!(
        (&row["status"], &row["run_id"], &row["delivered"]),
        (&json!("completed"), &json!(run_id), &json!(true))
    );
    assert_eq!(
        (&row["description"], &row["subagent_type"]),
        (&json!("Look around"), &json!("general-purpose"))
    );
    assert_eq!(row["result_brief"], "Nothing there [r1 ls].");
    assert_eq!(app.get(&format!("/api/threads/t/delegations?run_id={run_id}")).await.json(), ledger);
    assert_eq!(app.get("/api/threads/t/delegations?run_id=other").await.json(), json!([]));
    assert_eq!(app.get(&format!("/api/threads/t/delegations?as_of={}", run["seq"])).await.json(), ledger);
    assert_eq!(app.get("/api/threads/t/delegations?as_of=2").await.json(), json!([]));

    let by_task = format!("/api/threads/t/runs/{run_id}/tasks/{}", row["task_id"].as_str().unwrap());
    let by_delegation =
        format!("/api/threads/t/runs/{run_id}/tasks/{}", row["delegation_id"].as_str().unwrap());
    let card = app.get(&format!("{by_task}/card")).await.json();
    assert_eq!(app.get(&format!("{by_delegation}/card")).await.json(), card);
    assert_eq!(app.get(&format!("{by_delegation}/card?as_of={}", run["seq"])).await.json(), card);
    check_card(&card);
    for path in [&by_task, &by_delegation] {
        assert_eq!(app.get(&format!("{path}/receipts")).await.json(), card["receipts"]);
    }
}

fn check_card(card: &Value) {
    assert_eq!((&card["status"], &card["turns"]), (&json!("completed"), &json!(2)));
    assert_eq!(card["result"], "Nothing there [r1 ls].");
    assert_eq!(card["citations"]["overall"], "verified");
    assert_eq!(card["citations"]["items"][0]["text"], "[r1 ls]");
    let steps: Vec<_> =
        card["steps"].as_array().unwrap().iter().map(|step| step["kind"].as_str().unwrap()).collect();
    assert_eq!(steps, ["ai", "tool", "ai"]);
    assert_eq!(card["steps"][0]["tool_calls"][0]["name"], "ls");
    assert_eq!(card["steps"][1]["tool_name"], "ls");
    let receipt = &card["receipts"][0];
    assert_eq!(
        (&receipt["id"], &receipt["tool_name"], &receipt["outcome"]),
        (&json!("r1"), &json!("ls"), &json!("ok"))
    );
}

#[tokio::test]
async fn what_was_never_delegated_has_no_card() {
    let app = App::new();
    app.thread("t").await;
    let run_id = app.run("t").await["run_id"].as_str().unwrap().to_owned();
    for task in ["call_x", "0198f000-0000-7000-8000-00000000ffff"] {
        for route in ["card", "receipts"] {
            let reply = app.get(&format!("/api/threads/t/runs/{run_id}/tasks/{task}/{route}")).await;
            reply.check_problem(404, "not_found", &format!("Task {task} not found"));
        }
    }
    let delegation = app.get("/api/threads/t/delegations").await.json()[0]["delegation_id"].clone();
    let other_run = format!("/api/threads/t/runs/other/tasks/{}/card", delegation.as_str().unwrap());
    app.get(&other_run).await.check_problem(404, "not_found", "Task");
    let long = format!("/api/threads/t/runs/{run_id}/tasks/{}/card", "x".repeat(257));
    app.get(&long).await.check_problem(422, "invalid", "invalid task_id");
}

/// A lead's request for a delegation, and its receipts.
async fn delegated(app: &App, number: u64) {
    let golden = |event_type: &str| {
        let path = format!("{}/../contracts/events/{event_type}.v1.json", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_str::<Value>(&std::fs::read_to_string(path).unwrap()).unwrap()["content"].clone()
    };
    let mut events = Vec::new();
    for (event_type, count) in [("delegation.requested", 1), ("subagent.start", 1), ("subagent.receipt", 3)] {
        for _ in 0..count {
            let run_id = if number.is_multiple_of(2) { "even" } else { "odd" };
            let mut event = run_event(run_id, event_type, &golden(event_type).to_string());
            event.scope.task_id = Some(ToolCallId::new("call_7Qk2").unwrap());
            event.scope.delegation_id =
                Some(format!("0198f000-0000-7000-8000-0000000001{number:02}").parse().unwrap());
            events.push(event);
        }
    }
    append(&app.log, "t", events).await;
}

fn numbers(rows: &Value, name: &str) -> Vec<u64> {
    rows.as_array()
        .unwrap_or_else(|| panic!("{rows}"))
        .iter()
        .map(|row| row[name].as_u64().unwrap())
        .collect()
}

// Field report 42: the ledger of a long thread is no exception.
#[tokio::test]
async fn the_ledger_and_receipts_of_a_task_are_paged() {
    let app = App::new();
    for number in 0..12 {
        delegated(&app, number).await;
    }
    let task = "/api/threads/t/runs/odd/tasks/0198f000-0000-7000-8000-000000000101/receipts";
    for (path, cursor, count) in [
        ("/api/threads/t/delegations?", "first_seq", 12),
        ("/api/threads/t/delegations?run_id=even&", "first_seq", 6),
        ("/api/threads/t/delegations?as_of=31&", "first_seq", 7),
        ("/api/threads/t/delegations?as_of=30&run_id=odd&", "first_seq", 3),
        (&format!("{task}?"), "seq", 3),
        (&format!("{task}?as_of=9&"), "seq", 2),
    ] {
        let whole = app.get(path.trim_end_matches(['?', '&'])).await.json();
        assert_eq!(whole.as_array().unwrap().len(), count, "{path}: {whole}");
        for limit in [1, 2, 5, 7, 2_000] {
            let (mut seen, mut after) = (Vec::new(), String::new());
            loop {
                let page = app.get(&format!("{path}limit={limit}{after}")).await.json();
                let rows = page.as_array().unwrap();
                assert!(rows.len() <= limit);
                seen.extend(rows.iter().cloned());
                let Some(last) = rows.last().filter(|_| rows.len() == limit) else { break };
                after = format!("&after_seq={}", last[cursor]);
            }
            assert_eq!(json!(seen), whole, "{path} by {limit}");
        }
        assert!(numbers(&whole, cursor).is_sorted(), "{whole}");
        for bad in ["limit=0", "limit=2001", "after_seq=0", "before_seq=1"] {
            app.get(&format!("{path}{bad}")).await.check_problem(
                422,
                "invalid",
                bad.split('=').next().unwrap(),
            );
        }
    }
}
