//! What a compaction changes for the model, and what it never touches.

use proptest::prelude::*;

use super::*;
use crate::{
    compaction::{CompactionPlan, CompactionRules, CompactionSettings, Extent},
    event::{Compaction, Event, ModelEvent, RunEvent, SubagentCompaction, SubagentEvent, SubagentMessage},
    ids::ToolCallId,
    prompt::date_note,
    status_contract::{SubagentStatus, TaskOutcome},
    usage::Usage,
};

fn rules(trigger: u32, keep: u32) -> CompactionRules {
    let settings = CompactionSettings {
        trigger: vec![Extent::Messages(trigger)],
        keep: Extent::Messages(keep),
        trim_tokens: None,
        model_name: None,
        prompt: None,
        context_tokens: std::collections::BTreeMap::new(),
    };
    settings.rules("m")
}

fn compacting(role: AgentRole, trigger: u32, keep: u32) -> Agent {
    let limits = GuardLimits { compaction: Some(rules(trigger, keep)), ..GuardLimits::default() };
    let mut agent = Agent::new(role, 99, Conversation::default()).guarded_by(limits);
    agent.evolve(AgentEvent::said(Message::system("you are")));
    agent.evolve(asked());
    agent
}

/// One turn: a reply that calls these, and their results.
fn turn(agent: &mut Agent, calls: &[&str]) {
    agent.evolve(reply("t", calls));
    calls.iter().for_each(|id| agent.evolve(result(id)));
}

#[track_caller]
fn planned(agent: &Agent) -> CompactionPlan {
    match agent.next_effect() {
        Effect::Compact(plan) => *plan,
        effect @ (Effect::CallModel | Effect::RunTools(_) | Effect::Finish(_)) => panic!("{effect:?}"),
    }
}

fn done(plan: &CompactionPlan, summary: &str) -> AgentEvent {
    AgentEvent::Compacted(Box::new(plan.done("m", summary, None, Vec::new())))
}

fn roles(request: &[Message]) -> String {
    let letter = |message: &Message| match message {
        Message::System(_) => 's',
        Message::Human(_) => 'h',
        Message::Assistant(_) => 'a',
        Message::Tool(_) => 't',
    };
    request.iter().map(letter).collect()
}

// Chain facts (f) line 117, and §2.9: what the framework says is never compacted.
#[test]
fn line_117_the_system_prompt_the_contract_and_the_task_are_never_compacted() {
    let mut agent = Agent::new(AgentRole::Subagent, 99, Conversation::default());
    agent = agent.guarded_by(GuardLimits { compaction: Some(rules(6, 2)), ..GuardLimits::default() });
    let date = date_note(jiff::civil::date(2026, 9, 1));
    agent.evolve(AgentEvent::said(Message::system(format!("prompt\n\nreport contract\n\n{date}"))));
    agent.evolve(AgentEvent::said(Message::human("the task")));
    for round in 0..4 {
        while !matches!(agent.next_effect(), Effect::Compact(_)) {
            turn(&mut agent, &["a"]);
        }
        agent.evolve(done(&planned(&agent), &format!("summary {round}")));
        let request = agent.request();
        assert_eq!(roles(&request), "shhat", "round {round}");
        let system = request[0].content();
        assert!(
            system.starts_with("prompt\n\nreport contract\n\n<system-reminder>\n<current_date>"),
            "{system}"
        );
        assert!(request[1].content().contains(&format!("summary {round}")));
        assert!(request[2].content().contains("the task"));
    }
}

#[test]
fn line_37_a_conversation_that_was_not_compacted_is_shown_as_it_is() {
    let mut agent = compacting(AgentRole::Lead, 100, 2);
    turn(&mut agent, &["a"]);
    assert_eq!((roles(&agent.request()).as_str(), agent.request()[0].content()), ("shat", "you are"));
}

#[test]
fn line_40_the_contract_stands_in_the_one_system_message_and_the_data_behind_it() {
    let mut agent = compacting(AgentRole::Lead, 4, 2);
    turn(&mut agent, &["a"]);
    turn(&mut agent, &["b"]);
    let before = agent.clone();
    agent.evolve(done(&planned(&agent), "the sum"));
    let request = agent.request();
    assert_eq!(roles(&request), "shhat");
    assert!(request[0].content().starts_with("you are\n\n## Durable context\n"));
    assert!(request[1].content().starts_with("<durable_context_data>\n"));
    assert!(!request[0].content().contains("the sum"));
    assert_eq!(agent.system, before.system, "the data is in the request and nowhere else");
}

// Chain facts (f) line 119.
#[test]
fn line_119_without_a_summary_nothing_changes_and_the_work_goes_on() {
    let mut agent = compacting(AgentRole::Lead, 3, 2);
    turn(&mut agent, &["a"]);
    turn(&mut agent, &["b"]);
    let (before, plan) = (agent.request(), planned(&agent));
    agent.evolve(AgentEvent::Compacted(Box::new(plan.failed(Vec::new()))));
    assert_eq!(agent.next_effect(), Effect::CallModel, "it is tried once before each call");
    assert_eq!(agent.request(), before);
    turn(&mut agent, &["c"]);
    planned(&agent);
}

