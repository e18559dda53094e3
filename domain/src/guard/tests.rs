use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::message::{ERROR_FALLBACK_KEY, ResponseMetadata, ToolArgs, ToolMessage};

fn budget(max_tokens: u64) -> TokenBudget {
    TokenBudget { enabled: true, max_tokens, ..TokenBudget::BARE }
}

fn limits(max_tokens: u64) -> GuardLimits {
    GuardLimits {
        token_budget: Some(budget(max_tokens)),
        loops: Some(LoopLimits::default()),
        progress: None,
        delegations: Some(DelegationLimits { per_response: 3, per_run: 6 }),
        last_words: LastWords::OfLead,
        compaction: None,
    }
}

fn call(name: &str, args: &str) -> ToolCall {
    ToolCall { id: "x".into(), name: name.into(), args: ToolArgs::parse(args) }
}

fn reply(text: &str, calls: Vec<ToolCall>, tokens: u64) -> AssistantMessage {
    let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
    AssistantMessage {
        content: text.into(),
        tool_calls: calls,
        usage: (tokens > 0).then(|| Usage::new(tokens, 0)),
        response_metadata: ResponseMetadata { finish_reason: Some(finish.into()), model_name: None },
        ..AssistantMessage::default()
    }
}

fn ls(text: &str, tokens: u64) -> AssistantMessage {
    reply(text, vec![call("ls", "{\"path\": \".\"}")], tokens)
}

/// Puts each reply through the guards and records it, and gives the last one back.
fn worked(limits: GuardLimits, replies: Vec<AssistantMessage>) -> (Guards, Guarded) {
    let mut guards = Guards::new(limits);
    let mut last = None;
    for reply in replies {
        let guarded = guards.apply(reply, 0);
        guards.observe(&Message::Assistant(guarded.reply.clone()));
        last = Some(guarded);
    }
    (guards, last.unwrap())
}

fn cap(axis: CapAxis, action: CapAction, used: u64, budget: u64) -> Cap {
    Cap { axis, action, used, budget }
}

#[track_caller]
fn check_stopped(guarded: &Guarded, content: &str, caps: &[Cap]) {
    assert_eq!(guarded.reply.content, content);
    assert_eq!(guarded.reply.tool_calls, []);
    assert_eq!(guarded.reply.response_metadata.finish_reason.as_deref(), Some("stop"));
    assert_eq!(guarded.caps, caps);
    assert_eq!(guarded.dropped, []);
}

const EXCEEDED: &str = "[TOKEN BUDGET EXCEEDED] The total token budget is used up: 1,000 of 1,000 tokens. \
                        The work ends here with what was found so far.";
const FORCED: &str = "[FORCED STOP] The same tool calls were made 5 times. The work ends here with what was \
                      found so far.";

// Chain facts (f) lines 54 to 56, and 63; an empty reply becomes the note, as one without text does.
#[test]
fn a_used_up_budget_ends_the_work_and_keeps_the_words() {
    let stop = [cap(CapAxis::Tokens, CapAction::Stop, 1_000, 1_000)];
    let (_, guarded) = worked(limits(1_000), vec![ls("a", 799)]);
    assert_eq!((guarded.caps, guarded.reply), (Vec::new(), ls("a", 799)));
    let (guards, guarded) = worked(limits(1_000), vec![ls("a", 800)]);
    assert_eq!(guarded.caps, [cap(CapAxis::Tokens, CapAction::Warn, 800, 1_000)]);
    assert!(
        matches!(guards.notes().as_slice(), [note] if note.contains("800 of 1,000 total tokens are used (80%)"))
    );
    let (guards, guarded) = worked(limits(1_000), vec![ls("a", 800), ls("", 200)]);
    check_stopped(&guarded, EXCEEDED, &stop);
    assert!(guards.notes().is_empty());
    let (_, guarded) = worked(limits(1_000), vec![ls("so far", 1_000)]);
    check_stopped(&guarded, &format!("so far\n\n{EXCEEDED}"), &stop);
    let (_, guarded) = worked(limits(1_000), vec![reply("the answer", Vec::new(), 1_000)]);
    check_stopped(&guarded, &format!("the answer\n\n{EXCEEDED}"), &stop);
}

#[test]
fn a_stop_takes_the_calls_out_in_every_form_and_other_ends_stay() {
    let mut given = ls("", 1_000);
    given.response_metadata.finish_reason = Some("length".into());
    given.additional_kwargs.insert("tool_calls".into(), json!([{"id": "x"}]));
    given.additional_kwargs.insert("function_call".into(), json!({}));
    given.additional_kwargs.insert("reasoning_content".into(), json!("kept"));
    let guarded = Guards::new(limits(1_000)).apply(given, 0);
    assert_eq!(guarded.reply.response_metadata.finish_reason.as_deref(), Some("length"));
    assert_eq!(guarded.reply.additional_kwargs.keys().collect::<Vec<_>>(), ["reasoning_content"]);
}

