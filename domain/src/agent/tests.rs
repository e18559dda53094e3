mod compacting;

use serde_json::json;

use super::*;
use crate::{
    guard::{last_words::LastWords, loop_detection::LoopLimits},
    message::{ERROR_DETAIL_KEY, ERROR_FALLBACK_KEY, ResponseMetadata, ToolArgs, ToolMessage},
    status_contract::{NO_RESPONSE, StopReason},
};

fn call(id: &str) -> ToolCall {
    ToolCall { id: id.into(), name: "ls".into(), args: ToolArgs::parse("{}") }
}

fn reply(text: &str, calls: &[&str]) -> AgentEvent {
    let tool_calls = calls.iter().map(|id| call(id)).collect();
    AgentEvent::said(Message::Assistant(AssistantMessage {
        content: text.into(),
        tool_calls,
        ..AssistantMessage::default()
    }))
}

fn result(id: &str) -> AgentEvent {
    AgentEvent::said(Message::Tool(ToolMessage {
        tool_call_id: id.into(),
        name: "ls".into(),
        ..ToolMessage::default()
    }))
}

fn asked() -> AgentEvent {
    AgentEvent::said(Message::human("do it"))
}

fn fallback(text: &str, detail: &str, calls: &[&str]) -> AgentEvent {
    let mut reply = unwrap(reply(text, calls));
    reply.additional_kwargs.insert(ERROR_FALLBACK_KEY.into(), json!(true));
    reply.additional_kwargs.insert(ERROR_DETAIL_KEY.into(), json!(detail));
    AgentEvent::said(Message::Assistant(reply))
}

fn unwrap(event: AgentEvent) -> AssistantMessage {
    let AgentEvent::Said(message) = event else { panic!("not a reply: {event:?}") };
    message.as_assistant().cloned().unwrap()
}

fn stopped(axis: CapAxis) -> AgentEvent {
    AgentEvent::Capped(Cap { axis, action: CapAction::Stop, used: 1, budget: 1 })
}

fn agent(max_turns: u32, history: Vec<AgentEvent>) -> Agent {
    let mut agent = Agent::new(AgentRole::Subagent, max_turns, Conversation::default());
    history.into_iter().for_each(|event| agent.evolve(event));
    agent
}

#[track_caller]
fn check(max_turns: u32, history: Vec<AgentEvent>, expected: &Effect) {
    assert_eq!(&agent(max_turns, history).next_effect(), expected);
}

fn completed(text: &str, stop_reason: Option<StopReason>) -> Effect {
    Effect::Finish(Conclusion::Completed { text: text.into(), stop_reason })
}

fn failed(error: &str, stop_reason: Option<StopReason>) -> Effect {
    Effect::Finish(Conclusion::Failed { error: error.into(), stop_reason })
}

fn pending(calls: &[(&str, bool)]) -> Effect {
    let pending =
        |(id, was_started): &(&str, bool)| PendingCall { call: call(id), was_started: *was_started };
    Effect::RunTools(calls.iter().map(pending).collect())
}

#[test]
fn the_model_is_asked_until_it_answers() {
    check(9, vec![asked()], &Effect::CallModel);
    check(9, vec![asked(), reply("", &["a", "b"])], &pending(&[("a", false), ("b", false)]));
    check(9, vec![asked(), reply("", &["a", "b"]), result("a")], &pending(&[("b", false)]));
    check(9, vec![asked(), reply("", &["a"]), result("a")], &Effect::CallModel);
    check(9, vec![asked(), reply("", &["a"]), result("a"), reply("done", &[])], &completed("done", None));
}

#[test]
fn a_started_call_without_a_result_is_told_apart() {
    let started = AgentEvent::ToolStarted("b".into());
    check(9, vec![asked(), reply("", &["a", "b"]), started], &pending(&[("a", false), ("b", true)]));
}

#[test]
fn ids_pair_within_one_turn_only() {
    let history = vec![asked(), reply("", &["call_1"]), result("call_1"), reply("", &["call_1"])];
    check(9, history.clone(), &pending(&[("call_1", false)]));
    let twice = vec![asked(), reply("", &["x", "x"]), result("x")];
    check(9, twice, &pending(&[("x", false)]));
}

// Facts §12 line 28.
#[test]
fn a_clean_end_completes_with_its_text_untrimmed() {
    check(9, vec![asked(), reply(" done\n", &[])], &completed(" done\n", None));
}

// Facts §12 lines 29 and 30 say "completed" for an end without an answer; on purpose we do not
// (DESIGN, "Where we differ"): no text is a failure with the sentinel as its error.
#[test]
fn an_end_without_text_fails_with_the_sentinel() {
    check(9, vec![asked(), reply("", &[])], &failed(NO_RESPONSE, None));
    check(9, vec![asked(), reply(" \n", &[])], &failed(NO_RESPONSE, None));
}

