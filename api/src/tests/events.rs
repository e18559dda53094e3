use domain::ids::ToolCallId;
use eventlog::{Json, NewEvent};
use serde_json::{Value, json};

use super::app::App;
use crate::testing::{append, event, run_event};

const DELEGATION: &str = "0198f000-0000-7000-8000-0000000000aa";

fn seqs(page: &Value) -> Vec<u64> {
    page.as_array().unwrap().iter().map(|record| record["seq"].as_u64().unwrap()).collect()
}

fn of_task(task_id: &str, event_type: &str) -> NewEvent {
    let mut event = run_event("r", event_type, "1");
    event.scope.task_id = Some(ToolCallId::new(task_id).unwrap());
    event
}

/// Seqs 1 to 12 of thread `t`: odd ones of task `a`, every third of task `b`, others of none.
async fn mixed(app: &App) {
    for number in 1..=12 {
        let event = match number {
            odd if odd % 2 == 1 => of_task("a", "subagent.step"),
            third if third % 3 == 0 => of_task("b", "subagent.step"),
            _ => run_event("r", "llm.ai.response", "1"),
        };
        append(&app.log, "t", vec![event]).await;
        append(&app.log, "other", vec![of_task("a", "subagent.step")]).await;
    }
}

// Facts §12 line 101, and field report 43: pages of one task while others write.
#[tokio::test]
async fn filters_come_before_the_limit_and_cursors_give_each_once() {
    let app = App::without_followers();
    mixed(&app).await;
    for base in ["/api/threads/t/runs/r/events", "/api/threads/t/events"] {
        for (filter, expected) in [
            ("task_id=a", vec![1, 3, 5, 7, 9, 11]),
            ("task_id=b", vec![6, 12]),
            ("event_types=llm.ai.response", vec![2, 4, 8, 10]),
            ("event_types=llm.ai.response,subagent.step", (1..=12).collect()),
            ("event_types=llm.ai.response,%20subagent.step", vec![2, 4, 8, 10]),
            ("event_types=", (1..=12).collect()),
            ("event_types=nothing", vec![]),
            ("task_id=a&event_types=llm.ai.response", vec![]),
        ] {
            for limit in [1, 2, 5, 2_000] {
                let (mut seen, mut after) = (Vec::<u64>::new(), String::new());
                loop {
                    let page = seqs(&app.get(&format!("{base}?{filter}&limit={limit}{after}")).await.json());
                    seen.extend(&page);
                    if page.len() < limit {
                        break;
                    }
                    after = format!("&after_seq={}", seen.last().unwrap());
                }
                assert_eq!(seen, expected, "{base}?{filter} by {limit}");
            }
        }
    }
}

#[tokio::test]
async fn a_delegation_is_found_by_either_of_its_names() {
    let app = App::without_followers();
    let mut ours = of_task("a", "x");
    ours.scope.delegation_id = Some(DELEGATION.parse().unwrap());
    // A provider's id that looks like one of ours.
    append(&app.log, "t", vec![ours, of_task("0198f000-0000-7000-8000-0000000000bb", "x")]).await;
    for base in ["/api/threads/t/runs/r/events", "/api/threads/t/events"] {
        for (task, expected) in
            [("a", vec![1]), (DELEGATION, vec![1]), ("0198f000-0000-7000-8000-0000000000bb", vec![2])]
        {
            assert_eq!(
                seqs(&app.get(&format!("{base}?task_id={task}")).await.json()),
                expected,
                "{base} {task}"
            );
        }
    }
}

// Facts §8 and §12 line 108.
#[tokio::test]
async fn limits_and_cursors_have_their_ranges() {
    let app = App::without_followers();
    append(&app.log, "t", (0..501).map(|_| run_event("r", "x", "1")).collect()).await;
    for base in ["/api/threads/t/runs/r/events", "/api/threads/t/events"] {
        assert_eq!(seqs(&app.get(base).await.json()), (1..=500).collect::<Vec<_>>());
        assert_eq!(seqs(&app.get(&format!("{base}?after_seq=500&limit=2000")).await.json()), [501]);
        for bad in [
            "limit=0",
            "limit=2001",
            "limit=x",
            "after_seq=0",
            "after_seq=-1",
            "before_seq=1",
            "limit=1&limit=1",
        ] {
            let name = bad.split('=').next().unwrap();
            app.get(&format!("{base}?{bad}")).await.check_problem(422, "invalid", name);
        }
    }
}

#[tokio::test]
async fn what_is_not_there_has_no_events() {
    let app = App::without_followers();
    append(&app.log, "t", vec![run_event("r", "x", "1")]).await;
    for path in [
        "/api/threads/t/runs/other/events",
        "/api/threads/nowhere/runs/r/events",
        "/api/threads/nowhere/events",
    ] {
        assert_eq!(app.get(path).await.text, "[]", "{path}");
    }
}

// Facts §12 line 111, and numbers beyond 2^53.
#[tokio::test]
async fn bodies_pass_through_and_the_token_does_not() {
    let app = App::without_followers();
    let mut secret = event("x", "{\"n\": 9007199254740993, \"big\":123456789012345678901234567890}");
    secret.metadata = Json::parse("{\"auth_token\":\"s3cret\",\"k\":1.50}").unwrap();
    append(&app.log, "t", vec![secret]).await;
    let text = app.get("/api/threads/t/events").await.text;
    assert!(
        text.contains("\"content\":{\"n\": 9007199254740993, \"big\":123456789012345678901234567890}"),
        "{text}"
    );
    assert!(text.contains("\"metadata\":{\"k\":1.50}"), "{text}");
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()[0]["run_id"], json!(null));
}
