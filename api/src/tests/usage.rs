use serde_json::{Value, json};

use super::app::App;

fn call(run_id: &str, caller: &str, model: &str, usage: Option<(u64, u64)>) -> Value {
    let mut content = json!({"type": "ai", "content": "x", "response_metadata": {"model_name": model}});
    if let Some((input, output)) = usage {
        content["usage_metadata"] =
            json!({"input_tokens": input, "output_tokens": output, "total_tokens": input + output});
    }
    json!({
        "run_id": run_id, "event_type": "llm.ai.response", "category": "message", "content": content,
        "metadata": {"caller": caller}
    })
}

async fn recorded() -> App {
    let app = App::new();
    let events = json!([
        call("a", "lead_agent", "offline", Some((1_000_000, 500_000))),
        call("a", "subagent:bash", "other", Some((10, 5))),
        call("b", "lead_agent", "offline", None),
        call("b", "middleware:title", "offline", Some((500_000, 0))),
    ]);
    let reply = app.post("/api/threads/t/events", events).await;
    assert!(reply.status.is_success(), "{reply:?}");
    app
}

// Field report 88: by model and by caller, and both are the calls. Field report 87: what was not
// reported makes a total one of "at least".
#[tokio::test]
async fn usage_is_summed_up_by_what_is_asked_for() {
    let app = recorded().await;
    let report = app.get("/api/usage").await.json();
    assert_eq!((&report["group_by"], &report["currency"]), (&json!(["model"]), &json!("USD")));
    assert_eq!(
        report["data"],
        json!([
            {
                "model_name": "offline", "calls": 3, "calls_without_usage": 1, "at_least": true,
                "usage": {"input_tokens": 1_500_000, "output_tokens": 500_000, "total_tokens": 2_000_000},
                "cost": 7.0, "cost_at_least": true
            },
            {
                "model_name": "other", "calls": 1, "calls_without_usage": 0, "at_least": false,
                "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
                "cost": null, "cost_at_least": true
            }
        ])
    );
    let total = &report["total"];
    assert_eq!((&total["calls"], &total["usage"]["total_tokens"]), (&json!(4), &json!(2_000_015)));
    assert_eq!((&total["cost"], &total["cost_at_least"]), (&json!(7.0), &json!(true)));
    for (query, expected) in [
        ("group_by=caller", vec!["lead_agent:2", "middleware:title:1", "subagent:bash:1"]),
        ("group_by=run", vec!["a:2", "b:2"]),
        ("group_by=run&caller=lead_agent", vec!["a:1", "b:1"]),
        ("group_by=run&caller=subagent", vec!["a:1"]),
        ("group_by=run&caller=middleware", vec!["b:1"]),
        ("group_by=run&model_name=other", vec!["a:1"]),
        ("group_by=run&run_id=b&thread_id=t", vec!["b:2"]),
        ("group_by=thread", vec!["t:4"]),
        ("group_by=run&from=2000-01-01&to=2999-12-31", vec!["a:2", "b:2"]),
        ("group_by=run&to=2000-01-01", vec![]),
        ("group_by=run&from=2999-01-01", vec![]),
        ("group_by=run&thread_id=t&as_of=2", vec!["a:2"]),
    ] {
        let report = app.get(&format!("/api/usage?{query}")).await.json();
        let rows = report["data"].as_array().unwrap_or_else(|| panic!("{query}: {report}"));
        let name = |row: &Value| {
            let names = ["thread_id", "run_id", "model_name", "caller", "day"];
            names.iter().find_map(|name| row[name].as_str().map(str::to_owned)).unwrap()
        };
        let shown: Vec<_> = rows.iter().map(|row| format!("{}:{}", name(row), row["calls"])).collect();
        assert_eq!(shown, expected, "{query}");
        let calls: u64 = rows.iter().map(|row| row["calls"].as_u64().unwrap()).sum();
        assert_eq!(report["total"]["calls"], calls, "{query}");
    }
    let whole = app.get("/api/usage?group_by=").await.json();
    assert_eq!((whole["data"].as_array().unwrap().len(), &whole["data"][0]["calls"]), (1, &json!(4)));
}

// Field report 42.
#[tokio::test]
async fn groups_are_paged_and_the_total_is_of_all() {
    let app = recorded().await;
    let (mut callers, mut after) = (Vec::new(), String::new());
    loop {
        let page = app.get(&format!("/api/usage?group_by=caller,model&limit=1{after}")).await.json();
        assert_eq!(page["total"]["calls"], 4);
        callers.extend(page["data"].as_array().unwrap().iter().map(|row| row["caller"].clone()));
        if page["has_more"] == false {
            assert!(page["next_after"].is_null());
            break;
        }
        let cursor = page["next_after"].as_str().unwrap();
        let escaped: String = cursor.bytes().map(|byte| format!("%{byte:02x}")).collect();
        after = format!("&after={escaped}");
    }
    assert_eq!(callers, ["lead_agent", "middleware:title", "subagent:bash"]);
}

#[tokio::test]
async fn what_cannot_be_summed_up_says_why() {
    let app = recorded().await;
    for (query, words) in [
        ("group_by=moon", "thread, run, model, caller, day"),
        ("group_by=run,run", "each once"),
        ("from=yesterday", "from"),
        ("to=2026-13-01", "to"),
        ("after=x", "after"),
        ("after=%5B%5D", "after"),
        ("as_of=1", "thread_id"),
        ("min_seq=1", "thread_id"),
        ("limit=0", "limit"),
        ("model=x", "model_name"),
    ] {
        app.get(&format!("/api/usage?{query}")).await.check_problem(422, "invalid", words);
    }
    assert_eq!(app.get("/api/usage?min_position=4").await.json()["total"]["calls"], 4);
    app.get("/api/usage?min_position=999").await.check_problem(409, "stale", "999");
    app.get("/api/usage?thread_id=nowhere").await.check_problem(404, "not_found", "Thread nowhere");
    app.get("/api/usage?thread_id=t&as_of=9").await.check_problem(409, "stale", "not yet at 9");
}

// Children are counted once, under their own name; run, card and usage agree.
#[tokio::test]
async fn usage_of_a_run_agrees_with_the_run_and_its_cards() {
    let app = App::new();
    app.thread("t").await;
    let run = app.run("t").await;
    let run_id = run["run_id"].as_str().unwrap();
    let path = format!("/api/usage?thread_id=t&run_id={run_id}&group_by=caller");
    let report = app.get(&path).await.json();
    assert_eq!(report["total"]["usage"], run["usage"], "{report} {run}");
    let of_child = &report["data"][1];
    assert_eq!(of_child["caller"], "subagent:general-purpose");
    let ledger = app.get("/api/threads/t/delegations").await.json();
    assert_eq!(of_child["usage"], ledger[0]["usage"]);
    assert_eq!(of_child["calls"], 2);
    let erased = super::app::request(axum::http::Method::DELETE, "/api/threads/t", None);
    assert!(app.send(erased).await.status.is_success());
    assert_eq!(app.get("/api/usage").await.json()["total"]["calls"], 0);
}
