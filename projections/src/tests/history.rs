//! Random histories, made by the deciders, so that they are such as can happen.

mod mishaps;

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use domain::{
    decider::Decider,
    delegation::{Delegation, DelegationCommand, DelegationEnding},
    event::{
        CancelReason, ErasureReason, ErasureRequested, Event, ForeignEvent, Logged, ModelEvent, ModelRetried,
        RefusalReason, RegistryEvent, RunErased, RunEvent, ThreadCreated, ThreadEvent,
    },
    ids::{DelegationId, ErasureId, EventId, RunId, ThreadId, ToolCallId, UserId},
    message::Message,
    run::{Run, RunCommand, RunEnding},
};
use eventlog::{Append, EventLog, Expected, Json, NewEvent, Options, Position, Scope, Seq, StreamId};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, json};
use uuid::Uuid;

use super::payloads::{
    cap, delegation_ending, delivery, recorded, refusal, reply, request, run_ending, settings,
};

/// One thing that may happen. What it comes to depends on what has happened before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Op {
    pub(super) kind: u8,
    pub(super) pick: u8,
    pub(super) variant: u8,
}

/// How many kinds of things may happen.
const KINDS: u8 = 26;
/// The same with the erasure of runs and threads.
const KINDS_WITH_ERASURES: u8 = 27;
const THREADS: u8 = 3;
/// Few, so that they repeat within a run.
const TASKS: u8 = 4;

pub(super) fn ops(count: usize) -> impl Strategy<Value = Vec<Op>> {
    ops_of(KINDS, count)
}

/// The same with the erasure of runs and threads.
pub(super) fn ops_and_erasures(count: usize) -> impl Strategy<Value = Vec<Op>> {
    ops_of(KINDS_WITH_ERASURES, count)
}

fn ops_of(kinds: u8, count: usize) -> impl Strategy<Value = Vec<Op>> {
    let op = (0..kinds, any::<u8>(), any::<u8>());
    proptest::collection::vec(op.prop_map(|(kind, pick, variant)| Op { kind, pick, variant }), 0..count)
}

/// A log and what is going on in it.
pub(super) struct World {
    pub(super) log: EventLog,
    runtime: tokio::runtime::Runtime,
    ids: u128,
    runs: Vec<SimulatedRun>,
    erased: Vec<ThreadId>,
    told_by_others: Vec<RunId>,
    /// The log's head when a run was last erased.
    erased_at: Position,
}

struct SimulatedRun {
    thread_id: ThreadId,
    run_id: RunId,
    run: Run,
    delegations: Vec<SimulatedDelegation>,
    /// Nothing can be recorded for it any more.
    is_erased: bool,
}

struct SimulatedDelegation {
    scope: Scope,
    task_id: ToolCallId,
    delegation: Delegation,
}

pub(super) fn thread_id(number: u8) -> ThreadId {
    ThreadId::new(format!("t{}", number % THREADS)).unwrap()
}

pub(super) fn task_id(number: u8) -> ToolCallId {
    ToolCallId::new(format!("call_{}", number % TASKS)).unwrap()
}

pub(super) fn all_threads() -> impl Iterator<Item = ThreadId> {
    (0..THREADS).map(thread_id)
}

pub(super) fn all_tasks() -> impl Iterator<Item = ToolCallId> {
    (0..TASKS).map(task_id)
}

/// A log in memory whose clock moves by a second with every look at it.
pub(super) fn log() -> EventLog {
    let seconds = AtomicI64::new(0);
    let tick = move || Timestamp::from_second(seconds.fetch_add(1, Ordering::SeqCst)).unwrap();
    EventLog::in_memory(Options::new(Arc::new(tick)))
}

