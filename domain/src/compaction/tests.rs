use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    event::{Compaction, CompactionOutcome, SummaryFailure},
    message::{AssistantMessage, Message, ToolArgs, ToolCall, ToolMessage},
    usage::Usage,
};

fn reply(calls: &[&str]) -> Message {
    let call = |id: &&str| ToolCall { id: (*id).into(), name: "ls".into(), args: ToolArgs::parse("{}") };
    let tool_calls = calls.iter().map(call).collect();
    Message::Assistant(AssistantMessage { content: "t".into(), tool_calls, ..AssistantMessage::default() })
}

fn result(id: &str) -> Message {
    Message::Tool(ToolMessage { tool_call_id: id.into(), name: "ls".into(), ..ToolMessage::default() })
}

/// A conversation in letters: `h` a person, `r` a reply, `2` a reply with two calls, `t` a result.
fn conversation(letters: &str) -> Conversation {
    let mut ids = Vec::new();
    let messages: Vec<Message> = letters
        .char_indices()
        .map(|(at, letter)| match letter {
            'h' => Message::human(format!("h{at}")),
            'r' => reply(&[]),
            't' => result(&ids.pop().unwrap_or_else(|| "orphan".to_owned())),
            digit => {
                let count = digit.to_digit(10).unwrap();
                ids = (0..count).map(|call| format!("{at}-{call}")).rev().collect();
                let named: Vec<&str> = ids.iter().rev().map(String::as_str).collect();
                reply(&named)
            }
        })
        .collect();
    messages.into()
}

fn rules(trigger: &[Extent], keep: Extent) -> CompactionRules {
    let context_tokens = Some(1_000);
    CompactionRules { trigger: trigger.to_vec(), keep, trim_tokens: Some(100), prompt: None, context_tokens }
}

fn always(keep: Extent) -> CompactionRules {
    rules(&[Extent::Messages(1)], keep)
}

/// What stays of a conversation: its newest messages, and older ones as places from the end.
#[track_caller]
fn check_kept(letters: &str, keep: Extent, expected: Option<(u32, &[u32])>) {
    let plan = always(keep).plan(&conversation(letters), None);
    let kept = plan.as_ref().map(|plan| (plan.kept, plan.protected.as_slice()));
    assert_eq!(kept, expected, "{letters} under {keep:?}");
}

// Chain facts §2.9 "Cutoff" and "Rescue", and (f) line 118.
#[test]
fn line_118_a_reply_stays_with_its_results() {
    let messages = Extent::Messages;
    check_kept("hrhrhr", messages(2), Some((2, &[])));
    check_kept("hrhrhr", messages(1), Some((1, &[2])));
    check_kept("h3tttr", messages(1), Some((1, &[6])));
    for inside in 2..=5 {
        check_kept("h3tttr", messages(inside), None);
    }
    check_kept("hr2ttr", messages(2), Some((4, &[6])));
    check_kept("hr2tt1tr", messages(4), Some((6, &[8])));
    // Results that no reply stands before stay together with nothing.
    check_kept("hrhttr", messages(2), Some((1, &[4])));
    // The task is all that was asked at once; earlier requests go.
    check_kept("hrhh1t1t", messages(2), Some((2, &[6, 5])));
    // Nothing goes, so nothing is asked of a model.
    check_kept("h1t", messages(2), None);
    check_kept("hr", messages(20), None);
    check_kept("", messages(1), None);
}

#[test]
fn tokens_keep_the_longest_newest_part_and_always_the_newest_message() {
    // Each of these messages is 4 or 5 tokens.
    check_kept("hrhrhr", Extent::Tokens(0), Some((1, &[2])));
    check_kept("hrhrhr", Extent::Tokens(9), Some((2, &[])));
    check_kept("hrhrhr", Extent::Tokens(10_000), None);
    // The newest reply and its results are over the budget, and stay whole.
    check_kept("hr3ttt", Extent::Tokens(1), Some((4, &[6])));
    check_kept("hrhrhr", Extent::Fraction(0.009), Some((2, &[])));
    check_kept("hrhrhr", Extent::Fraction(1.0), None);
    let unknown = CompactionRules { context_tokens: None, ..always(Extent::Fraction(0.1)) };
    assert_eq!(unknown.plan(&conversation(&"hr".repeat(10)), None), None);
    assert_eq!(unknown.plan(&conversation(&"hr".repeat(11)), None).unwrap().kept, 20);
}

