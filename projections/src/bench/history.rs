//! A history of agents at work, the same every time.

use domain::{
    decider::Decider,
    delegation::{Delegation, DelegationCommand, DelegationEnding, ReceiptDraft},
    event::{
        DelegationDelivered, DelegationRequested, Event, ModelEvent, RunSettings, ToolEvent, ToolStarted,
    },
    ids::{DelegationId, EventId, RunId, SubagentType, ThreadId, ToolCallId, UserId},
    message::{AssistantMessage, Message, ToolArgs, ToolCall, ToolMessage},
    receipt::ReceiptOutcome,
    run::{Run, RunCommand, RunEnding},
    status_contract::SubagentStatus,
    tool_spec::SideEffect,
    usage::Usage,
};
use eventlog::{Append, EventLog, Expected, NewEvent, Scope, StreamId};
use jiff::Timestamp;
use serde_json::Map;
use uuid::Uuid;

use super::FillError;

/// Runs of one thread.
const RUNS_PER_THREAD: u64 = 4;
/// Delegations of one run.
const DELEGATIONS_PER_RUN: u64 = 3;
/// Events of one append: a turn's worth. Ids and times are not looked at.
const APPEND_EVENTS: usize = 256;
/// Words that texts are made of.
const WORDS: [&str; 12] =
    ["the", "file", "report", "shows", "three", "errors", "in", "module", "parser", "and", "two", "warnings"];

/// How much a subagent does and says.
#[derive(Debug, Clone, Copy)]
pub struct DelegationSize {
    /// Turns, each a reply with a tool call, and its result.
    pub turns: u32,
    /// Words of a reply.
    pub reply_words: usize,
    /// Words of a tool's result.
    pub result_words: usize,
}

impl Default for DelegationSize {
    fn default() -> Self {
        Self { turns: 20, reply_words: 40, result_words: 100 }
    }
}

/// Makes runs, one after the other, each on a thread with some others.
pub struct BenchHistory {
    size: DelegationSize,
    ids: u128,
}

type Facts = Vec<(Scope, Event)>;

impl BenchHistory {
    /// A history from its beginning.
    pub const fn new(size: DelegationSize) -> Self {
        Self { size, ids: 0 }
    }

    /// Records whole runs until there are at least so many events.
    pub fn fill(&mut self, log: &EventLog, events: u64) -> Result<(), FillError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut number = 0;
        while log.head().get() < events {
            let thread_id = id(ThreadId::new(format!("thread-{:06}", number / RUNS_PER_THREAD)))?;
            let facts = self.run(number, DELEGATIONS_PER_RUN)?;
            runtime.block_on(self.record(log, &thread_id, &facts))?;
            number += 1;
        }
        Ok(())
    }

    /// Records one run with one delegation on a thread. Gives the run and the delegation.
    pub fn record_delegation(
        &mut self,
        log: &EventLog,
        thread_id: &ThreadId,
    ) -> Result<(RunId, DelegationId), FillError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let facts = self.run(0, 1)?;
        runtime.block_on(self.record(log, thread_id, &facts))?;
        let named = facts.iter().find_map(|(scope, _)| Some((scope.run_id.clone()?, scope.delegation_id?)));
        named.ok_or_else(|| FillError::History("a run without a delegation".to_owned()))
    }

    async fn record(&mut self, log: &EventLog, thread_id: &ThreadId, facts: &Facts) -> Result<(), FillError> {
        for facts in facts.chunks(APPEND_EVENTS) {
            let events = facts.iter().map(|(scope, event)| self.new_event(scope, event));
            let events = events.collect::<Result<_, _>>()?;
            let stream = StreamId::Thread(thread_id.clone());
            log.append(Append { stream, expected: Expected::Any, idempotency_key: None, events }).await?;
        }
        Ok(())
    }

    fn new_event(&mut self, scope: &Scope, event: &Event) -> Result<NewEvent, FillError> {
        let encoded = eventlog::encode(event)?;
        Ok(NewEvent {
            event_id: EventId::from_uuid(self.id()),
            event_type: encoded.event_type,
            schema_version: encoded.schema_version,
            category: encoded.category,
            scope: scope.clone(),
            owner: UserId::unowned(),
            causation_id: None,
            correlation_id: None,
            created_at: Timestamp::UNIX_EPOCH,
            content: encoded.content,
            metadata: encoded.metadata,
        })
    }

    fn run(&mut self, number: u64, delegations: u64) -> Result<Facts, FillError> {
        let run_id = id(RunId::new(self.id().to_string()))?;
        let scope = Scope { run_id: Some(run_id.clone()), ..Scope::default() };
        let (mut run, mut facts) = (Run::default(), Facts::new());
        let input = vec![Message::human(words(number, 30))];
        for command in [RunCommand::Start { settings: Box::new(settings(&run_id)), input }, RunCommand::Begin]
        {
            decide(&mut run, command, &scope, &mut facts)?;
        }
        for number in 0..delegations {
            let task_id = id(ToolCallId::new(format!("call_{number:04}abcdefgh")))?;
            let call = call(&task_id, "task", number, 30);
            facts.push((scope.clone(), Event::Model(ModelEvent::AiResponse(reply(number, 20, call)))));
            let of_task = Scope {
                task_id: Some(task_id.clone()),
                delegation_id: Some(DelegationId::from_uuid(self.id())),
                ..scope.clone()
            };
            self.delegate(&task_id, &of_task, &mut facts)?;
            let result = tool_result(&task_id, "task", number, 60);
            facts.push((scope.clone(), Event::Model(ModelEvent::ToolResult(result))));
        }
        let ending = RunEnding::Returned { result: words(number, 80), stop_reason: None };
        decide(&mut run, RunCommand::End(ending), &scope, &mut facts)?;
        Ok(facts)
    }

    fn delegate(&self, task_id: &ToolCallId, scope: &Scope, facts: &mut Facts) -> Result<(), FillError> {
        let mut delegation = Delegation::Absent;
        let mut commands = vec![
            DelegationCommand::Request(Box::new(request(task_id)?)),
            DelegationCommand::Admit { waited_ms: 5 },
        ];
        for turn in 0..u64::from(self.size.turns) {
            let call_id = id(ToolCallId::new(format!("call_{turn:06}")))?;
            let reply = reply(turn, self.size.reply_words, call(&call_id, "read_file", turn, 4));
            commands.push(DelegationCommand::Record { message: Box::new(reply), receipt: None });
            let message = Box::new(tool_result(&call_id, "read_file", turn, self.size.result_words));
            let receipt = Some(Box::new(receipt(&call_id)));
            commands.push(DelegationCommand::Record { message, receipt });
        }
        let result = words(7, 80);
        commands.push(DelegationCommand::End(DelegationEnding::Completed { result, stop_reason: None }));
        commands.push(DelegationCommand::Deliver(delivery(task_id)));
        for (at, command) in commands.into_iter().enumerate() {
            decide(&mut delegation, command, scope, facts)?;
            if at % 4 == 2 {
                facts.push((scope.clone(), Event::Tool(ToolEvent::Started(started(task_id)))));
            }
        }
        Ok(())
    }

    fn id(&mut self) -> Uuid {
        self.ids += 1;
        Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 | self.ids)
    }
}

