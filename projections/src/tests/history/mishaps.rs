//! What goes wrong, comes late, is said by others, and is erased.

use domain::{
    decider::Decider as _,
    delegation::{Delegation, DelegationCommand},
    event::{
        CancelReason, Compacted, Compaction, CompactionOutcome, CompactionTrigger, CompactionUnit,
        DelegationEvent, EndStatus, Event, ModelEvent, RefusalReason, RunEnded, RunEvent, RunFailed,
        RunStatus, RunStatusChanged, RunStopReason, Step, StepBody, SubagentEnded, SubagentEvent,
        SubagentMessage, SummaryFailure, ThreadCreated, ThreadEvent, ToolEvent, ToolStarted,
    },
    ids::{RunId, ThreadId, ToolCallId},
    run::{Run, RunEnding},
    tool_spec::SideEffect,
    usage::Usage,
};
use eventlog::{FOREIGN_SCHEMA_VERSION, Json, Scope, StreamId};
use jiff::Timestamp;
use serde_json::{Map, json};

use super::{Op, SimulatedRun, World, pick, task_id, thread_id};
use crate::tests::payloads::{cap, refusal, reply, request, settings};

impl World {
    pub(super) fn go_wrong(&mut self, op: Op) {
        match op.kind {
            18 | 19 => self.start_tool(op),
            20 => self.crash(op),
            21 => self.record_of_run(op, Event::Run(RunEvent::Compacted(compaction(op.variant)))),
            22 => self.decide_delegation(op, |_, variant| {
                DelegationCommand::Compact(Box::new(compaction(variant)))
            }),
            23 => self.ingest(op),
            24 => self.ingest_run(op),
            25 => self.come_late(op),
            _ => self.forget(op),
        }
    }

    /// A subagent's tool is about to do something that cannot be done twice.
    fn start_tool(&mut self, op: Op) {
        let Some(at) = self.pick_run(op) else { return };
        let Some(of) = pick(op.pick / 16, self.runs[at].delegations.len()) else { return };
        let known = &mut self.runs[at].delegations[of];
        if !matches!(known.delegation, Delegation::Running(_)) {
            return;
        }
        let started = Event::Tool(ToolEvent::Started(ToolStarted {
            tool_call_id: ToolCallId::new(format!("x{}", op.variant % 3)).unwrap(),
            tool_name: "bash".into(),
            args_sha256: "a".into(),
            side_effect: SideEffect::Effectful,
            started_at: Timestamp::UNIX_EPOCH,
        }));
        known.delegation.evolve(&started);
        let scope = known.scope.clone();
        self.record(at, scope, vec![started]);
    }

    /// The process dies, and nobody goes on with the run: what it has open is closed, tools that were
    /// started and have not returned have done nobody knows what, and the run is an orphan.
    fn crash(&mut self, op: Op) {
        let error = "nobody went on with it".repeat(usize::from(op.variant) * 3);
        self.end_run(op, RunEnding::Failed { error, stop_reason: Some(RunStopReason::OrphanRecovered) });
    }

    /// Others record what has the shape of our facts, in a run of ours and without our ids.
    fn ingest(&mut self, op: Op) {
        let Some(at) = self.pick_run(op) else { return };
        let (thread_id, run_id) = (self.runs[at].thread_id.clone(), self.runs[at].run_id.clone());
        let task = task_id(op.variant / 16);
        let event = match op.variant % 16 {
            0 => status(RunStatus::Success, None),
            1 => status(RunStatus::Error, Some("they say so")),
            2 => Event::Run(RunEvent::Ended(ended("they say so"))),
            3 => Event::Run(RunEvent::Failed(RunFailed { error: "they say so".into() })),
            4 => Event::Run(RunEvent::Started(settings(&run_id, op.variant / 16))),
            5 => Event::Run(RunEvent::Capped(cap(op.variant))),
            6 => Event::Run(RunEvent::Compacted(compaction(op.variant))),
            7 => Event::Delegation(DelegationEvent::Requested(request(task.clone(), op.variant))),
            8 => {
                Event::Delegation(DelegationEvent::Refused(refusal(task.clone(), RefusalReason::PerRunLimit)))
            }
            9 => Event::Subagent(SubagentEvent::Ended(end(task.clone(), op.variant))),
            10 => Event::Subagent(SubagentEvent::Step(step(task.clone(), 1))),
            11 => {
                let message = reply(op.variant);
                Event::Subagent(SubagentEvent::Message(SubagentMessage { task_id: task.clone(), message }))
            }
            12 => {
                let metadata = Map::from_iter([("theirs".to_owned(), json!(op.variant))]);
                let created = ThreadCreated { metadata, workspace: Some("/theirs".into()) };
                Event::Thread(ThreadEvent::Created(created))
            }
            _ => Event::Model(ModelEvent::AiResponse(reply(op.variant))),
        };
        let caller = ["lead_agent", "middleware:title", "subagent:bash", ""][usize::from(op.pick % 4)];
        self.told_by_others.push(run_id.clone());
        let scope = Scope { run_id: Some(run_id), task_id: Some(task), delegation_id: None };
        self.append_of_others(thread_id, &scope, &event, caller);
    }

