//! What was said, what stopped it and what it cost: over HTTP and as commands, from a folder and from a
//! server, always the same.

use serde_json::{Value, json};
use tests::{
    process::Remit,
    record::{last_seq, number, of_type, text},
    server::{Setup, TestServer},
    stub_model::{Answer, Asked, Call, KEY, Reply, StubModel, UsageSent},
};

use super::remit;

/// A lead and a child that goes round in circles until it is warned.
fn script(asked: &Asked) -> Answer {
    let usage = UsageSent::LastChunk(1_000, 100);
    let reply = match (asked.is_lead(), asked.turn) {
        (true, 0) => Reply::calls([Call::task("general-purpose", "look").id("call_1")]),
        (true, _) => Reply::says("All was looked at."),
        (false, 0..=3) => Reply::calls([Call::new("ls", json!({"path": "/mnt/user-data/workspace"}))]),
        (false, _) => Reply::says("Nothing there [r1 ls]."),
    };
    reply.usage(usage).into()
}

fn configure(remit: &Remit, stub: &StubModel) {
    let config = format!(
        "models:\n  - {{name: local, provider: openai, base_url: \"{}\", model: qwen, api_key: {KEY}}}\npricing:\n  \
         models: {{local: {{input_per_million: 2, output_per_million: 10}}}}\n",
        stub.base_url()
    );
    remit.write("remit.yaml", &config);
}

async fn json_of(remit: &Remit, words: &[&str]) -> Value {
    remit.run(&[words, &["--json"]].concat()).await.exited(0).json()
}

