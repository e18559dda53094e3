//! A lead and a subagent on a real language model that is served on this machine over Chat Completions.
//!
//! Optional: `tests/scripts/real-model.sh` starts such a model where one is installed. A small model
//! cannot be relied on to choose well among many tools, and takes minutes to read a long prompt. So a
//! proxy shortens the system text and leaves one tool to choose, and none when there is a result to
//! answer with. What it says, and how it streams, is its own.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    response::Response,
    routing::post,
};
use runtime::models::{ModelSettings, Models, Provider, probe::probe};
use serde_json::{Value, json};
use tests::{
    invariants::assert_whole,
    record::{of_type, only, text},
    server::{Setup, TestServer},
    stub_model::StubModel,
};
use tokio::net::TcpListener;

/// Where the model is, such as `http://127.0.0.1:8080/v1`.
const ADDRESS: &str = "REMIT_TEST_REAL_MODEL_URL";
/// A small model on a busy machine is slow.
const PATIENCE: Duration = Duration::from_secs(900);
/// No reply needs more.
const TOKENS_MAX: u32 = 200;
/// The beginning of the system text, which says who is asked.
const SYSTEM_CHARS_MAX: usize = 300;

/// The model's address; without one the test says why it is skipped.
fn address() -> Option<String> {
    let address = std::env::var(ADDRESS).ok().filter(|address| !address.is_empty());
    if address.is_none() {
        eprintln!("skipped: {ADDRESS} names no server with a real model; see tests/scripts/real-model.sh");
    }
    address
}

fn settings(base_url: String) -> ModelSettings {
    ModelSettings {
        base_url: Some(base_url),
        max_tokens: Some(TOKENS_MAX),
        temperature: Some(0.0),
        request_timeout_seconds: 600,
        first_byte_timeout_seconds: 600,
        chunk_timeout_seconds: 120,
        ..ModelSettings::new("real", Provider::Openai)
    }
}

/// Passes requests on, each with one tool that must be called at first, and with none after that.
async fn proxy(to: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let state = Arc::new((to, reqwest::Client::builder().no_proxy().build().unwrap()));
    let routes = Router::new().route("/v1/chat/completions", post(pass_on)).with_state(state);
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    address
}

async fn pass_on(State(state): State<Arc<(String, reqwest::Client)>>, body: Bytes) -> Response {
    let (to, http) = &*state;
    let steered = steered(serde_json::from_slice(&body).unwrap());
    let answer = http.post(format!("{to}/chat/completions")).json(&steered).send().await.unwrap();
    let (status, kind) = (answer.status(), answer.headers().get("content-type").cloned());
    let stream = futures::stream::unfold(answer, |mut answer| async move {
        answer.chunk().await.transpose().map(|piece| (piece, answer))
    });
    let mut response = Response::new(Body::from_stream(stream));
    *response.status_mut() = status;
    response.headers_mut().extend(kind.map(|kind| (axum::http::header::CONTENT_TYPE, kind)));
    response
}

/// The lead has its task to give, and the subagent has to look.
fn steered(mut body: Value) -> Value {
    let messages = body["messages"].as_array().unwrap();
    let is_answered = messages.last().unwrap()["role"] == "tool";
    let is_lead = messages[0]["content"].as_str().unwrap().contains("You are the lead agent");
    let wanted = if is_lead { "task" } else { "ls" };
    let system: String = messages[0]["content"].as_str().unwrap().chars().take(SYSTEM_CHARS_MAX).collect();
    assert!(system.contains("You are"), "{system}");
    body["messages"][0]["content"] = system.into();
    let fields = body.as_object_mut().unwrap();
    let offered = fields.remove("tools").unwrap_or_default();
    let tool = offered.as_array().into_iter().flatten().find(|tool| tool["function"]["name"] == wanted);
    if let Some(mut tool) = tool.cloned().filter(|_| !is_answered) {
        let parameters = match wanted {
            "task" => json!({
                "description": {"type": "string", "maxLength": 40},
                "prompt": {"type": "string", "minLength": 10, "maxLength": 200},
                "subagent_type": {"type": "string", "enum": ["general-purpose"]},
            }),
            _ => json!({"path": {"type": "string", "enum": ["/mnt/user-data/workspace"]}}),
        };
        let required: Vec<&String> = parameters.as_object().unwrap().keys().collect();
        tool["function"]["parameters"] = json!({
            "type": "object", "required": required, "properties": parameters, "additionalProperties": false,
        });
        fields.insert("tools".into(), json!([tool]));
        fields.insert("tool_choice".into(), "required".into());
    }
    body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lead_and_a_subagent_work_on_a_real_model() {
    let Some(real) = address() else { return };
    let settings = settings(proxy(real).await);
    let models = Models::from_settings(&[settings], None, &|_| None).unwrap();
    let unused = StubModel::start(|_| unreachable!("the stub is not configured")).await;
    let server = TestServer::start(Setup { models, ..Setup::with_stub(&unused) }).await;
    let thread_id = server.client.create_thread().await;
    let question = "Delegate one task: look at which files are in the workspace. Then tell me in one line.";
    let reader = server.client.start_and_follow(&thread_id, question).await;
    let frames = reader.rest_within(PATIENCE).await;
    assert_eq!(frames.last().unwrap().event, "end");
    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    let run_id = text(only(&events, "run.start"), "run_id");
    let run = server.client.run(&thread_id, run_id).await;
    println!("{run}");
    assert_eq!(text(&run, "status"), "success", "{run}");
    assert!(!text(&run, "result").is_empty());
    let end = only(&events, "subagent.end");
    assert_eq!(end["content"]["status"], "completed", "{end}");
    let receipt = only(&events, "subagent.receipt");
    assert_eq!(receipt["content"]["tool_name"], "ls", "{receipt}");
    // Every reply was counted.
    let usage = server.client.get("/api/usage?group_by=caller").await.ok();
    println!("{usage}");
    assert_eq!(
        (usage["total"]["at_least"].clone(), usage["total"]["calls"].clone()),
        (json!(false), json!(4))
    );
    assert!(usage["total"]["usage"]["output_tokens"].as_u64().unwrap() > 0);
    assert!(of_type(&events, "llm.error").is_empty());
}

// What `remit models check` stands on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_model_can_be_tried() {
    let Some(real) = address() else { return };
    let models = Models::from_settings(&[settings(real)], None, &|_| None).unwrap();
    let model = models.get("real").unwrap();
    assert_eq!(model.name(), "real");
    let probe = probe(&*model).await;
    println!("{probe:?}");
    let answer = probe.answer.unwrap();
    assert!(answer.pieces > 1 && !answer.text.is_empty(), "{answer:?}");
    assert!(
        answer.usage.is_some_and(|usage| usage.input_tokens > 0 && usage.output_tokens > 0),
        "{answer:?}"
    );
    // Whether a small model calls the tool is up to it; that it can be asked is not.
    assert!(probe.tool_call.unwrap().is_ok());
}
