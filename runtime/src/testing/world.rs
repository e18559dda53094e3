//! A runtime with a scripted model and a log in memory, and what a test wants to know of it.

#![expect(clippy::wildcard_enum_match_arm, reason = "tests look for one kind of event among all")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use domain::{
    agent::AgentEvent,
    event::{
        DelegationEvent, Event, Logged, RunEvent, RunStatus, RunStatusChanged, Scope, SubagentEnded,
        SubagentEvent,
    },
    ids::{DelegationId, RunId, ThreadId, ToolCallId},
    ledger::LedgerEntry,
    message::{HumanMessage, ToolMessage},
};
use eventlog::{EventLog, Options, Position};
use tempfile::TempDir;

use super::{pauses::TestPauses, script::Script};
use crate::{
    Clock, Runtime, RuntimeParts, SystemClock, SystemIds,
    config::Config,
    models::{Models, retry::RetryPolicy},
    request::{NewThread, RunRequest},
    tools::{Tool, Toolbox},
};

/// The longest that anything in a test may take, in real time.
const PATIENCE: Duration = Duration::from_secs(30);
/// More events than any test records.
const ALL: usize = 1_000_000;

/// What a world is made of.
pub(crate) struct Setup {
    pub(crate) config: Config,
    pub(crate) models: Models,
    pub(crate) script: Script,
    pub(crate) log: EventLog,
    pub(crate) pauses: TestPauses,
    pub(crate) toolbox: Toolbox,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Setup {
    pub(crate) fn new(script: Script) -> Self {
        Self {
            config: Config::default(),
            models: Models::of(script.clone()),
            script,
            log: EventLog::in_memory(Options::default()),
            pauses: TestPauses::Skipped,
            toolbox: Toolbox::builtin(),
            clock: Arc::new(SystemClock),
        }
    }

    pub(crate) fn config(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    pub(crate) fn model(mut self, model: &Script) -> Self {
        self.models = self.models.with(model.clone());
        self
    }

    pub(crate) fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.toolbox = self.toolbox.with(Arc::new(tool));
        self
    }

    pub(crate) fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    pub(crate) fn models(mut self, models: Models) -> Self {
        self.models = models;
        self
    }

    pub(crate) fn pauses(mut self, pauses: TestPauses) -> Self {
        self.pauses = pauses;
        self
    }

    pub(crate) fn log(mut self, log: EventLog) -> Self {
        self.log = log;
        self
    }

    /// The runtime alone, as after a restart.
    pub(crate) fn runtime(&self, data: &TempDir) -> Runtime {
        let parts = RuntimeParts {
            log: self.log.clone(),
            config: self.config.clone(),
            models: self.models.clone(),
            data_folder: data.path().to_owned(),
            clock: Arc::clone(&self.clock),
            ids: Arc::new(SystemIds),
        };
        Runtime::with_toolbox(parts, RetryPolicy::default(), Arc::new(self.pauses), self.toolbox.clone())
    }

    /// A runtime with one thread.
    pub(crate) async fn build(self) -> World {
        let data = tempfile::tempdir().unwrap();
        let runtime = self.runtime(&data);
        let thread = runtime.create_thread(NewThread::default()).await.unwrap();
        World { runtime, thread, script: self.script, log: self.log, data }
    }
}

/// A runtime with one thread.
pub(crate) struct World {
    pub(crate) runtime: Runtime,
    pub(crate) thread: ThreadId,
    pub(crate) script: Script,
    pub(crate) log: EventLog,
    pub(crate) data: TempDir,
}

/// A request in these words.
pub(crate) fn request(text: &str) -> RunRequest {
    RunRequest::saying(vec![HumanMessage { content: text.to_owned(), id: None, images: Vec::new() }])
}

/// Everything in the log, in order. A page is bounded by bytes, too.
pub(crate) fn facts_of(log: &EventLog) -> Vec<Logged> {
    let (mut facts, mut after) = (Vec::new(), Position::ZERO);
    loop {
        let page = log.read_all(after, ALL).unwrap();
        let Some(last) = page.last() else { return facts };
        after = last.position;
        facts.extend(page.iter().map(|event| eventlog::decode(event).unwrap()));
    }
}

impl World {
    pub(crate) async fn start(&self, text: &str) -> RunId {
        self.runtime.start_run(&self.thread, request(text)).await.unwrap()
    }

