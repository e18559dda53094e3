//! A model server that does what a script says, over real HTTP with real server-sent events, on
//! loopback: Chat Completions, Anthropic Messages and Gemini's Generate Content, each at its own path.
//! A script need not know which: it reads and answers in the words of Chat Completions.
//!
//! It is as strict about requests as the strictest providers, and as careless about replies as the
//! worst of them; the script chooses how careless. Every request is counted and kept.

mod answer;
mod anthropic;
mod asked;
mod face;
mod frames;
mod gate;
mod gemini;
mod listen;
mod strict;

use std::sync::{Arc, Mutex};

use runtime::models::{ModelSettings, Provider, settings::Secret};

pub use self::{
    answer::{Answer, Call, Cut, Finish, Fragments, IdSent, IndexSent, NameSent, Reply, UsageSent},
    asked::{Asked, Seat},
    face::Face,
    gate::Gate,
    strict::Strictness,
};
use crate::wait;

/// What the stub's key is; it must not turn up anywhere else.
pub const KEY: &str = "sk-stub-0123456789abcdef0123456789";
/// The name under which configurations have the stub.
pub const MODEL_NAME: &str = "stub";

/// Chooses the answer to a request.
pub type Script = Arc<dyn Fn(&Asked) -> Answer + Send + Sync>;

/// What the server and its test share.
struct Shared {
    script: Script,
    strictness: Strictness,
    requests: Mutex<Vec<Asked>>,
    /// What was wrong with the shape of requests.
    faults: Mutex<Vec<String>>,
}

/// A running stub. Dropping it ends the server.
pub struct StubModel {
    address: std::net::SocketAddr,
    shared: Arc<Shared>,
    server: tokio::task::JoinHandle<()>,
}

impl StubModel {
    /// Serves the script.
    pub async fn start(script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_with(Strictness::default(), script).await
    }

    /// Serves the script, with more to be strict about.
    pub async fn start_with(
        strictness: Strictness,
        script: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            script: Arc::new(script),
            strictness,
            requests: Mutex::default(),
            faults: Mutex::default(),
        });
        let (address, server) = listen::listen(Arc::clone(&shared)).await;
        Self { address, shared, server }
    }

    /// What `base_url` has to be.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The stub as a configured model of this name.
    pub fn settings(&self, name: &str) -> ModelSettings {
        self.settings_as(Face::Openai, name)
    }

    /// The stub as a configured model of this provider.
    pub fn settings_as(&self, face: Face, name: &str) -> ModelSettings {
        let (provider, base_url) = match face {
            Face::Openai => (Provider::Openai, self.base_url()),
            Face::Anthropic => (Provider::Anthropic, format!("http://{}", self.address)),
            Face::Gemini => (Provider::Gemini, format!("http://{}", self.address)),
        };
        ModelSettings {
            base_url: Some(base_url),
            model: Some(format!("{name}-of-the-stub")),
            api_key: Some(Secret::new(KEY)),
            ..ModelSettings::new(name, provider)
        }
    }

    /// Every request so far, in the order of arrival.
    pub fn requests(&self) -> Vec<Asked> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Requests so far.
    pub fn count(&self) -> usize {
        self.shared.requests.lock().unwrap().len()
    }

    /// Waits until the requests are so.
    #[track_caller]
    pub fn wait_for(&self, what: &str, is_so: impl Fn(&[Asked]) -> bool) -> impl Future<Output = ()> {
        wait::until(what, move || is_so(&self.shared.requests.lock().unwrap()))
    }

    /// Fails if any request was not in the shape that strict providers ask for.
    #[track_caller]
    pub fn assert_strict(&self) {
        let faults = self.shared.faults.lock().unwrap();
        assert!(faults.is_empty(), "strict providers refuse these requests:\n{}", faults.join("\n"));
    }
}

impl Drop for StubModel {
    fn drop(&mut self) {
        self.server.abort();
    }
}
