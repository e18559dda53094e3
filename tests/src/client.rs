//! A client of the server, as any program would write it.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    sse::SseReader,
    wait::{self, PATIENCE},
};

/// Rows that a client asks for at once.
const PAGE: usize = 500;

/// Speaks to one server.
#[derive(Debug, Clone)]
pub struct Client {
    /// Its address, without a slash at the end.
    pub base: String,
    http: reqwest::Client,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The status.
    pub status: u16,
    /// The media type.
    pub content_type: String,
    /// The body; null when it is empty or not JSON.
    pub body: Value,
}

impl Answered {
    /// The body of a success.
    #[track_caller]
    pub fn ok(self) -> Value {
        assert!((200..300).contains(&self.status), "{self:?}");
        self.body
    }

    /// What is wrong, in the server's words.
    pub fn detail(&self) -> &str {
        self.body["detail"].as_str().unwrap_or_default()
    }
}

impl Client {
    /// A client of the server at this address.
    pub fn new(base: &str) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { base: base.trim_end_matches('/').to_owned(), http }
    }

    /// A request to be finished by the caller.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }

    /// Sends a request that was finished.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answered {
        let response = wait::within(PATIENCE, "an answer", request.send()).await.unwrap();
        let status = response.status();
        let content_type = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        let bytes = wait::within(PATIENCE, "a body", response.bytes()).await.unwrap();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Answered { status: status.as_u16(), content_type, body }
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answered {
        self.send(self.request(Method::GET, path)).await
    }

    /// POST with a JSON body.
    pub async fn post(&self, path: &str, body: &Value) -> Answered {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// Makes a thread.
    pub async fn create_thread(&self) -> String {
        let thread = self.post("/api/threads", &json!({})).await.ok();
        thread["thread_id"].as_str().unwrap().to_owned()
    }

    /// Starts a run that says this.
    pub async fn start_run(&self, thread_id: &str, text: &str) -> String {
        self.start_run_with(thread_id, text, json!({})).await
    }

    /// Starts a run with these configurable keys.
    pub async fn start_run_with(&self, thread_id: &str, text: &str, configurable: Value) -> String {
        let path = format!("/api/threads/{thread_id}/runs");
        let run = self.post(&path, &run_body(text, configurable)).await.ok();
        run["run_id"].as_str().unwrap().to_owned()
    }

    /// Waits for the run's end and gives its record.
    pub async fn ended(&self, thread_id: &str, run_id: &str) -> Value {
        let what = format!("run {run_id} has ended");
        wait::until_answer(&what, || async {
            let run = self.run(thread_id, run_id).await;
            let status = run["status"].as_str().unwrap();
            (!["pending", "running"].contains(&status)).then_some(run)
        })
        .await
    }

    /// A thread with a run on it that has ended: the thread's id and the run's record.
    pub async fn run_to_end(&self, text: &str) -> (String, Value) {
        let thread_id = self.create_thread().await;
        let run_id = self.start_run(&thread_id, text).await;
        let run = self.ended(&thread_id, &run_id).await;
        (thread_id, run)
    }

    /// A run, with all that is recorded of it by now.
    pub async fn run(&self, thread_id: &str, run_id: &str) -> Value {
        self.get(&format!("/api/threads/{thread_id}/runs/{run_id}")).await.ok()
    }

    /// All events of a run, page by page.
    pub async fn events(&self, thread_id: &str, run_id: &str) -> Vec<Value> {
        self.all_events(&format!("/api/threads/{thread_id}/runs/{run_id}/events")).await
    }

    /// All events of a thread, page by page.
    pub async fn thread_events(&self, thread_id: &str) -> Vec<Value> {
        self.all_events(&format!("/api/threads/{thread_id}/events")).await
    }

    async fn all_events(&self, path: &str) -> Vec<Value> {
        let mut events: Vec<Value> = Vec::new();
        loop {
            let after = events.last().map(|last| format!("&after_seq={}", last["seq"])).unwrap_or_default();
            let page = self.get(&format!("{path}?limit={PAGE}{after}")).await.ok();
            let page = page.as_array().unwrap();
            events.extend(page.iter().cloned());
            if page.len() < PAGE {
                return events;
            }
        }
    }

    /// The ledger of a thread, up to this event at least.
    pub async fn ledger(&self, thread_id: &str, min_seq: u64) -> Vec<Value> {
        let path = format!("/api/threads/{thread_id}/delegations?min_seq={min_seq}");
        self.get(&path).await.ok().as_array().unwrap().clone()
    }

    /// A card, up to this event at least.
    pub async fn card(&self, thread_id: &str, run_id: &str, task_id: &str, min_seq: u64) -> Value {
        self.get(&format!("/api/threads/{thread_id}/runs/{run_id}/tasks/{task_id}/card?min_seq={min_seq}"))
            .await
            .ok()
    }

    /// Cancels a run and gives the status of the answer.
    pub async fn cancel(&self, thread_id: &str, run_id: &str) -> u16 {
        self.post(&format!("/api/threads/{thread_id}/runs/{run_id}/cancel"), &json!({})).await.status
    }

    /// Follows a run, after this event if one is named.
    pub async fn follow(&self, thread_id: &str, run_id: &str, last_event_id: Option<&str>) -> SseReader {
        let mut request =
            self.request(Method::GET, &format!("/api/threads/{thread_id}/runs/{run_id}/stream"));
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        self.stream(request).await
    }

    /// Starts a run and follows it in one request.
    pub async fn start_and_follow(&self, thread_id: &str, text: &str) -> SseReader {
        let path = format!("/api/threads/{thread_id}/runs/stream");
        self.stream(self.request(Method::POST, &path).json(&run_body(text, json!({})))).await
    }

    async fn stream(&self, request: reqwest::RequestBuilder) -> SseReader {
        let response = wait::within(PATIENCE, "a stream", request.send()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        SseReader::new(response)
    }
}

/// The body that starts a run.
pub fn run_body(text: &str, configurable: Value) -> Value {
    json!({
        "assistant_id": "lead",
        "input": {"messages": [{"role": "user", "content": text}]},
        "config": {"configurable": configurable},
    })
}