    /// Waits for the run's end.
    pub(crate) async fn wait(&self, run: &RunId) -> RunStatus {
        self.done(self.runtime.wait(&self.thread, run)).await.unwrap()
    }

    /// Starts a run and waits for its end.
    pub(crate) async fn run(&self, text: &str) -> RunStatus {
        let run = self.start(text).await;
        self.wait(&run).await
    }

    /// Waits for a future, in real time.
    pub(crate) async fn done<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        let since = Instant::now();
        loop {
            match futures::poll!(future.as_mut()) {
                std::task::Poll::Ready(value) => return value,
                std::task::Poll::Pending => self.pass("the future", since).await,
            }
        }
    }

    /// Waits until something is so, in real time: a paused clock does not end it.
    pub(crate) async fn until(&self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        let since = Instant::now();
        while !is_so(self) {
            self.pass(what, since).await;
        }
    }

    /// Waits until this many events of the type are recorded.
    pub(crate) async fn until_recorded(&self, event_type: &str, count: usize) {
        self.until(event_type, |world| world.count(event_type) >= count).await;
    }

    async fn pass(&self, what: &str, since: Instant) {
        if since.elapsed() > PATIENCE {
            panic!("{what} did not come to pass; recorded: {:#?}", self.types());
        }
        // Hands the processor to the log's writer as well.
        std::thread::yield_now();
        tokio::task::yield_now().await;
    }

    pub(crate) fn facts(&self) -> Vec<Logged> {
        facts_of(&self.log)
    }

    pub(crate) fn types(&self) -> Vec<String> {
        self.facts().iter().map(|fact| fact.event.event_type().to_owned()).collect()
    }

    pub(crate) fn count(&self, event_type: &str) -> usize {
        let recorded = self.log.read_all(Position::ZERO, ALL).unwrap();
        recorded.iter().filter(|event| event.event_type == event_type).count()
    }

    /// The ends of all delegations, in the order in which they were recorded.
    pub(crate) fn ends(&self) -> Vec<SubagentEnded> {
        let end = |fact: Logged| match fact.event {
            Event::Subagent(SubagentEvent::Ended(end)) => Some(end),
            _ => None,
        };
        self.facts().into_iter().filter_map(end).collect()
    }

    /// What the lead's tool calls returned, in the order in which they were recorded.
    pub(crate) fn results(&self) -> Vec<ToolMessage> {
        results_of(&self.facts())
    }

    /// The ledger's entries, oldest first.
    pub(crate) fn ledger(&self) -> Vec<LedgerEntry> {
        ledger_of(&self.facts())
    }

    /// What the run's state became at last.
    pub(crate) fn last_status(&self) -> RunStatusChanged {
        let changed = |fact: Logged| match fact.event {
            Event::Run(RunEvent::StatusChanged(changed)) => Some(changed),
            _ => None,
        };
        self.facts().into_iter().rev().find_map(changed).unwrap()
    }

    /// The scope of the delegation with this task id.
    pub(crate) fn scope_of(&self, task_id: &str) -> Scope {
        let wanted = ToolCallId::new(task_id).unwrap();
        let named = |fact: &Logged| {
            fact.scope.task_id.as_ref() == Some(&wanted)
                && matches!(fact.event, Event::Delegation(DelegationEvent::Requested(_)))
        };
        self.facts().into_iter().find(named).unwrap().scope
    }

    /// The delegation's events after its end: there must be none but its delivery.
    #[track_caller]
    pub(crate) fn check_ended_once(&self) {
        check_ended_once(&self.facts());
    }