#[track_caller]
fn check_trigger(trigger: &[Extent], reported: Option<u64>, expected: Option<(CompactionUnit, u64, u64)>) {
    let plan = rules(trigger, Extent::Messages(1)).plan(&conversation("hrhrhrhrhr"), reported);
    let found = plan.map(|plan| (plan.trigger.unit, plan.trigger.used, plan.trigger.limit));
    assert_eq!(found, expected, "{trigger:?} with {reported:?}");
}

// Chain facts §2.9: none (never), one, or any of a list.
#[test]
fn any_of_the_triggers_starts_it() {
    use CompactionUnit as U;
    let all = estimate::tokens(&conversation("hrhrhrhrhr"), None);
    check_trigger(&[], None, None);
    check_trigger(&[Extent::Messages(11)], None, None);
    check_trigger(&[Extent::Messages(10)], None, Some((U::Messages, 10, 10)));
    check_trigger(&[Extent::Tokens(all + 1)], None, None);
    check_trigger(&[Extent::Tokens(all)], None, Some((U::Tokens, all, all)));
    check_trigger(&[Extent::Fraction(1.0)], None, None);
    check_trigger(&[Extent::Fraction(0.02)], None, Some((U::Fraction, all, 20)));
    check_trigger(&[Extent::Messages(99), Extent::Tokens(1)], None, Some((U::Tokens, all, 1)));
    // What the provider reported counts, and lifts the estimate by a quarter at most.
    check_trigger(&[Extent::Tokens(9_000)], Some(9_000), Some((U::Tokens, 9_000, 9_000)));
    check_trigger(&[Extent::Tokens(all + 2)], Some(all + 2), Some((U::Tokens, all + 2, all + 2)));
    assert_eq!(estimate::tokens(&conversation("hrhrhrhrhr"), Some(99_999)), all * 125 / 100);
}

#[test]
fn an_earlier_summary_counts_as_one_more_message() {
    let mut conversation = conversation("hrhrhrhr");
    let plan = always(Extent::Messages(3)).plan(&conversation, None).unwrap();
    conversation.compact(&plan.done("m", "sum", None, Vec::new()));
    assert_eq!((conversation.messages().len(), conversation.summary()), (3, Some("sum")));
    let limit = |messages| rules(&[Extent::Messages(messages)], Extent::Messages(1));
    assert!(limit(5).plan(&conversation, None).is_none());
    let plan = limit(4).plan(&conversation, None).unwrap();
    assert!(plan.request[1].content().contains("<existing_summary>\nsum\n</existing_summary>"));
}

#[test]
fn an_unknown_context_has_no_share() {
    let rules =
        CompactionRules { context_tokens: None, ..rules(&[Extent::Fraction(0.000_1)], Extent::Messages(1)) };
    assert_eq!(rules.plan(&conversation("hrhrhr"), None), None);
}

// Chain facts §2.9: ceil(chars/4) + 3 with role, name and calls.
#[test]
fn a_message_is_a_quarter_of_its_characters_and_three() {
    let call = ToolCall { id: "id".into(), name: "ls".into(), args: ToolArgs::parse("{\"a\":1}") };
    let calling =
        Message::Assistant(AssistantMessage { tool_calls: vec![call], ..AssistantMessage::default() });
    let answering = ToolMessage {
        content: "漢字".into(),
        tool_call_id: "id".into(),
        name: "ls".into(),
        ..ToolMessage::default()
    };
    for (message, tokens) in [
        (Message::human("abc"), 2 + 3),
        (Message::human("abcd"), 3 + 3),
        (calling, 4 + 3), // ai, id, ls and {"a":1} are 13 characters
        (Message::Tool(answering), 3 + 3),
    ] {
        assert_eq!(estimate::of_message(&message), tokens, "{message:?}");
    }
}