// Once before each call of the model, also when what is left is still too long.
#[test]
fn a_call_of_the_model_follows_each_compaction() {
    let mut agent = compacting(AgentRole::Lead, 2, 3);
    for call in ["a", "b", "c"] {
        turn(&mut agent, &[call]);
    }
    agent.evolve(done(&planned(&agent), "s"));
    assert_eq!(agent.next_effect(), Effect::CallModel);
    assert_eq!(agent.turns(), 3, "a summary is no turn");
}

// Nothing is compacted while calls are open, and nothing once the work is over.
#[test]
fn only_a_call_of_the_model_is_prepared() {
    let mut agent = compacting(AgentRole::Lead, 2, 1);
    turn(&mut agent, &["a"]);
    agent.evolve(reply("t", &["b"]));
    assert!(matches!(agent.next_effect(), Effect::RunTools(_)));
    agent.evolve(result("b"));
    planned(&agent);
    agent.evolve(reply("done", &[]));
    assert!(matches!(agent.next_effect(), Effect::Finish(_)));
}

fn task_call(id: &str) -> ToolCall {
    let args = json!({"description": format!("task {id}"), "prompt": "p", "subagent_type": "bash"});
    ToolCall { id: id.into(), name: TASK_TOOL.into(), args: ToolArgs::parse(&args.to_string()) }
}

fn delegating(ids: &[&str]) -> AgentEvent {
    let tool_calls = ids.iter().map(|id| task_call(id)).collect();
    AgentEvent::said(Message::Assistant(AssistantMessage { tool_calls, ..AssistantMessage::default() }))
}

fn returned(id: &str, status: SubagentStatus) -> AgentEvent {
    let outcome = TaskOutcome::new(status, Some("found it".into()));
    AgentEvent::said(Message::Tool(ToolMessage {
        tool_call_id: id.into(),
        name: TASK_TOOL.into(),
        content: outcome.text(),
        additional_kwargs: outcome.metadata(),
        ..ToolMessage::default()
    }))
}

fn statuses(agent: &Agent) -> Vec<(&str, &'static str)> {
    let tasks = agent.conversation.delegated().iter();
    tasks.map(|task| (task.tool_call_id.as_str(), task.status.as_str())).collect()
}

// Field report 56: two at work and one done, all three told again with where they stand.
#[test]
fn field_report_56_what_was_delegated_is_told_again() {
    let mut agent = compacting(AgentRole::Lead, 99, 1);
    turn(&mut agent, &["a"]);
    agent.evolve(delegating(&["1", "2", "3"]));
    agent.evolve(returned("1", SubagentStatus::Completed));
    let mut later = agent.clone();
    let plan = rules(1, 1).plan(&agent.conversation, None).unwrap();
    assert_eq!(plan.kept, 2, "the open calls stay with their reply");
    agent.evolve(done(&plan, "s"));
    let data = agent.request()[1].content().to_owned();
    for line in ["[completed] task 1", "[in_progress] task 2", "[in_progress] task 3"] {
        assert!(data.contains(line), "{data}");
    }
    // Whatever was open when the next run began on the thread was cut off.
    later.evolve(AgentEvent::said(Message::human("more")));
    let cut_off = [("1", "completed"), ("2", "cancelled"), ("3", "cancelled")];
    assert_eq!(statuses(&later), cut_off);
}

// Chain facts (f) lines 18, 19, 20, 23 and 35.
#[test]
fn lines_18_to_23_and_35_what_came_of_a_task_is_read_from_its_metadata_alone() {
    let mut agent = compacting(AgentRole::Lead, 99, 1);
    let long = json!({"prompt": "p".repeat(300), "subagent_type": "bash"});
    let call = ToolCall { id: "x".into(), name: TASK_TOOL.into(), args: ToolArgs::parse(&long.to_string()) };
    agent.evolve(AgentEvent::said(Message::Assistant(AssistantMessage {
        tool_calls: vec![call],
        ..AssistantMessage::default()
    })));
    assert_eq!(agent.conversation.delegated()[0].description, "p".repeat(200)); // 18
    let claimed =
        Message::Tool(ToolMessage { name: TASK_TOOL.into(), tool_call_id: "x".into(), ..Default::default() });
    agent.evolve(AgentEvent::said(claimed));
    assert_eq!(statuses(&agent), [("x", "in_progress")]); // 19
    agent.evolve(returned("x", SubagentStatus::TimedOut));
    assert_eq!(statuses(&agent), [("x", "timed_out")]); // 20 and 35
    // An id that is used again is another delegation; what is over stays over.
    agent.evolve(delegating(&["x"]));
    assert_eq!(statuses(&agent), [("x", "timed_out"), ("x", "in_progress")]); // 23
    agent.evolve(returned("x", SubagentStatus::Completed));
    assert_eq!(statuses(&agent), [("x", "timed_out"), ("x", "completed")]);
    agent.evolve(returned("x", SubagentStatus::Failed));
    assert_eq!(statuses(&agent), [("x", "timed_out"), ("x", "completed")]);
}