// Chain facts (f) line 45, through the chain: the model is told once, until its next reply.
#[test]
fn a_loop_is_warned_of_once_and_then_stopped() {
    let (guards, guarded) = worked(limits(9_999), vec![ls("", 0); 3]);
    assert_eq!(guarded.caps, [cap(CapAxis::Loop, CapAction::Warn, 3, 5)]);
    assert_eq!(guarded.reply, ls("", 0));
    assert!(matches!(guards.notes().as_slice(), [note] if note.starts_with("[LOOP DETECTED]")));
    let (guards, guarded) = worked(limits(9_999), vec![ls("", 0); 4]);
    assert_eq!((guarded.caps, guards.notes()), (Vec::new(), Vec::new()));
    let (_, guarded) = worked(limits(9_999), vec![ls("", 0); 5]);
    check_stopped(&guarded, FORCED, &[cap(CapAxis::Loop, CapAction::Stop, 5, 5)]);
}

// Chain facts (a): the budget looks first, and what it stopped the loop guard finds without calls.
#[test]
fn the_budget_comes_before_the_loop_and_the_loop_before_the_limit() {
    let both = vec![ls("", 100), ls("", 100), ls("", 100), ls("", 100), ls("", 600)];
    let (_, guarded) = worked(limits(1_000), both);
    check_stopped(&guarded, EXCEEDED, &[cap(CapAxis::Tokens, CapAction::Stop, 1_000, 1_000)]);
    let mut guards = Guards::new(limits(9_999));
    let mixed = || reply("", vec![call("ls", "{}"), call("task", "{}")], 0);
    let dropped = guards.apply(mixed(), 6);
    assert_eq!((dropped.dropped.len(), dropped.caps.len()), (1, 1));
    assert_eq!(dropped.caps[0].axis, CapAxis::Delegations);
    for _ in 0..4 {
        let recorded = guards.apply(mixed(), 6).reply;
        guards.observe(&Message::Assistant(recorded));
    }
    check_stopped(&guards.apply(mixed(), 6), FORCED, &[cap(CapAxis::Loop, CapAction::Stop, 5, 5)]);
}

#[test]
fn without_limits_nothing_is_guarded() {
    let (guards, guarded) = worked(GuardLimits::default(), vec![ls("", 9_999_999); 60]);
    assert_eq!((guarded.reply, guarded.caps), (ls("", 9_999_999), Vec::new()));
    assert!(guards.notes().is_empty());
    let tasks = reply("", vec![call("task", "{}"); 9], 0);
    assert_eq!(Guards::default().apply(tasks.clone(), 99).reply, tasks);
}

#[test]
fn a_reply_in_place_of_a_failed_provider_is_left_alone() {
    let mut fallback = reply("gone", Vec::new(), 0);
    fallback.additional_kwargs.insert(ERROR_FALLBACK_KEY.into(), json!(true));
    let mut guards = Guards::new(limits(1_000));
    guards.observe(&Message::Assistant(ls("", 800)));
    guards.observe(&delegated(900));
    assert_eq!(guards.apply(fallback.clone(), 0).reply, fallback);
}

