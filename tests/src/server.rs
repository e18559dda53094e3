//! The real server in this process: log, views, runtime and routes, on a port of its own.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use api::ApiState;
use eventlog::{EventLog, Options};
use projections::Projections;
use runtime::{
    Runtime, RuntimeParts, SystemClock, SystemIds,
    config::Config,
    models::{Models, RetryPolicy},
};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

use crate::{
    client::Client,
    quick_pauses::QuickPauses,
    stub_model::{Face, StubModel},
};

/// What a server is started with.
pub struct Setup {
    /// What the operator would have written.
    pub config: Config,
    /// The models.
    pub models: Models,
    /// Where the log is; in memory when absent.
    pub log: Option<PathBuf>,
}

impl Setup {
    /// A server whose only model is the stub, with its log in memory.
    pub fn with_stub(stub: &StubModel) -> Self {
        Self::with_models(&[(stub, crate::stub_model::MODEL_NAME)])
    }

    /// A server with several stubs under their names; the first one is the default.
    pub fn with_models(stubs: &[(&StubModel, &str)]) -> Self {
        let settings: Vec<_> = stubs.iter().map(|(stub, name)| stub.settings(name)).collect();
        let models = Models::from_settings(&settings, None, &|_| None).unwrap();
        Self { config: Config::default(), models, log: None }
    }

    /// A server whose only model is the stub, as this provider.
    pub fn with_face(stub: &StubModel, face: Face) -> Self {
        let settings = [stub.settings_as(face, crate::stub_model::MODEL_NAME)];
        let models = Models::from_settings(&settings, None, &|_| None).unwrap();
        Self { config: Config::default(), models, log: None }
    }

    /// Keeps the log in a folder.
    #[must_use]
    pub fn in_folder(self, folder: &Path) -> Self {
        Self { log: Some(folder.to_owned()), ..self }
    }

    /// Changes the configuration.
    #[must_use]
    pub fn configured(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }
}

/// A running server. Dropping it ends it without a stop in good order.
pub struct TestServer {
    /// Speaks to it.
    pub client: Client,
    /// Its log.
    pub log: EventLog,
    /// Its views.
    pub projections: Projections,
    /// What works in it.
    pub runtime: Runtime,
    /// The waits between attempts at a model.
    pub pauses: QuickPauses,
    stop: watch::Sender<bool>,
    served: JoinHandle<()>,
    follower: JoinHandle<()>,
    /// Holds the threads' folders when the log is in memory.
    _folder: tempfile::TempDir,
}

impl TestServer {
    /// Starts the server as `remit serve` does: views, recovery, then the socket.
    pub async fn start(setup: Setup) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let data = setup.log.clone().unwrap_or_else(|| temporary.path().to_owned());
        let (log, projections) = match &setup.log {
            Some(folder) => {
                let log = EventLog::open(folder, Options::default()).unwrap();
                let projections = Projections::open(&folder.join("views"), log.clone()).unwrap();
                (log, projections)
            }
            None => {
                let log = EventLog::in_memory(Options::default());
                let projections = Projections::in_memory(log.clone()).unwrap();
                (log, projections)
            }
        };
        let (config, pauses) = (setup.config.clone(), QuickPauses::default());
        let parts = RuntimeParts {
            log: log.clone(),
            config: setup.config,
            models: setup.models,
            data_folder: data,
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
        };
        let runtime = Runtime::with_pauses(parts, RetryPolicy::default(), Arc::new(pauses.clone())).unwrap();
        Self::serve(log, projections, runtime, &config, pauses, temporary).await
    }

    async fn serve(
        log: EventLog,
        projections: Projections,
        runtime: Runtime,
        config: &Config,
        pauses: QuickPauses,
        folder: tempfile::TempDir,
    ) -> Self {
        let (stop, stopping) = watch::channel(false);
        let until = |mut stopping: watch::Receiver<bool>| async move {
            drop(stopping.wait_for(|stop| *stop).await);
        };
        let follower = projections.follow(until(stopping.clone()));
        runtime.recover(config.recovery).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = ApiState {
            log: log.clone(),
            projections: projections.clone(),
            runtime: runtime.clone(),
            prices: config.pricing.prices(),
            config: Vec::new(),
            listen: address.ip(),
        };
        let shutdown = until(stopping);
        let served = tokio::spawn(async move { api::serve(listener, state, shutdown).await.unwrap() });
        let client = Client::new(&format!("http://{address}"));
        Self { client, log, projections, runtime, pauses, stop, served, follower, _folder: folder }
    }

    /// Stops as `remit serve` does at a signal, and releases the folder.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        self.served.await.unwrap();
        self.runtime.shutdown().await;
        drop(self.runtime);
        self.follower.await.unwrap();
        drop(self.projections);
        self.log.close().await;
    }
}