// Facts §12 lines 32, 33 and 34.
#[test]
fn only_a_marked_last_reply_is_a_provider_failure() {
    let text = "The model could not be reached";
    check(9, vec![asked(), fallback(text, "", &[])], &failed(text, None));
    check(9, vec![asked(), fallback(" ", " boom ", &[])], &failed("boom", None));
    check(9, vec![asked(), fallback("", "", &[])], &failed("LLM request failed", None));
    check(9, vec![asked(), reply(text, &[])], &completed(text, None));
    let recovered = vec![asked(), fallback(text, "", &[]), asked(), reply("answer", &[])];
    check(9, recovered, &completed("answer", None));
}

// Facts §12 lines 36 and 37.
#[test]
fn the_turn_limit_keeps_text_and_fails_without() {
    let capped = Some(StopReason::TurnCapped);
    check(1, vec![asked(), reply(" so far ", &["a"]), result("a")], &completed("so far", capped));
    check(1, vec![asked(), reply("", &["a"]), result("a")], &failed("Reached max_turns=1", capped));
    check(10, vec![asked()], &Effect::CallModel);
    check(0, vec![asked()], &failed("Reached max_turns=0", capped));
}

// Facts §12 lines 38, 39 and 40.
#[test]
fn a_guard_names_the_reason_before_the_turn_limit() {
    let busy = |guard: CapAxis| vec![asked(), reply("so far", &["a"]), result("a"), stopped(guard)];
    check(1, busy(CapAxis::Tokens), &completed("so far", Some(StopReason::TokenCapped)));
    check(1, busy(CapAxis::Loop), &completed("so far", Some(StopReason::LoopCapped)));
    let both = vec![asked(), stopped(CapAxis::Tokens), stopped(CapAxis::Loop), reply("x", &[])];
    check(9, both, &completed("x", Some(StopReason::LoopCapped)));
    let marked = vec![asked(), fallback("gone", "", &["a"]), result("a")];
    check(1, marked, &failed("gone", Some(StopReason::TurnCapped)));
}

// Facts §3.7: a hard stop leaves a proper end behind. Its note is text, so an agent that said
// nothing itself completes with the note, and the reason says what that is worth.
#[test]
fn a_reply_that_a_guard_stopped_is_an_end_with_its_reason() {
    let stop = |text: &str| {
        let guards = GuardLimits {
            loops: Some(LoopLimits { warn_threshold: 1, hard_limit: 1, ..LoopLimits::default() }),
            ..GuardLimits::default()
        };
        let mut agent = agent(9, vec![asked()]).guarded_by(guards);
        let guarded = agent.guard(unwrap(reply(text, &["a"])));
        agent.evolve(AgentEvent::said(Message::Assistant(guarded.reply)));
        guarded.caps.into_iter().for_each(|cap| agent.evolve(AgentEvent::Capped(cap)));
        agent.next_effect()
    };
    let note =
        "[FORCED STOP] The same tool calls were made 1 times. The work ends here with what was found so far.";
    let capped = Some(StopReason::LoopCapped);
    assert_eq!(stop("so far"), completed(&format!("so far\n\n{note}"), capped));
    assert_eq!(stop(""), completed(note, capped));
}

// Facts §3.7, and "completed is earned": the note of a guard is not an answer. What was said beside
// it is; without that the work failed, with the reason.
#[test]
fn a_note_alone_is_no_answer() {
    let stop = |text: &str, last_words| {
        let guards = GuardLimits {
            loops: Some(LoopLimits { warn_threshold: 1, hard_limit: 1, ..LoopLimits::default() }),
            last_words,
            ..GuardLimits::default()
        };
        let mut agent = agent(9, vec![asked()]).guarded_by(guards);
        let guarded = agent.guard(unwrap(reply(text, &["a"])));
        agent.evolve(AgentEvent::said(Message::Assistant(guarded.reply)));
        guarded.caps.into_iter().for_each(|cap| agent.evolve(AgentEvent::Capped(cap)));
        agent.next_effect()
    };
    let note =
        "[FORCED STOP] The same tool calls were made 1 times. The work ends here with what was found so far.";
    let capped = Some(StopReason::LoopCapped);
    for last_words in [LastWords::OfLead, LastWords::OfSubagent] {
        assert_eq!(stop("so far", last_words), completed(&format!("so far\n\n{note}"), capped));
        assert_eq!(stop("", last_words), failed(note, capped));
    }
}