/// Records what a command comes to.
fn decide<D: Decider<Event = Event>>(
    decider: &mut D,
    command: D::Command,
    scope: &Scope,
    facts: &mut Facts,
) -> Result<(), FillError>
where
    D::Rejection: std::fmt::Display,
{
    let events = decider.decide(command).map_err(|refused| FillError::History(refused.to_string()))?;
    for event in events {
        decider.evolve(&event);
        facts.push((scope.clone(), event));
    }
    Ok(())
}

fn id<Id>(made: Result<Id, domain::ids::InvalidId>) -> Result<Id, FillError> {
    made.map_err(|error| FillError::History(error.to_string()))
}

fn words(seed: u64, count: usize) -> String {
    let word = |at: usize| WORDS.iter().cycle().nth((seed as usize * 7 + at * 5) % 144).copied();
    (0..count).filter_map(word).collect::<Vec<_>>().join(" ")
}

fn call(call_id: &ToolCallId, name: &str, seed: u64, count: usize) -> ToolCall {
    let args = Map::from_iter([("path".to_owned(), words(seed, count).into())]);
    ToolCall { id: call_id.to_string(), name: name.to_owned(), args: ToolArgs::Object(args) }
}

fn reply(seed: u64, count: usize, call: ToolCall) -> Message {
    Message::Assistant(AssistantMessage {
        content: words(seed, count),
        tool_calls: vec![call],
        usage: Some(Usage::new(1_000 + seed, 100)),
        ..AssistantMessage::default()
    })
}

fn tool_result(call_id: &ToolCallId, name: &str, seed: u64, count: usize) -> Message {
    let (content, name) = (words(seed + 3, count), name.to_owned());
    Message::Tool(ToolMessage { content, tool_call_id: call_id.to_string(), name, ..ToolMessage::default() })
}

fn receipt(call_id: &ToolCallId) -> ReceiptDraft {
    ReceiptDraft {
        tool_name: "read_file".into(),
        tool_call_id: call_id.to_string(),
        args_sha256: "a".repeat(64),
        output_sha256: "b".repeat(64),
        output_bytes: 700,
        outcome: ReceiptOutcome::Ok,
        started_at: Timestamp::UNIX_EPOCH,
        duration_ms: 3,
    }
}

fn started(call_id: &ToolCallId) -> ToolStarted {
    ToolStarted {
        tool_call_id: call_id.clone(),
        tool_name: "bash".into(),
        args_sha256: "a".repeat(64),
        side_effect: SideEffect::Effectful,
        started_at: Timestamp::UNIX_EPOCH,
    }
}

fn settings(run_id: &RunId) -> RunSettings {
    RunSettings {
        run_id: run_id.clone(),
        assistant_id: "lead".into(),
        model_name: "offline".into(),
        subagent_enabled: true,
        max_concurrent_subagents: 3,
        max_total_subagents: 6,
        allowed_subagents: None,
        max_turns: 100,
        tools: vec!["task".into()],
        system_prompt: words(1, 200),
        subagents: None,
        managed_subagents: None,
        summarization_enabled: false,
        token_budget: None,
        loop_detection: None,
        tool_progress: None,
        model_retries_max: None,
        checks_last_words: true,
        summarization: None,
        metadata: Map::new(),
    }
}

fn request(task_id: &ToolCallId) -> Result<DelegationRequested, FillError> {
    Ok(DelegationRequested {
        task_id: task_id.clone(),
        description: "look around".into(),
        prompt: words(2, 60),
        subagent_type: id(SubagentType::new("general-purpose"))?,
        model_name: "offline".into(),
        max_turns: 20_000,
        timeout_seconds: 1_800,
        tools: vec!["ls".into()],
        acceptance_criteria: Vec::new(),
        token_budget: None,
        receipts_enabled: true,
    })
}

fn delivery(task_id: &ToolCallId) -> DelegationDelivered {
    DelegationDelivered {
        task_id: task_id.clone(),
        status: SubagentStatus::Completed,
        result_brief: Some(words(7, 30)),
        result_sha256: Some("c".repeat(64)),
        error: None,
    }
}
