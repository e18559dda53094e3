//! A server without a socket.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Method, Request, StatusCode, header},
};
use domain::pricing::{Price, Prices, Rate};
use eventlog::EventLog;
use projections::Projections;
use runtime::{
    Runtime, RuntimeParts, SystemClock, SystemIds,
    config::{Config, Entry, Provenance},
    models::{Models, OfflineModel},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt as _;

use crate::{ApiState, router, state::Server, testing};

/// A lead that delegates once, and a subagent that looks and reports.
const DELEGATES: &str = r#"
agents:
  - agent: lead
    turns:
      - say: I delegate.
        calls:
          - tool: task
            args: { description: Look around, subagent_type: general-purpose, prompt: List the folder. }
      - say: All done.
  - agent: "*"
    turns:
      - say: I look.
        calls:
          - tool: ls
            args: { path: /mnt/user-data/workspace }
      - say: "Nothing there [r1 ls]."
"#;

/// A lead that is not heard of for a minute.
const THINKS: &str = r#"
agents:
  - agent: lead
    turns:
      - say: Done thinking.
        pause_ms: 60000
"#;

/// A lead whose subagent is not heard of for a minute.
const WAITS: &str = r#"
agents:
  - agent: lead
    turns:
      - say: I delegate.
        calls:
          - tool: task
            args: { description: Wait, subagent_type: general-purpose, prompt: Wait. }
      - say: All done.
  - agent: "*"
    turns:
      - say: Done waiting.
        pause_ms: 60000
"#;

/// A server and what is behind it.
pub(super) struct App {
    pub(super) log: EventLog,
    pub(super) server: Server,
    router: Router,
    _folder: TempDir,
}

/// An answer, read whole.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Reply {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    pub(super) fn header(&self, name: header::HeaderName) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// Checks that this is a problem of this code whose words include these.
    #[track_caller]
    pub(super) fn check_problem(&self, status: u16, code: &str, words: &str) {
        let problem = self.json();
        assert_eq!((self.status.as_u16(), &problem["code"]), (status, &json!(code)), "{self:?}");
        assert_eq!(self.header(header::CONTENT_TYPE), "application/problem+json");
        assert_eq!(problem["status"], status);
        assert_eq!(problem["type"], format!("urn:remit:problem:{code}"));
        assert!(problem["detail"].as_str().unwrap().contains(words), "{problem} does not say {words:?}");
    }
}

impl App {
    /// Over a log of the test's own, with views that follow it.
    pub(super) fn new() -> Self {
        let app = Self::over(testing::log(), DELEGATES);
        drop(app.server.projections.follow(std::future::pending()));
        app
    }

    /// With a lead that is at work until it is cancelled.
    pub(super) fn thinking() -> Self {
        let app = Self::over(testing::log(), THINKS);
        drop(app.server.projections.follow(std::future::pending()));
        app
    }

    /// With a subagent that is at work until it is cancelled.
    pub(super) fn waiting() -> Self {
        let app = Self::over(testing::log(), WAITS);
        drop(app.server.projections.follow(std::future::pending()));
        app
    }

    /// With views that nobody brings along.
    pub(super) fn without_followers() -> Self {
        Self::over(testing::log(), DELEGATES)
    }

    pub(super) fn on(log: EventLog) -> Self {
        Self::over(log, DELEGATES)
    }

    fn over(log: EventLog, scenario: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.log.path = folder.path().join("data");
        let runtime = Runtime::new(RuntimeParts {
            log: log.clone(),
            config,
            models: Models::of(OfflineModel::from_yaml("offline", scenario).unwrap()),
            data_folder: folder.path().to_owned(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
        })
        .unwrap();
        let projections = Projections::in_memory(log.clone()).unwrap();
        let listen = "127.0.0.1".parse().unwrap();
        let config = vec![Entry {
            key: "subagents.max_total_per_run".to_owned(),
            value: json!(6),
            provenance: Provenance::Env { name: "REMIT__SUBAGENTS__MAX_TOTAL_PER_RUN".to_owned() },
        }];
        let server = Server::new(ApiState {
            log: log.clone(),
            projections,
            runtime,
            prices: prices(),
            config,
            listen,
        });
        Self { log, router: router::routes(&server), server, _folder: folder }
    }

    pub(super) async fn get(&self, path: &str) -> Reply {
        self.send(request(Method::GET, path, None)).await
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> Reply {
        self.send(request(Method::POST, path, Some(&body))).await
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.open(request).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        Reply { status, headers, text: String::from_utf8(body.to_vec()).unwrap() }
    }

    /// The answer with its body still to come.
    pub(super) async fn open(&self, request: Request<Body>) -> axum::response::Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// Makes a thread.
    pub(super) async fn thread(&self, thread_id: &str) {
        let reply = self.post("/api/threads", json!({"thread_id": thread_id})).await;
        assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
    }

    /// Starts a run and gives its id.
    pub(super) async fn start(&self, thread_id: &str) -> String {
        let reply = self.post(&format!("/api/threads/{thread_id}/runs"), saying("go")).await;
        assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
        reply.json()["run_id"].as_str().unwrap().to_owned()
    }

    /// Runs to the end and gives the run's record.
    pub(super) async fn run(&self, thread_id: &str) -> Value {
        let reply = self.post(&format!("/api/threads/{thread_id}/runs/wait"), saying("go")).await;
        assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
        reply.json()
    }
}

/// The offline model costs two for a million tokens that are sent, and eight for those that come back.
fn prices() -> Prices {
    let rate = |price| Rate::per_million(price).unwrap();
    let price = Price { input: rate(2.0), output: rate(8.0), cached_input: None };
    Prices { currency: "USD".into(), by_model: BTreeMap::from([("offline".to_owned(), price)]) }
}

pub(super) fn request(method: Method, path: &str, body: Option<&Value>) -> Request<Body> {
    let builder = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
    match body {
        Some(body) => {
            builder.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_string()))
        }
        None => builder.body(Body::empty()),
    }
    .unwrap()
}

/// A run request.
pub(super) fn saying(text: &str) -> Value {
    json!({"assistant_id": "lead", "input": {"messages": [{"role": "user", "content": text}]}})
}