// A subagent delegates nothing, whatever it calls.
#[test]
fn a_subagent_is_told_of_no_delegations() {
    let mut agent = compacting(AgentRole::Subagent, 5, 1);
    turn(&mut agent, &["a"]);
    agent.evolve(delegating(&["1"]));
    agent.evolve(returned("1", SubagentStatus::Failed));
    agent.evolve(done(&planned(&agent), "s"));
    assert!(!agent.request()[1].content().contains("task 1"));
}

/// What can be recorded of an agent, as it is stored.
fn stored(role: AgentRole, event: &AgentEvent) -> Event {
    let task_id = ToolCallId::new("t").unwrap();
    match (role, event.clone()) {
        (AgentRole::Subagent, AgentEvent::Said(message)) => {
            Event::Subagent(SubagentEvent::Message(SubagentMessage { task_id, message: *message }))
        }
        (AgentRole::Subagent, AgentEvent::Compacted(compaction)) => {
            let compaction = SubagentCompaction { task_id, compaction: *compaction };
            Event::Subagent(SubagentEvent::Compacted(compaction))
        }
        (AgentRole::Lead, AgentEvent::Said(message)) => match *message {
            message @ Message::Human(_) => Event::Model(ModelEvent::HumanInput(message)),
            message @ Message::Assistant(_) => Event::Model(ModelEvent::AiResponse(message)),
            message @ (Message::Tool(_) | Message::System(_)) => {
                Event::Model(ModelEvent::ToolResult(message))
            }
        },
        (AgentRole::Lead, AgentEvent::Compacted(compaction)) => Event::Run(RunEvent::Compacted(*compaction)),
        (
            AgentRole::Lead | AgentRole::Subagent,
            AgentEvent::Delegated
            | AgentEvent::ToolStarted(_)
            | AgentEvent::CallDropped(_)
            | AgentEvent::Capped(_),
        ) => unreachable!("this agent does not do that"),
    }
}

fn read(role: AgentRole, event: &Event) -> AgentEvent {
    let content = event.content().unwrap().to_string();
    let event = Event::parse(event.event_type(), &content).unwrap().unwrap();
    match role {
        AgentRole::Lead => AgentEvent::of_lead(&event).unwrap(),
        AgentRole::Subagent => AgentEvent::of_subagent(&event).unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // What is folded from the log is the live agent at each point, and asks for the same next.
    #[test]
    fn folding_the_log_gives_the_live_agent(
        is_lead in any::<bool>(),
        trigger in 2_u32..9,
        keep in 1_u32..6,
        turns in prop::collection::vec((0_usize..4, any::<bool>()), 1..12),
    ) {
        let role = if is_lead { AgentRole::Lead } else { AgentRole::Subagent };
        let limits = GuardLimits { compaction: Some(rules(trigger, keep)), ..GuardLimits::default() };
        let begin = || Agent::new(role, 99, Conversation::default()).guarded_by(limits.clone());
        let (mut live, mut log) = (begin(), Vec::new());
        let record = |live: &mut Agent, log: &mut Vec<Event>, event: AgentEvent| {
            log.push(stored(role, &event));
            live.evolve(event);
        };
        record(&mut live, &mut log, asked());
        for (at, (calls, is_failing)) in turns.into_iter().enumerate() {
            if let Effect::Compact(plan) = live.next_effect() {
                let usage = Some(Usage::new(9, 1));
                let compaction: Compaction =
                    if is_failing { plan.failed(Vec::new()) } else { plan.done("m", &format!("s{at}"), usage, Vec::new()) };
                record(&mut live, &mut log, AgentEvent::Compacted(Box::new(compaction)));
            }
            prop_assert_eq!(live.next_effect(), Effect::CallModel);
            let ids: Vec<String> = (0..=calls).map(|call| format!("{at}-{call}")).collect();
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            record(&mut live, &mut log, reply("t", &ids));
            for id in &ids {
                record(&mut live, &mut log, result(id));
                let mut folded = begin();
                log.iter().for_each(|event| folded.evolve(read(role, event)));
                prop_assert_eq!(&folded, &live);
                prop_assert_eq!(folded.next_effect(), live.next_effect());
                prop_assert_eq!(folded.request(), live.request());
            }
        }
        // A later run on the thread begins with what is left of the conversation.
        let mut earlier = Conversation::default();
        log.iter().for_each(|event| earlier.take(read(role, event)));
        prop_assert_eq!(earlier, live.conversation);
    }
}
