use serde_json::{Value, json};

use super::app::App;

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
