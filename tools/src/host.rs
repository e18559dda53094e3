//! A data folder in which this process itself makes things happen: the log, and a runtime on it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use domain::{
    event::Logged,
    ids::{RunId, ThreadId},
};
use eventlog::{EventLog, Seq, StreamId, SubscribeFrom, Subscription};
use futures::future::BoxFuture;
use runtime::{
    CreateThreadError, NewThread, RunRequest, Runtime, RuntimeParts, StartRunError, SystemClock, SystemIds,
    config::Config,
    models::{Models, offline::OfflineModel},
};

use crate::{
    failure::{Exit, Failure},
    progress::watch::{Seen, Watched},
    source::{open_log, open_views},
};

/// Events that are read at once when the run has ended.
const LAST_EVENTS: usize = 256;

/// An open data folder with a runtime.
pub(crate) struct Host {
    /// Where the folder is.
    pub(crate) data: PathBuf,
    /// The truth.
    pub(crate) log: EventLog,
    /// What makes things happen.
    pub(crate) runtime: Runtime,
}

/// The demo's scripted model. Everybody has it, so that a demo that was cut off can go on anywhere.
pub(crate) const DEMO_MODEL: &str = "offline-demo";

/// Every model that the configuration names, and the demo's.
pub(crate) fn models(config: &Config) -> anyhow::Result<Models> {
    let environment = |name: &str| std::env::var(name).ok();
    let models = Models::from_settings(&config.models, config.default_model.as_deref(), &environment)
        .map_err(anyhow::Error::new)
        .context(Failure::usage("could not set up the models"))?;
    if models.get(DEMO_MODEL).is_ok() { Ok(models) } else { Ok(models.with(demo_model()?)) }
}

/// The scripted model of the demo.
pub(crate) fn demo_model() -> anyhow::Result<OfflineModel> {
    OfflineModel::demo(DEMO_MODEL).context("could not load the demo's scenario")
}