fn delegated(tokens: u64) -> Message {
    let usage = json!({"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens});
    Message::Tool(ToolMessage {
        name: TASK_TOOL.into(),
        additional_kwargs: [(TOKEN_USAGE_KEY.to_owned(), usage)].into_iter().collect(),
        ..ToolMessage::default()
    })
}

// Chain facts §1.5: usage that comes back with a delegation counts for whoever asked for it.
#[test]
fn a_leads_budget_includes_what_its_delegations_used() {
    let mut guards = Guards::new(limits(1_000));
    guards.observe(&Message::Assistant(ls("", 300)));
    guards.observe(&delegated(600));
    let guarded = guards.apply(reply("all of it", Vec::new(), 100), 0);
    check_stopped(
        &guarded,
        &format!("all of it\n\n{EXCEEDED}"),
        &[cap(CapAxis::Tokens, CapAction::Stop, 1_000, 1_000)],
    );
}

fn ended(content: &str, calls: Vec<ToolCall>, finish: &str) -> AssistantMessage {
    let mut reply = reply(content, calls, 0);
    reply.response_metadata.finish_reason = Some(finish.into());
    reply
}

// Chain facts (f) line 103, through the chain: no other guard looks at what the provider ended.
#[test]
fn line_103_a_safety_stop_comes_before_everything() {
    let safety = [cap(CapAxis::Safety, CapAction::Stop, 1, 0)];
    let (mut guards, _) = worked(limits(1_000), vec![ls("", 200); 4]);
    let guarded = guards.apply(ended("so far", vec![call("ls", "{\"path\": \".\"}")], "content_filter"), 0);
    assert_eq!((guarded.caps.as_slice(), guarded.reply.tool_calls.len()), (safety.as_slice(), 0));
    assert!(guarded.reply.content.starts_with("so far\n\n[SAFETY STOP]"), "{}", guarded.reply.content);
    guards.observe(&Message::Assistant(guarded.reply));
    assert!(guards.notes().is_empty());
    // A text alone stays as it is, and the work is over all the same.
    let text = ended("half of it", Vec::new(), "content_filter");
    let guarded = guards.apply(text.clone(), 0);
    assert_eq!((guarded.reply, guarded.caps.as_slice()), (text.clone(), safety.as_slice()));
    let old = GuardLimits { last_words: LastWords::Taken, ..limits(1_000) };
    assert_eq!(Guards::new(old).apply(text, 0).caps, []);
}

// Chain facts (f) line 104, through the chain: the answer stays, and only a person is told.
#[test]
fn line_104_a_cut_answer_is_named() {
    let cut = ended("so far", Vec::new(), "length");
    let fired = |last_words| {
        let guarded = Guards::new(GuardLimits { last_words, ..limits(1_000) }).apply(cut.clone(), 0);
        assert_eq!((&guarded.reply, guarded.caps.len()), (&cut, 0));
        guarded.fired
    };
    assert_eq!(fired(LastWords::OfLead), [(GuardTag::ModelLength, GuardAction::Named)]);
    assert_eq!(fired(LastWords::OfSubagent), []);
    assert_eq!(fired(LastWords::Taken), []);
}

// Chain facts (f) line 105, through the chain.
#[test]
fn line_105_an_empty_answer_is_asked_for_once_more() {
    let result = Message::Tool(ToolMessage { name: "ls".into(), ..ToolMessage::default() });
    let empty = || reply("", Vec::new(), 0);
    let mut guards = Guards::new(limits(1_000));
    assert_eq!(guards.apply(empty(), 0).fired, [], "no tool has returned");
    guards.observe(&result);
    let guarded = guards.apply(empty(), 0);
    assert_eq!(guarded.fired, [(GuardTag::TerminalResponse, GuardAction::AskedAgain)]);
    assert_eq!(guarded.reply, empty());
    guards.observe(&Message::Assistant(guarded.reply));
    assert_eq!((guards.notes(), guards.is_asking_again()), (vec![notes::ANSWER_MISSING.to_owned()], true));
    let guarded = guards.apply(empty(), 0);
    assert_eq!(guarded.fired, [(GuardTag::TerminalResponse, GuardAction::GaveUp)]);
    assert!(guarded.reply.is_error_fallback());
    guards.observe(&Message::Assistant(guarded.reply));
    assert_eq!((guards.notes().len(), guards.is_asking_again()), (0, false));
    // What used up the tokens is not asked for again.
    let mut spent = Guards::new(limits(1_000));
    spent.observe(&result);
    let guarded = spent.apply(AssistantMessage { usage: Some(Usage::new(1_000, 0)), ..empty() }, 0);
    assert_eq!(guarded.fired, []);
    check_stopped(&guarded, EXCEEDED, &[cap(CapAxis::Tokens, CapAction::Stop, 1_000, 1_000)]);
}

fn arb_message() -> impl Strategy<Value = Message> {
    let calls = prop::collection::vec(0_usize..3, 0..3);
    let said = (calls, prop::option::of(0_u64..200)).prop_map(|(calls, tokens)| {
        let calls = calls.into_iter().map(|at| call(["ls", "bash", "grep"][at], "{}")).collect();
        Message::Assistant(AssistantMessage {
            usage: tokens.map(|tokens| Usage::new(tokens, tokens / 2)),
            ..reply("", calls, 0)
        })
    });
    prop_oneof![4 => said, 1 => (0_u64..200).prop_map(delegated), 1 => Just(Message::human("go on"))]
}

proptest! {
    /// After any prefix, an agent that is resumed from the record has the counters of one that was
    /// never interrupted, and they are those of a recount; so both judge the next reply alike.
    #[test]
    fn a_resumed_agent_counts_like_an_uninterrupted_one(
        history in prop::collection::vec(arb_message(), 0..40),
        next in prop::collection::vec(0_usize..3, 0..3),
    ) {
        let mut live = Guards::new(limits(5_000));
        let next: Vec<_> = next.into_iter().map(|at| call(["ls", "bash", "grep"][at], "{}")).collect();
        let mut recorded = Vec::new();
        let mut used = 0;
        for message in history {
            // What is recorded is what the guards let through.
            let message = match message {
                Message::Assistant(reply) => Message::Assistant(live.apply(reply, 0).reply),
                other @ (Message::System(_) | Message::Human(_) | Message::Tool(_)) => other,
            };
            used += match &message {
                Message::Assistant(reply) => reply.usage.map_or(0, |usage| usage.input_tokens + usage.output_tokens),
                Message::Tool(result) => result.additional_kwargs[TOKEN_USAGE_KEY]["input_tokens"].as_u64().unwrap(),
                Message::System(_) | Message::Human(_) => 0,
            };
            live.observe(&message);
            recorded.push(serde_json::to_string(&message).unwrap());
            let mut resumed = Guards::new(limits(5_000));
            for line in &recorded {
                resumed.observe(&serde_json::from_str(line).unwrap());
            }
            prop_assert_eq!(&live, &resumed);
            let judged = resumed.apply(reply("", next.clone(), 5_000), 0);
            prop_assert_eq!(&judged, &live.apply(reply("", next.clone(), 5_000), 0));
            prop_assert_eq!(judged.caps, [cap(CapAxis::Tokens, CapAction::Stop, used + 5_000, 5_000)]);
        }
    }
}