/// Every question of this file, with its answer as JSON.
async fn answers(remit: &Remit, run_id: &str, place: &[&str]) -> Vec<Value> {
    let questions: [&[&str]; 17] = [
        &["messages"],
        &["messages", "--all"],
        &["messages", "--run", run_id],
        &["messages", "--limit", "2"],
        &["messages", "--after-seq", "4", "--limit", "1"],
        &["messages", "--as-of", "5"],
        &["caps"],
        &["caps", "call_1", "--axis", "loop", "--action", "warn"],
        &["receipts", "--tool", "ls", "--limit", "2"],
        &["receipts", "call_1", "--outcome", "error"],
        &["usage"],
        &["usage", "--by", "caller,model", "--run", run_id],
        &["usage", "--by", "day", "--caller", "subagent"],
        &["threads", "--as-of-position", "6"],
        &["threads"],
        &["usage", "--as-of-position", "9", "--by", "caller"],
        &["usage", "--as-of", "9", "--run", run_id, "--by", "caller"],
    ];
    let mut answers = Vec::new();
    for question in questions {
        answers.push(json_of(remit, &[question, place].concat()).await);
    }
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_answer_from_a_folder_as_from_a_server() {
    let stub = StubModel::start(script).await;
    let remit = remit();
    configure(&remit, &stub);
    let done = json_of(&remit, &["run", "Look around"]).await;
    assert_eq!(text(&done, "status"), "success", "{done}");
    let run_id = text(&done, "run_id");
    let here = answers(&remit, run_id, &[]).await;
    let said = |answer: &Value| -> Vec<String> {
        let rows = answer.as_array().unwrap_or_else(|| panic!("{answer}"));
        rows.iter().map(|row| text(row, "event_type").to_owned()).collect()
    };
    let whole = ["llm.human.input", "llm.ai.response", "llm.tool.result", "llm.ai.response"];
    assert_eq!(said(&here[0]), whole);
    assert_eq!((&here[1], &here[2]), (&here[0], &here[0]), "nothing is hidden, and there is one run");
    assert_eq!(said(&here[3]), whole[2..]);
    assert_eq!(here[4].as_array().unwrap().len(), 1);
    assert_eq!(
        here[4][0],
        here[0].as_array().unwrap().iter().find(|row| number(row, "seq") > 4).unwrap().clone()
    );
    assert!(here[5].as_array().unwrap().iter().all(|row| number(row, "seq") <= 5), "{}", here[5]);
    // The guard warned at the third call that was the same.
    assert_eq!((&here[6][0]["axis"], &here[6][0]["action"]), (&json!("loop"), &json!("warn")), "{}", here[6]);
    assert_eq!((number(&here[6][0], "used"), text(&here[6][0], "task_id")), (3, "call_1"));
    assert_eq!(here[7], here[6]);
    let ids = |answer: &Value| -> Vec<String> {
        answer.as_array().unwrap().iter().map(|row| text(row, "id").to_owned()).collect()
    };
    assert_eq!((ids(&here[8]), ids(&here[9]).len()), (vec!["r1".to_owned(), "r2".to_owned()], 0));
    // Seven calls of 1,000 and 100 tokens each, at two and ten for a million.
    assert_eq!(number(&here[10]["total"], "calls"), 7);
    assert_eq!(here[10]["data"][0]["model_name"], "local");
    assert_eq!((&here[10]["total"]["cost"], &here[10]["currency"]), (&json!(0.021), &json!("USD")));
    assert_eq!(here[11]["total"], here[10]["total"]);
    assert_eq!(number(&here[12]["total"], "calls"), 5);

    let threads = [&here[13][0], &here[14][0]].map(|thread| (number(thread, "seq"), text(thread, "status")));
    assert_eq!((threads[0], threads[1].1), ((6, "busy"), "idle"), "the log has one thread");
    assert_eq!((&here[15], number(&here[15]["total"], "calls")), (&here[16], 1));

    let server = remit.serve(&[]).await;
    let there = answers(&remit, run_id, &["--server", &server.url]).await;
    assert_eq!(here, there);
    assert_eq!(server.stop("-TERM").await, Some(0));

    for (words, shown) in [
        (vec!["messages"], "→ task {"),
        (vec!["caps"], "warn    loop"),
        (vec!["receipts"], "r1"),
        (vec!["usage", "--by", "caller"], "subagent:general-purpose"),
        (vec!["messages", "--as-of", "1"], "no messages"),
    ] {
        let ended = remit.run(&words).await.exited(0);
        assert!(ended.stdout.contains(shown), "{words:?} gave {}", ended.stdout);
    }
    remit.run(&["usage", "--as-of", "3"]).await.exited(2);
    remit.run(&["messages", "--as-of", "9999"]).await.exited(4);
    remit.run(&["threads", "--as-of-position", "9999"]).await.exited(4);
    remit.run(&["usage", "--as-of-position", "9999"]).await.exited(4);
}

// Field report 88: a lead on one model and two children on others; by model and by caller the sums agree
// and are the calls. Field report 87: one of them reports nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn usage_by_model_and_by_caller_is_that_of_the_calls() {
    let first = StubModel::start(|asked| match (asked.is_lead(), asked.turn) {
        (true, 0) => {
            let calls = [Call::task("second", "p").id("call_1"), Call::task("third", "q").id("call_2")];
            Reply::calls(calls).usage(UsageSent::LastChunk(100, 10)).into()
        }
        (true, _) | (false, _) => Reply::says("done").usage(UsageSent::LastChunk(50, 5)).into(),
    })
    .await;
    let second = StubModel::start(|_| Reply::says("two").usage(UsageSent::LastChunk(7, 7)).into()).await;
    let third = StubModel::start(|_| Reply::says("three").usage(UsageSent::Absent).into()).await;
    let types = r#"{"custom_agents": {
        "second": {"description": "d", "system_prompt": "s", "model": "b"},
        "third": {"description": "d", "system_prompt": "s", "model": "c"}}}"#;
    let pricing = r#"{"models": {"a": {"input_per_million": 1, "output_per_million": 1}}}"#;
    let setup = Setup::with_models(&[(&first, "a"), (&second, "b"), (&third, "c")]).configured(|config| {
        config.subagents = serde_json::from_str(types).unwrap();
        config.pricing = serde_json::from_str(pricing).unwrap();
    });
    let server = TestServer::start(setup).await;
    let (thread_id, run) = server.client.run_to_end("delegate").await;
    assert_eq!(text(&run, "status"), "success", "{run}");
    let events = server.client.thread_events(&thread_id).await;
    let min_seq = last_seq(&events);
    let report = async |by: &str| {
        let path = format!("/api/usage?thread_id={thread_id}&min_seq={min_seq}&group_by={by}");
        server.client.get(&path).await.ok()
    };
    let (by_model, by_caller) = (report("model").await, report("caller").await);
    assert_eq!(by_model["total"], by_caller["total"]);
    let rows = |report: &Value, name: &str| -> Vec<(String, u64, Option<u64>)> {
        let row = |row: &Value| {
            let tokens = row["usage"]["total_tokens"].as_u64();
            (text(row, name).to_owned(), number(row, "calls"), tokens)
        };
        report["data"].as_array().unwrap().iter().map(row).collect()
    };
    let of = |name: &str, calls, tokens| (name.to_owned(), calls, tokens);
    assert_eq!(
        rows(&by_model, "model_name"),
        [of("a", 2, Some(165)), of("b", 1, Some(14)), of("c", 1, None)]
    );
    assert_eq!(
        rows(&by_caller, "caller"),
        [of("lead_agent", 2, Some(165)), of("subagent:second", 1, Some(14)), of("subagent:third", 1, None)]
    );
    let total = &by_model["total"];
    assert_eq!((number(total, "calls"), number(total, "calls_without_usage")), (4, 1));
    assert_eq!((&total["at_least"], &total["cost_at_least"]), (&json!(true), &json!(true)), "{total}");
    assert_eq!(total["usage"], run["usage"]);
    assert_eq!(total["cost"], 0.000_165);
    // As many calls as there are replies in the log.
    let replies = of_type(&events, "llm.ai.response").len();
    let of_children = of_type(&events, "subagent.message")
        .iter()
        .filter(|event| event["content"]["message"]["type"] == "ai")
        .count();
    assert_eq!(number(total, "calls"), (replies + of_children) as u64);
}