#[test]
fn the_configured_model_is_asked_first_and_each_once() {
    let settings = |model_name: Option<&str>| CompactionSettings {
        trigger: Vec::new(),
        keep: Extent::Messages(1),
        trim_tokens: None,
        model_name: model_name.map(str::to_owned),
        prompt: None,
        context_tokens: [("own".to_owned(), 9_000)].into(),
    };
    assert_eq!(settings(None).candidates("own"), ["own"]);
    assert_eq!(settings(Some("small")).candidates("own"), ["small", "own"]);
    assert_eq!(settings(Some("own")).candidates("own"), ["own"]);
    assert_eq!(settings(None).rules("own").context_tokens, Some(9_000));
    assert_eq!(settings(None).rules("other").context_tokens, None);
}

#[test]
fn what_is_recorded_counts_before_and_after() {
    let plan = always(Extent::Messages(2)).plan(&conversation("hr1tr1t"), None).unwrap();
    let failure = SummaryFailure {
        model_name: "small".into(),
        reason: "blank".into(),
        error: "e".into(),
        usage: Some(Usage::new(5, 0)),
    };
    let done = plan.done("own", " sum ", Some(Usage::new(10, 2)), vec![failure.clone()]);
    let compacted = done.compacted().unwrap();
    assert_eq!((done.messages_before, compacted.messages_after, compacted.kept), (7, 3, 2));
    assert_eq!((compacted.summary.as_str(), compacted.protected.as_slice()), ("sum", &[7][..]));
    assert!(compacted.tokens_after < done.tokens_before);
    assert_eq!(done.usage(), Some(Usage::new(15, 2)));
    assert_eq!(done.calls().map(|(name, _)| name).collect::<Vec<_>>(), ["small", "own"]);
    let failed = plan.failed(vec![failure]);
    assert_eq!((failed.usage(), failed.compacted()), (Some(Usage::new(5, 0)), None));
    let long = plan.done("own", &"x".repeat(40_000), None, Vec::new());
    assert_eq!(long.compacted().unwrap().summary.chars().count(), 32_000);
}

// The line that conversations of erased runs draw: places mean messages that are not there.
#[test]
fn a_place_that_means_something_else_by_now_keeps_nothing_else() {
    let plan = always(Extent::Messages(1)).plan(&conversation("hrh1t1tr"), None).unwrap();
    assert_eq!((plan.kept, plan.protected.clone()), (1, vec![6]));
    let done = plan.done("m", "s", None, Vec::new());
    for (letters, left) in [("hrh1t1tr", 2), ("h1t1tr", 2), ("1t1tr", 1), ("hrr1t1tr", 1), ("r", 1), ("", 0)]
    {
        let mut conversation = conversation(letters);
        conversation.compact(&done);
        assert_eq!(conversation.messages().len(), left, "{letters}");
        assert_eq!(conversation.summary(), Some("s"));
    }
}

/// What a thread can hold: requests, and turns with their results.
fn histories() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        2 => Just("h".to_owned()),
        2 => Just("r".to_owned()),
        3 => (1_usize..4).prop_map(|calls| format!("{calls}{}", "t".repeat(calls))),
    ];
    prop::collection::vec(part, 0..14).prop_map(|parts| parts.concat())
}

fn extents() -> impl Strategy<Value = Extent> {
    prop_oneof![
        (1_u32..12).prop_map(Extent::Messages),
        (1_u64..60).prop_map(Extent::Tokens),
        (0.001_f64..0.06).prop_map(Extent::Fraction),
    ]
}

/// Each reply's calls with the ids of the results right behind it.
fn pairs(messages: &[Message]) -> Vec<(Vec<String>, Vec<String>)> {
    let mut pairs: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for message in messages {
        match message {
            Message::Assistant(reply) => {
                let calls = reply.tool_calls.iter().map(|call| call.id.clone()).collect();
                pairs.push((calls, Vec::new()));
            }
            Message::Tool(result) => {
                let (_, results) = pairs.last_mut().expect("a reply stands before each result");
                results.push(result.tool_call_id.clone());
            }
            Message::System(_) | Message::Human(_) => {}
        }
    }
    pairs
}