impl World {
    pub(super) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Self {
            log: log(),
            runtime,
            ids: 0,
            runs: Vec::new(),
            erased: Vec::new(),
            told_by_others: Vec::new(),
            erased_at: Position::ZERO,
        }
    }

    pub(super) fn of(ops: &[Op]) -> Self {
        let mut world = Self::new();
        for op in ops {
            world.happen(*op);
        }
        world
    }

    /// Lets something happen, if it can.
    pub(super) fn happen(&mut self, op: Op) {
        match op.kind {
            0 => self.create_thread(op),
            1 | 2 => self.start_run(op),
            3 => self.decide_run(op, |_| RunCommand::Begin),
            4 => self.record_of_run(op, Event::Model(ModelEvent::AiResponse(reply(op.variant)))),
            5 => self.end_run(op, run_ending(op.variant)),
            6 | 7 => self.request_delegation(op),
            8 => self.decide_delegation(op, |_, _| DelegationCommand::Queue { place: 1 }),
            9 | 10 => self.decide_delegation(op, |_, _| DelegationCommand::Admit { waited_ms: 5 }),
            11 | 12 => self.decide_delegation(op, |_, variant| recorded(variant)),
            13 => self.decide_delegation(op, |_, variant| DelegationCommand::Cap(cap(variant))),
            14 => self.decide_delegation(op, |_, variant| match variant % 6 {
                0 => DelegationCommand::Refuse(refusal(task_id(0), RefusalReason::QueueTimeout)),
                _ => DelegationCommand::End(delegation_ending(variant)),
            }),
            15 => self.decide_delegation(op, |task, variant| {
                DelegationCommand::Deliver(delivery(task.clone(), variant))
            }),
            16 => self.record_of_run(op, Event::Run(RunEvent::Capped(cap(op.variant)))),
            17 => self.record_oddity(op),
            _ => self.go_wrong(op),
        }
    }

    fn create_thread(&mut self, op: Op) {
        let metadata = Map::from_iter([("variant".to_owned(), json!(op.variant))]);
        let created = ThreadCreated { metadata, workspace: Some("/w".into()) };
        if self.erased.contains(&thread_id(op.pick)) {
            return;
        }
        self.append(thread_id(op.pick), Scope::default(), vec![Event::Thread(ThreadEvent::Created(created))]);
    }

    fn start_run(&mut self, op: Op) {
        let run_id = RunId::new(format!("r{}", self.runs.len())).unwrap();
        let settings = Box::new(settings(&run_id, op.variant));
        let thread_id = thread_id(op.pick);
        if self.erased.contains(&thread_id) {
            return;
        }
        self.runs.push(SimulatedRun {
            thread_id,
            run_id,
            run: Run::default(),
            delegations: Vec::new(),
            is_erased: false,
        });
        let newest = self.runs.len() - 1;
        let input = vec![Message::human("hi")];
        self.command_run(newest, RunCommand::Start { settings, input });
    }

    fn decide_run(&mut self, op: Op, command: fn(u8) -> RunCommand) {
        if let Some(at) = self.pick_run(op) {
            self.command_run(at, command(op.variant));
        }
    }

    /// A run ends with what it has open: its owner closes that first.
    fn end_run(&mut self, op: Op, ending: RunEnding) {
        let Some(at) = self.pick_run(op).filter(|at| self.runs[*at].run.check_open().is_ok()) else { return };
        for of in 0..self.runs[at].delegations.len() {
            let cancel = DelegationEnding::Cancelled(CancelReason::ParentEnded);
            self.command_delegation(at, of, DelegationCommand::End(cancel));
        }
        self.command_run(at, RunCommand::End(ending));
    }

    /// Which run is meant, if anything can be recorded for it.
    fn pick_run(&self, op: Op) -> Option<usize> {
        pick(op.pick, self.runs.len()).filter(|at| !self.runs[*at].is_erased)
    }

    fn command_run(&mut self, at: usize, command: RunCommand) {
        if let Ok(events) = self.runs[at].run.decide(command) {
            let scope = Scope { run_id: Some(self.runs[at].run_id.clone()), ..Scope::default() };
            self.record(at, scope, events);
        }
    }

    fn record_of_run(&mut self, op: Op, event: Event) {
        let Some(at) = self.pick_run(op) else { return };
        if let Run::Open(_) = self.runs[at].run {
            let scope = Scope { run_id: Some(self.runs[at].run_id.clone()), ..Scope::default() };
            self.record(at, scope, vec![event]);
        }
    }

    fn request_delegation(&mut self, op: Op) {
        let Some(at) = self.pick_run(op).filter(|at| self.runs[*at].run.check_open().is_ok()) else { return };
        let (id, task_id) = (self.id(), task_id(op.variant));
        let scope = Scope {
            run_id: Some(self.runs[at].run_id.clone()),
            task_id: Some(task_id.clone()),
            delegation_id: Some(DelegationId::from_uuid(id)),
        };
        let command = match op.variant % 5 {
            0 => DelegationCommand::Refuse(refusal(task_id.clone(), RefusalReason::PerRunLimit)),
            _ => DelegationCommand::Request(Box::new(request(task_id.clone(), op.variant))),
        };
        self.runs[at].delegations.push(SimulatedDelegation {
            scope,
            task_id,
            delegation: Delegation::Absent,
        });
        let newest = self.runs[at].delegations.len() - 1;
        self.command_delegation(at, newest, command);
    }

    fn decide_delegation(&mut self, op: Op, command: fn(&ToolCallId, u8) -> DelegationCommand) {
        let Some(at) = self.pick_run(op) else { return };
        let Some(of) = pick(op.pick / 16, self.runs[at].delegations.len()) else { return };
        let command = command(&self.runs[at].delegations[of].task_id, op.variant);
        self.command_delegation(at, of, command);
    }

    fn command_delegation(&mut self, at: usize, of: usize, command: DelegationCommand) {
        let known = &mut self.runs[at].delegations[of];
        if let Ok(events) = known.delegation.decide(command) {
            for event in &events {
                known.delegation.evolve(event);
            }
            let scope = known.scope.clone();
            self.record(at, scope, events);
        }
    }

    /// What others record, what nobody can read, and what contradicts itself.
    fn record_oddity(&mut self, op: Op) {
        let Some(at) = self.pick_run(op) else { return };
        let scope = Scope { run_id: Some(self.runs[at].run_id.clone()), ..Scope::default() };
        let event = match op.variant % 8 {
            0 => return self.append_unreadable(self.runs[at].thread_id.clone(), scope),
            1 => {
                let other = RunId::new("somebody-else").unwrap();
                Event::Run(RunEvent::Started(settings(&other, op.variant)))
            }
            2 => Event::Model(ModelEvent::Retried(ModelRetried {
                caller: "lead_agent".into(),
                model_name: "m".into(),
                attempt: 1,
                max_attempts: 3,
                wait_ms: 10,
                reason: "transient".into(),
                message: "503".into(),
            })),
            3 => Event::Foreign(ForeignEvent {
                event_type: "subagent.step".into(),
                category: "subagent".into(),
                content: json!({"free": "form"}),
                metadata: Map::new(),
            }),
            _ => return self.record_said(op, at, scope),
        };
        self.record(at, scope, vec![event]);
    }

    /// What was said, in the words of others or in none of a run.
    fn record_said(&mut self, op: Op, at: usize, scope: Scope) {
        self.told_by_others.push(self.runs[at].run_id.clone());
        let scope = if op.variant < 128 { scope } else { Scope::default() };
        let (event_type, caller) = match op.variant % 8 {
            4 => ("llm.ai.response", json!("middleware:title")),
            5 => ("ai_message", json!(7)),
            6 => ("llm.ai.response", json!("subagent:bash")),
            _ => ("llm.tool.result", json!("subagent:bash")),
        };
        let usage = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
        let event = ForeignEvent {
            event_type: event_type.into(),
            category: "message".into(),
            content: json!({"type": "ai", "content": "x", "usage_metadata": usage}),
            metadata: Map::from_iter([("caller".to_owned(), caller)]),
        };
        self.append(self.runs[at].thread_id.clone(), scope, vec![Event::Foreign(event)]);
    }

    fn record(&mut self, at: usize, scope: Scope, events: Vec<Event>) {
        for event in &events {
            self.runs[at].run.evolve(event);
        }
        self.append(self.runs[at].thread_id.clone(), scope, events);
    }

    pub(super) fn append(&mut self, thread_id: ThreadId, scope: Scope, events: Vec<Event>) {
        let events = events.iter().map(|event| self.new_event(event, &scope)).collect();
        self.append_new(StreamId::Thread(thread_id), events);
    }

    fn new_event(&mut self, event: &Event, scope: &Scope) -> NewEvent {
        let encoded = eventlog::encode(event).unwrap();
        NewEvent {
            event_id: EventId::from_uuid(self.id()),
            event_type: encoded.event_type,
            schema_version: encoded.schema_version,
            category: encoded.category,
            scope: scope.clone(),
            owner: UserId::new("ada").unwrap(),
            causation_id: None,
            correlation_id: None,
            created_at: Timestamp::UNIX_EPOCH,
            content: encoded.content,
            metadata: encoded.metadata,
        }
    }

    /// Records what claims to be a step of ours and has not its shape.
    pub(super) fn append_unreadable(&mut self, thread_id: ThreadId, scope: Scope) {
        let event = NewEvent {
            event_id: EventId::from_uuid(self.id()),
            event_type: "subagent.step".into(),
            schema_version: 1,
            category: "subagent".into(),
            scope,
            owner: UserId::new("ada").unwrap(),
            causation_id: None,
            correlation_id: None,
            created_at: Timestamp::UNIX_EPOCH,
            content: Json::empty_object(),
            metadata: Json::empty_object(),
        };
        self.append_new(StreamId::Thread(thread_id), vec![event]);
    }

    fn append_new(&mut self, stream: StreamId, events: Vec<NewEvent>) {
        let append = Append { stream, expected: Expected::Any, idempotency_key: None, events };
        self.runtime.block_on(self.log.append(append)).expect("the log takes it");
    }

    /// Records something that is about no thread's history.
    pub(super) fn append_to_registry(&mut self) {
        let requested = ErasureRequested {
            erasure_id: ErasureId::from_uuid(Uuid::nil()),
            thread_id: thread_id(0),
            reason: ErasureReason::Thread,
            run_hash: None,
            events: 1,
            requested_at: Timestamp::UNIX_EPOCH,
        };
        let event = Event::Registry(RegistryEvent::ErasureRequested(requested));
        let event = self.new_event(&event, &Scope::default());
        self.append_new(StreamId::Registry, vec![event]);
    }

    /// Destroys the keys of a thread.
    pub(super) fn erase(&mut self, thread_id: &ThreadId) {
        assert!(
            self.runtime.block_on(self.log.destroy_thread_key(thread_id)).expect("the keys are destroyed")
        );
    }

    /// Destroys the key of a run.
    pub(super) fn destroy_run(&mut self, thread_id: &ThreadId, run_id: &RunId) {
        let run = eventlog::run_hash(thread_id, run_id);
        let destroyed = self.runtime.block_on(self.log.destroy_run_key(thread_id, run));
        assert!(destroyed.expect("the key is destroyed"));
    }

    /// Records that a run was erased.
    pub(super) fn record_run_erased(&mut self, thread_id: &ThreadId, run_id: &RunId) {
        let run_hash = eventlog::run_hash(thread_id, run_id);
        let erased = RunErased {
            erasure_id: ErasureId::from_uuid(Uuid::nil()),
            thread_id: thread_id.clone(),
            run_hash,
            events: self.log.run_events(run_hash).unwrap(),
            requested_at: Timestamp::UNIX_EPOCH,
        };
        let event = self.new_event(&Event::Registry(RegistryEvent::RunErased(erased)), &Scope::default());
        self.append_new(StreamId::Registry, vec![event]);
    }

    /// Whether views that are there have not heard yet of an erasure that has happened.
    pub(super) fn is_being_erased(&self, position: Position) -> bool {
        position < self.erased_at
    }

    /// The thread that the event at a position is of, if it is of one.
    pub(super) fn thread_at(&self, position: Position) -> Option<ThreadId> {
        let before = Position::new(position.get().checked_sub(1)?);
        let recorded = self.log.read_all(before, 1).unwrap();
        recorded.first()?.stream.thread_id().cloned()
    }

    /// Every place in a thread, the one before the first too.
    pub(super) fn seqs(&self, thread: &ThreadId) -> impl Iterator<Item = Seq> {
        let last = self.log.stream_tail(&thread.clone().into()).unwrap().unwrap_or(Seq::ZERO);
        (0..=last.get()).map(Seq::new)
    }

    /// Whether others recorded anything for a run of ours.
    pub(super) fn was_told_by_others(&self, run_id: &RunId) -> bool {
        self.told_by_others.contains(run_id)
    }

    /// The runs that were started, with their threads.
    pub(super) fn runs(&self) -> impl Iterator<Item = (&ThreadId, &RunId)> {
        self.runs.iter().map(|run| (&run.thread_id, &run.run_id))
    }

    /// The delegations of a run.
    pub(super) fn delegations(&self, run_id: &RunId) -> impl Iterator<Item = DelegationId> {
        let of_run = self.runs.iter().filter(move |run| run.run_id == *run_id);
        of_run.flat_map(|run| run.delegations.iter().filter_map(|known| known.scope.delegation_id))
    }

    /// Everything that can be read, up to a position.
    pub(super) fn facts(&self, last: Position) -> Vec<Logged> {
        let mut recorded = self.log.read_all(Position::ZERO, usize::MAX).unwrap();
        recorded.retain(|event| event.position <= last && !event.is_erased());
        recorded.iter().filter_map(|event| eventlog::decode(event).ok()).collect()
    }

    fn id(&mut self) -> Uuid {
        self.ids += 1;
        Uuid::from_u128(self.ids)
    }
}

/// Which of so many is meant.
fn pick(pick: u8, count: usize) -> Option<usize> {
    (count > 0).then(|| usize::from(pick) % count)
}