impl Host {
    /// Opens the folder, and makes it if it is not there.
    pub(crate) async fn open(config: Config, models: Models) -> anyhow::Result<Self> {
        let data = config.log.path.clone();
        let log = open_log(&config).await?;
        let parts = RuntimeParts {
            log: log.clone(),
            config,
            models,
            data_folder: data.clone(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
        };
        let runtime = Runtime::new(parts).context("could not make a runtime")?;
        Ok(Self { data, log, runtime })
    }

    /// Makes a thread whose workspace is a folder of the person, or one of its own.
    pub(crate) async fn create_thread(&self, workspace: Option<&Path>) -> anyhow::Result<ThreadId> {
        let workspace = workspace.map(existing_folder).transpose()?;
        let made = self.runtime.create_thread(NewThread { workspace, ..NewThread::default() }).await;
        made.map_err(|error| match error {
            CreateThreadError::Workspace { .. } => {
                anyhow::Error::new(error).context(Failure::usage("could not use the folder as a workspace"))
            }
            CreateThreadError::Exists(_) | CreateThreadError::Erased(_) | CreateThreadError::Journal(..) => {
                anyhow::Error::new(error).context("could not make a thread")
            }
        })
    }

    /// Starts a run, and watches the thread from there on.
    pub(crate) async fn start(&self, thread_id: &ThreadId, request: RunRequest) -> anyhow::Result<LocalRun> {
        let stream = StreamId::Thread(thread_id.clone());
        let after = self.log.stream_tail(&stream).context("could not read the thread")?.unwrap_or(Seq::ZERO);
        let events = self.log.subscribe(SubscribeFrom::Stream { id: stream, after });
        let run_id = self.runtime.start_run(thread_id, request).await.map_err(refused)?;
        let (runtime, thread, run) = (self.runtime.clone(), thread_id.clone(), run_id.clone());
        // The events say how the run ended; this says that there will be no more of them.
        let end: BoxFuture<'static, ()> = Box::pin(async move { drop(runtime.wait(&thread, &run).await) });
        let runtime = self.runtime.clone();
        Ok(LocalRun {
            runtime,
            thread_id: thread_id.clone(),
            run_id,
            events,
            end: Some(end),
            rest: Vec::new(),
        })
    }

    /// Ends what is at work, and releases the folder.
    pub(crate) async fn close(self) {
        self.runtime.shutdown().await;
        drop(self.runtime);
        self.log.close().await;
    }

    /// Closes after what was done here. After an error nothing is waited for: somebody may have
    /// given up, and what is not recorded is redone or ended by the next start.
    pub(crate) async fn close_after<T>(self, outcome: anyhow::Result<T>) -> anyhow::Result<T> {
        if outcome.is_ok() {
            self.close().await;
        }
        outcome
    }

    /// The views of the folder, up to date.
    pub(crate) fn views(&self) -> anyhow::Result<projections::Projections> {
        open_views(&self.data, &self.log)
    }
}

/// A start that was refused, with its exit code.
fn refused(error: StartRunError) -> anyhow::Error {
    let exit = match &error {
        StartRunError::UnknownThread(_) | StartRunError::Erased(_) | StartRunError::RunErased(_) => {
            Exit::NotFound
        }
        StartRunError::ActiveRun(_) | StartRunError::RunExists(_) | StartRunError::ShuttingDown => {
            Exit::Refused
        }
        StartRunError::UnknownModel(_)
        | StartRunError::NoInput
        | StartRunError::InputTooLong { .. }
        | StartRunError::ImagesTooLarge { .. } => Exit::Usage,
        StartRunError::Folders { .. }
        | StartRunError::History { .. }
        | StartRunError::Definitions(_)
        | StartRunError::Journal(_) => {
            return anyhow::Error::new(error).context("could not start the run");
        }
    };
    anyhow::Error::new(error).context(Failure::new(exit, "could not start the run"))
}

/// The folder's path, if it is a folder.
pub(crate) fn existing_folder(path: &Path) -> anyhow::Result<PathBuf> {
    let shown = path.display();
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(path.to_owned()),
        Ok(_) => Err(Failure::usage(format!("{shown} is not a folder")).into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Failure::not_found(format!("there is no folder {shown}")).into())
        }
        Err(error) => Err(error).with_context(|| format!("could not look at {shown}")),
    }
}

/// A run that this process works on.
pub(crate) struct LocalRun {
    runtime: Runtime,
    thread_id: ThreadId,
    /// The run.
    pub(crate) run_id: RunId,
    events: Subscription,
    /// Ready when the run has ended; gone once it was.
    end: Option<BoxFuture<'static, ()>>,
    /// What was recorded before the end was noticed, the next event last.
    rest: Vec<Logged>,
}

impl Watched for LocalRun {
    async fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        let event = |event| Seen::Event(Box::new(event));
        loop {
            let Some(end) = &mut self.end else { return Ok(self.rest.pop().map(event)) };
            tokio::select! {
                biased;
                next = self.events.next() => {
                    if let Some(next) = known(&next.context("could not follow the run")?) {
                        return Ok(Some(event(next)));
                    }
                }
                () = end => {
                    self.end = None;
                    loop {
                        let page =
                            self.events.try_next_page(LAST_EVENTS).context("could not follow the run")?;
                        if page.is_empty() {
                            break;
                        }
                        self.rest.extend(page.iter().filter_map(known));
                    }
                    self.rest.reverse();
                }
            }
        }
    }

    async fn cancel(&mut self) -> anyhow::Result<()> {
        // A run that has just ended needs no cancelling; its events say how it ended.
        drop(self.runtime.cancel_run(&self.thread_id, &self.run_id).await);
        Ok(())
    }
}

/// The event as a fact; one that cannot be read changes no line.
fn known(event: &eventlog::RecordedEvent) -> Option<Logged> {
    match eventlog::decode(event) {
        Ok(event) => Some(event),
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "an event cannot be shown");
            None
        }
    }
}