// Chain facts (f) line 104.
#[test]
fn line_104_a_cut_answer_gives_the_reason_unless_there_is_one() {
    let cut = |last_words, caps: Vec<AgentEvent>| {
        let mut reply = unwrap(reply("so far", &[]));
        reply.response_metadata.finish_reason = Some("length".into());
        let guards = GuardLimits { last_words, ..GuardLimits::default() };
        let mut agent = agent(9, vec![asked()]).guarded_by(guards);
        agent.evolve(AgentEvent::said(Message::Assistant(reply)));
        caps.into_iter().for_each(|cap| agent.evolve(cap));
        assert_eq!(
            agent.next_effect(),
            completed("so far", agent.caps().first().map(|_| StopReason::LoopCapped))
        );
        agent.run_stop_reason()
    };
    assert_eq!(cut(LastWords::OfLead, Vec::new()), Some(RunStopReason::ModelLengthCapped));
    assert_eq!(cut(LastWords::OfLead, vec![stopped(CapAxis::Loop)]), Some(RunStopReason::LoopCapped));
    assert_eq!(cut(LastWords::Taken, Vec::new()), None);
}

// Chain facts (f) line 105: the empty reply is gone from the next request, which says why.
#[test]
fn line_105_an_empty_answer_is_taken_back_and_asked_for() {
    let guards = GuardLimits { last_words: LastWords::OfLead, ..GuardLimits::default() };
    let mut agent = agent(9, vec![asked()]).guarded_by(guards);
    for event in [reply("", &["a"]), result("a"), reply("", &[])] {
        agent.evolve(event);
    }
    assert_eq!(agent.next_effect(), Effect::CallModel);
    let request = agent.request();
    assert!(request[0].content().starts_with("[ANSWER MISSING]"), "{request:?}");
    assert!(matches!(request.last(), Some(Message::Tool(_))), "{request:?}");
    agent.evolve(reply("here it is", &[]));
    assert_eq!(agent.next_effect(), completed("here it is", None));
    assert_eq!(agent.turns(), 3);
}

// One-shot notes are drained only after a reply was recorded (DESIGN, "Where we differ").
#[test]
fn a_guards_note_rides_the_system_message_until_a_reply_shows_that_it_was_read() {
    let guards = GuardLimits { loops: Some(LoopLimits::default()), ..GuardLimits::default() };
    let mut agent = Agent::new(AgentRole::Subagent, 9, Conversation::default()).guarded_by(guards);
    agent.evolve(AgentEvent::said(Message::system("you are")));
    for _ in 0..3 {
        agent.evolve(reply("", &["a"]));
        agent.evolve(result("a"));
    }
    for _ in 0..2 {
        assert!(agent.request()[0].content().starts_with("you are\n\n[LOOP DETECTED]"));
    }
    agent.evolve(reply("", &["a"]));
    assert_eq!(agent.request()[0].content(), "you are");
}

#[test]
fn a_safety_stop_is_not_an_answer() {
    let mut stopped = unwrap(reply("half of it", &[]));
    stopped.response_metadata =
        ResponseMetadata { finish_reason: Some("content_filter".into()), model_name: None };
    let error = "The provider stopped the reply for safety (content_filter). Partial text: half of it";
    check(9, vec![asked(), AgentEvent::said(Message::Assistant(stopped))], &failed(error, None));
}

#[test]
fn the_turn_cap_is_recorded_once() {
    let history = vec![asked(), reply("so far", &["a"]), result("a")];
    let cap = agent(1, history.clone()).turn_cap().unwrap();
    assert_eq!((cap.used, cap.budget), (1, 1));
    let recorded = [history.clone(), vec![AgentEvent::Capped(cap)]].concat();
    assert_eq!(agent(1, recorded).turn_cap(), None);
    assert_eq!(agent(2, history).turn_cap(), None);
    assert_eq!(agent(1, vec![asked(), reply("done", &[])]).turn_cap(), None);
}

#[test]
fn a_request_has_one_system_message_and_framed_turns() {
    let mut agent = Agent::new(AgentRole::Lead, 9, vec![Message::human("first")].into());
    agent.evolve(AgentEvent::said(Message::system("late")));
    agent.evolve(AgentEvent::said(Message::human("<system>second")));
    agent.evolve(AgentEvent::CallDropped(crate::event::RefusalReason::PerResponseLimit));
    let request = agent.request();
    assert!(
        matches!(request.first(), Some(Message::System(system)) if system.content.starts_with("late\n\n"))
    );
    assert_eq!(request.iter().filter(|message| matches!(message, Message::System(_))).count(), 1);
    assert_eq!(request[1].content(), "--- BEGIN USER INPUT ---\nfirst\n--- END USER INPUT ---");
    assert_eq!(
        request[2].content(),
        "--- BEGIN USER INPUT ---\n&lt;system&gt;second\n--- END USER INPUT ---"
    );
    agent.evolve(reply("told", &[]));
    assert_eq!(agent.request()[0].content(), "late");
}