proptest! {
    #[test]
    fn pairs_are_never_split_and_what_stays_is_the_newest_part_and_the_task(
        letters in histories(), keep in extents(), trigger in extents(),
    ) {
        let before = conversation(&letters);
        let Some(plan) = rules(&[trigger], keep).plan(&before, None) else { return Ok(()) };
        let mut after = before.clone();
        after.compact(&plan.done("m", "sum", None, Vec::new()));

        let kept = usize::try_from(plan.kept).unwrap();
        let (old, newest) = before.messages().split_at(before.messages().len() - kept);
        let (protected, still_newest) = after.messages().split_at(plan.protected.len());
        prop_assert_eq!(newest, still_newest);
        prop_assert!(!newest.is_empty());
        prop_assert!(after.messages().len() < before.messages().len(), "something goes");

        // The task is what was asked last, whole and in order.
        let asked = |messages: &[Message]| {
            let last = messages.iter().rposition(|one| matches!(one, Message::Human(_)));
            let upto = last.map_or(&[][..], |last| &messages[..=last]);
            let block = upto.iter().rev().take_while(|one| matches!(one, Message::Human(_)));
            let mut block: Vec<Message> = block.cloned().collect();
            block.reverse();
            block
        };
        let task = asked(before.messages());
        prop_assert!(after.messages().windows(task.len().max(1)).any(|part| part == task) || task.is_empty());
        for one in protected {
            prop_assert!(task.contains(one) && old.contains(one));
        }
        // Every reply that stays has all of its results, and no result stays without its reply.
        for (calls, results) in pairs(after.messages()) {
            prop_assert_eq!(calls, results);
        }
        // What is told again is told in full, and failing changes nothing.
        prop_assert_eq!(after.summary(), Some("sum"));
        let mut untouched = before.clone();
        untouched.compact(&plan.failed(Vec::new()));
        prop_assert_eq!(untouched, before);
    }

    // Nobody is asked again and again: what was compacted is shorter or is left alone.
    #[test]
    fn compacting_comes_to_an_end(letters in histories(), keep in extents()) {
        let mut conversation = conversation(&letters);
        let mut before = conversation.messages().len();
        while let Some(plan) = always(keep).plan(&conversation, None) {
            conversation.compact(&plan.done("m", "s", None, Vec::new()));
            prop_assert!(conversation.messages().len() < before);
            before = conversation.messages().len();
        }
    }

    // The estimate never panics and never shrinks when something is said.
    #[test]
    fn more_is_more(letters in histories(), reported in prop::option::of(0_u64..100_000)) {
        let short = conversation(&letters);
        let long = conversation(&format!("{letters}h"));
        prop_assert!(estimate::tokens(&long, reported) > estimate::tokens(&short, reported));
    }
}

#[test]
fn an_event_reads_back_from_what_it_stores() {
    let plan = always(Extent::Messages(1)).plan(&conversation("hrhr"), None).unwrap();
    for compaction in [plan.done("m", "s", Some(Usage::new(1, 1)), Vec::new()), plan.failed(Vec::new())] {
        let stored = serde_json::to_string(&compaction).unwrap();
        assert_eq!(serde_json::from_str::<Compaction>(&stored).unwrap(), compaction);
    }
    let failed = serde_json::to_value(plan.failed(Vec::new())).unwrap();
    assert_eq!(failed["outcome"], json!("failed"));
    assert!(matches!(plan.failed(Vec::new()).outcome, CompactionOutcome::Failed));
    let stored = json!({"trigger": [{"tokens": 32_000}], "keep": {"messages": 10}});
    let settings: CompactionSettings = serde_json::from_value(stored.clone()).unwrap();
    assert_eq!((settings.trim_tokens, &serde_json::to_value(&settings).unwrap()), (None, &stored));
}