    /// Others record a run of their own: with a start, and with whatever else.
    fn ingest_run(&mut self, op: Op) {
        let thread_id = thread_id(op.pick);
        if self.erased.contains(&thread_id) {
            return;
        }
        let run_id = RunId::new(format!("r{}", self.runs.len())).unwrap();
        let scope = Scope { run_id: Some(run_id.clone()), ..Scope::default() };
        let start = Event::Run(RunEvent::Started(settings(&run_id, op.variant)));
        for event in [
            start,
            status(RunStatus::Running, None),
            Event::Model(ModelEvent::AiResponse(reply(op.variant))),
            Event::Run(RunEvent::Ended(ended("done"))),
            status(if op.variant.is_multiple_of(2) { RunStatus::Success } else { RunStatus::Timeout }, None),
            status(RunStatus::Error, Some("too late")),
        ]
        .iter()
        .take(usize::from(op.variant % 7))
        {
            self.append_of_others(thread_id.clone(), &scope, event, "lead_agent");
        }
        if !op.variant.is_multiple_of(7) {
            let run = Run::Ended(RunStatus::Success);
            self.runs.push(SimulatedRun {
                thread_id,
                run_id,
                run,
                delegations: Vec::new(),
                is_erased: false,
            });
        }
    }

    /// What was decided already is recorded once more, and otherwise than at first.
    fn come_late(&mut self, op: Op) {
        let Some(at) = self.pick_run(op) else { return };
        let of_run = Scope { run_id: Some(self.runs[at].run_id.clone()), ..Scope::default() };
        if matches!(self.runs[at].run, Run::Ended(_)) && op.variant.is_multiple_of(2) {
            let late = match op.variant % 6 {
                0 => status(RunStatus::Success, None),
                2 => Event::Run(RunEvent::Ended(ended("too late"))),
                _ => status(RunStatus::Running, None),
            };
            return self.append(self.runs[at].thread_id.clone(), of_run, vec![late]);
        }
        let Some(of) = pick(op.pick / 16, self.runs[at].delegations.len()) else { return };
        let known = &self.runs[at].delegations[of];
        if matches!(known.delegation, Delegation::Ended { .. }) {
            let late = match op.variant % 4 {
                1 => SubagentEvent::Step(step(known.task_id.clone(), 1)),
                _ => SubagentEvent::Ended(end(known.task_id.clone(), op.variant)),
            };
            let (thread_id, scope) = (self.runs[at].thread_id.clone(), known.scope.clone());
            self.append(thread_id, scope, vec![Event::Subagent(late)]);
        }
    }

    /// A run or, rarely, a thread is erased. What is at work is stopped first.
    fn forget(&mut self, op: Op) {
        let Some(at) = self.pick_run(op) else { return };
        let thread_id = self.runs[at].thread_id.clone();
        if op.variant.is_multiple_of(16) {
            for run in self.runs.iter_mut().filter(|run| run.thread_id == thread_id) {
                run.is_erased = true;
            }
            self.erase(&thread_id);
            return self.erased.push(thread_id);
        }
        let stop = RunEnding::Failed { error: "erased".into(), stop_reason: None };
        self.end_run(op, stop);
        let run_id = self.runs[at].run_id.clone();
        self.runs[at].is_erased = true;
        self.destroy_run(&thread_id, &run_id);
        self.record_run_erased(&thread_id, &run_id);
        self.erased_at = self.log.head();
    }

    fn append_of_others(&mut self, thread_id: ThreadId, scope: &Scope, event: &Event, caller: &str) {
        let mut new = self.new_event(event, scope);
        new.schema_version = FOREIGN_SCHEMA_VERSION;
        if !caller.is_empty() {
            new.metadata = Json::from_serialize(&json!({"caller": caller})).unwrap();
        }
        self.append_new(StreamId::Thread(thread_id), vec![new]);
    }
}

fn status(status: RunStatus, error: Option<&str>) -> Event {
    let error = error.map(str::to_owned);
    Event::Run(RunEvent::StatusChanged(RunStatusChanged { status, stop_reason: None, error }))
}

fn ended(result: &str) -> RunEnded {
    RunEnded { result: result.into(), result_truncated: false, usage: None, turns: 9, delegations: 9 }
}

fn step(task_id: ToolCallId, message_index: u32) -> Step {
    let body = StepBody::Tool { tool_name: "late".into() };
    Step { task_id, message_index, text: "late".into(), truncated: false, body }
}

fn end(task_id: ToolCallId, variant: u8) -> SubagentEnded {
    let status = if variant.is_multiple_of(2) { EndStatus::Completed } else { EndStatus::TimedOut };
    SubagentEnded {
        task_id,
        status,
        model_name: None,
        usage: Some(Usage::new(1_000_000, 1)),
        result: Some("too late".into()),
        result_truncated: false,
        result_sha256: None,
        error: Some("too late".into()),
        error_truncated: false,
        stop_reason: None,
        cancel_reason: Some(CancelReason::CancelledByUser),
        citations: None,
        turns: 99,
        steps: 99,
        receipts: 99,
    }
}

fn compaction(variant: u8) -> Compaction {
    let usage = (!variant.is_multiple_of(3)).then(|| Usage::new(u64::from(variant), 3));
    let failure = SummaryFailure {
        model_name: "model-1".into(),
        reason: "transient".into(),
        error: "503".into(),
        usage: (!variant.is_multiple_of(5)).then(|| Usage::new(2, u64::from(variant))),
    };
    let compacted = Compacted {
        model_name: "offline".into(),
        summary: "what was said".into(),
        kept: 2,
        protected: vec![4],
        messages_after: 3,
        tokens_after: 30,
        usage,
    };
    let outcome = match variant % 4 {
        0 => CompactionOutcome::Failed,
        _ => CompactionOutcome::Compacted(Box::new(compacted)),
    };
    Compaction {
        trigger: CompactionTrigger { unit: CompactionUnit::Messages, used: 9, limit: 8 },
        messages_before: 9,
        tokens_before: 90,
        failures: (variant.is_multiple_of(2)).then_some(failure).into_iter().collect(),
        outcome,
    }
}