    /// The same, where a run was erased and its events say nothing any more.
    #[track_caller]
    pub(crate) fn check_ended_once_but_for(&self, erased: &RunId) {
        let recorded = self.log.read_all(Position::ZERO, ALL).unwrap();
        let readable =
            recorded.iter().filter(|event| event.stream.thread_id().is_some() && !event.is_erased());
        let facts: Vec<_> = readable.map(|event| eventlog::decode(event).unwrap()).collect();
        assert!(facts.iter().all(|fact| fact.scope.run_id.as_ref() != Some(erased)));
        check_ended(&facts);
    }

    /// Nobody holds a slot or waits for one.
    pub(crate) async fn until_idle(&self) {
        self.until("an idle gate", |world| {
            let capacity = world.runtime.capacity();
            (capacity.running, capacity.queued) == (0, 0)
        })
        .await;
    }
}

pub(crate) fn results_of(facts: &[Logged]) -> Vec<ToolMessage> {
    let result = |fact: &Logged| match AgentEvent::of_lead(&fact.event) {
        Some(AgentEvent::Said(message)) => match *message {
            domain::message::Message::Tool(result) => Some(result),
            _ => None,
        },
        _ => None,
    };
    facts.iter().filter_map(result).collect()
}

pub(crate) fn ledger_of(facts: &[Logged]) -> Vec<LedgerEntry> {
    let mut entries: Vec<LedgerEntry> = Vec::new();
    for fact in facts.iter().filter(|fact| fact.scope.delegation_id.is_some()) {
        let known = entries.iter().position(|entry| Some(entry.delegation_id) == fact.scope.delegation_id);
        let before = known.map(|at| entries[at].clone());
        match (known, LedgerEntry::fold(before, fact)) {
            (Some(at), Some(entry)) => entries[at] = entry,
            (None, Some(entry)) => entries.push(entry),
            (_, None) => {}
        }
    }
    entries
}

/// Every delegation and every run has exactly one terminal event, nothing of its work comes after
/// it, and seqs have no gap.
#[track_caller]
pub(crate) fn check_ended_once(facts: &[Logged]) {
    let mut seqs: std::collections::BTreeMap<ThreadId, u64> = Default::default();
    for fact in facts {
        let seq = seqs.entry(fact.thread_id.clone()).or_default();
        *seq += 1;
        assert_eq!(fact.seq, *seq, "seqs have no gap");
    }
    check_ended(facts);
}

#[track_caller]
fn check_ended(facts: &[Logged]) {
    let mut open: std::collections::BTreeMap<DelegationId, bool> = Default::default();
    let mut ended_runs = std::collections::BTreeSet::new();
    for fact in facts {
        if let Some(run) = &fact.scope.run_id {
            assert!(!ended_runs.contains(run), "{} after the end of run {run}", fact.event.event_type());
        }
        match (&fact.event, fact.scope.delegation_id) {
            (Event::Delegation(DelegationEvent::Requested(_)), Some(id)) => {
                assert_eq!(open.insert(id, true), None, "{id} was requested twice");
            }
            (
                Event::Subagent(SubagentEvent::Ended(_)) | Event::Delegation(DelegationEvent::Refused(_)),
                Some(id),
            ) => assert_ne!(open.insert(id, false), Some(false), "{id} ended twice"),
            (Event::Subagent(_), Some(id)) => {
                assert_eq!(
                    open.get(&id),
                    Some(&true),
                    "{} of {id} while it does not run",
                    fact.event.event_type()
                );
            }
            (Event::Run(RunEvent::StatusChanged(changed)), None) if changed.status.is_terminal() => {
                ended_runs.extend(fact.scope.run_id.clone());
            }
            _ => {}
        }
    }
    let left: Vec<_> = open.iter().filter(|(_, is_open)| **is_open).collect();
    assert!(left.is_empty(), "without an end: {left:?}");
}
