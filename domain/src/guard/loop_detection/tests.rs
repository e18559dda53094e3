use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::message::ToolArgs;

fn call(name: &str, args: Value) -> ToolCall {
    let args = ToolArgs::parse(args.as_str().unwrap_or(&args.to_string()));
    ToolCall { id: "x".into(), name: name.into(), args }
}

#[track_caller]
fn check_hash(name: &str, args: Value, expected: &str) {
    assert_eq!(call_set_hash(&[call(name, args.clone())]), expected, "{name} {args}");
}

// Chain facts (f) line 41.
#[test]
fn the_vectors_of_salient_arguments() {
    assert_eq!(call_set_hash(&[]), "d75171398898");
    check_hash("bash", json!({"command": "ls"}), "644d05a19cdd");
    check_hash("bash", json!({"command": "ls", "description": "look"}), "644d05a19cdd");
    check_hash("bash", json!("{\"command\": \"ls\"}"), "644d05a19cdd");
    check_hash("bash", json!("echo hello"), "1382ad400226");
    check_hash("ping", json!({}), "712a6899e3eb");
}

// Chain facts (f) line 42.
#[test]
fn the_vectors_of_line_buckets() {
    let lines = |start: u64, end: u64| json!({"path": "/tmp/demo.py", "start_line": start, "end_line": end});
    check_hash("read_file", lines(1, 150), "736984887cfd");
    check_hash("read_file", json!({"path": "/tmp/demo.py"}), "736984887cfd");
    check_hash("read_file", lines(10, 300), "1d5ebcdc2646");
    check_hash("read_file", lines(300, 10), "1d5ebcdc2646");
    check_hash(
        "read_file",
        json!({"path": "/tmp/demo.py", "start_line": -4, "end_line": "x"}),
        "736984887cfd",
    );
}

// Chain facts (f) line 43.
#[test]
fn the_vectors_of_whole_arguments() {
    check_hash("write_file", json!({"path": "/tmp/a.py", "content": "v1"}), "6604026994e8");
    let task = json!({"prompt": "p", "description": "d", "subagent_type": "general-purpose"});
    check_hash("task", task, "7e6c5df82dcb");
    check_hash("web_search", json!({"query": "订单"}), "722377154e2d");
}

// Chain facts (f) line 44.
#[test]
fn the_order_of_calls_does_not_matter() {
    let (a, b) = (call("ls", json!({"path": "a"})), call("ls", json!({"path": "b"})));
    assert_eq!(call_set_hash(&[a.clone(), b.clone()]), call_set_hash(&[b, a]));
}

#[test]
fn what_is_not_an_object_keeps_its_meaning() {
    assert_eq!(call_set_hash(&[call("ls", json!("[1,2]"))]), call_set_hash(&[call("ls", json!("[1,  2]"))]));
    assert_ne!(call_set_hash(&[call("ls", json!("[1,2"))]), call_set_hash(&[call("ls", json!("[1, 2"))]));
}

fn judged(limits: &LoopLimits, replies: &[Vec<ToolCall>]) -> Vec<Finding<Repeat>> {
    let mut watch = LoopWatch::default();
    replies.iter().map(|calls| watch.judge(calls, limits)).collect()
}

/// The replies, counted from 1, at which something was found.
#[track_caller]
fn check(limits: &LoopLimits, replies: &[Vec<ToolCall>], expected: &[(usize, Finding<Repeat>)]) {
    let found = judged(limits, replies).into_iter().enumerate().map(|(at, found)| (at + 1, found));
    let found: Vec<_> = found.filter(|(_, found)| *found != Finding::Fine).collect();
    assert_eq!(found, expected);
}

fn same(count: u32) -> Repeat {
    Repeat { what: Repeated::Calls, count, hard_limit: 5 }
}

fn tool(name: &str, count: u32, hard_limit: u32) -> Repeat {
    Repeat { what: Repeated::Tool(name.into()), count, hard_limit }
}

fn bash(at: usize) -> Vec<ToolCall> {
    vec![call("bash", json!({"command": format!("echo {at}")}))]
}

// Chain facts (f) line 45.
#[test]
fn the_third_repeat_warns_once_and_the_fifth_stops() {
    let five = vec![bash(0); 5];
    check(&LoopLimits::default(), &five, &[(3, Finding::Warn(same(3))), (5, Finding::Stop(same(5)))]);
}

#[test]
fn repeats_need_not_follow_each_other() {
    let mixed: Vec<_> = (0..5).flat_map(|at| [bash(99), bash(at)]).collect();
    check(&LoopLimits::default(), &mixed, &[(5, Finding::Warn(same(3))), (9, Finding::Stop(same(5)))]);
    check(&LoopLimits::default(), &vec![Vec::new(); 60], &[]);
}

// Chain facts (f) line 47.
#[test]
fn one_tool_with_ever_new_arguments_is_warned_and_stopped() {
    let fifty: Vec<_> = (0..50).map(bash).collect();
    let expected = [(30, Finding::Warn(tool("bash", 30, 50))), (50, Finding::Stop(tool("bash", 50, 50)))];
    check(&LoopLimits::default(), &fifty, &expected);
    let at_once: Vec<_> = (0..50).flat_map(bash).collect();
    check(&LoopLimits::default(), &[at_once], &[(1, Finding::Warn(tool("bash", 30, 50)))]);
    let nameless: Vec<_> = (0..60).map(|at| vec![call("", json!({"n": at}))]).collect();
    check(&LoopLimits::default(), &nameless, &[]);
}

// Chain facts (f) line 48.
#[test]
fn what_the_window_has_forgotten_does_not_count() {
    let tools = ["a", "b", "c", "d", "e"];
    let other = |at: usize| vec![call(tools[at % 5], json!({"path": format!("{at}")}))];
    let decayed = (0..6)
        .flat_map(|round| std::iter::once(bash(0)).chain((0..19).map(move |at| other(round * 19 + at))));
    check(&LoopLimits::default(), &decayed.collect::<Vec<_>>(), &[]);
    let short = LoopLimits { tool_freq_warn: 1_000, tool_freq_hard_limit: 1_000, ..LoopLimits::default() };
    let again: Vec<_> = [vec![bash(0); 4], (1..21).map(bash).collect(), vec![bash(0); 3]].concat();
    check(&short, &again, &[(3, Finding::Warn(same(3))), (27, Finding::Warn(same(3)))]);
}

// Chain facts (f) line 49.
#[test]
fn a_tool_can_have_limits_of_its_own() {
    let frequency = ToolFrequency { warn: 900, hard_limit: 1_000 };
    let limits =
        LoopLimits { tool_freq_overrides: [("bash".to_owned(), frequency)].into(), ..LoopLimits::default() };
    check(&limits, &(0..60).map(bash).collect::<Vec<_>>(), &[]);
    let read = |at: usize| vec![call("read_file", json!({"path": format!("{at}")}))];
    let expected =
        [(30, Finding::Warn(tool("read_file", 30, 50))), (50, Finding::Stop(tool("read_file", 50, 50)))];
    check(&limits, &(0..50).map(read).collect::<Vec<_>>(), &expected);
}

// Decided otherwise than chain facts §1.6: 50 delegations are what a run may be allowed, and the
// 50th is not a loop.
#[test]
fn delegations_count_by_tool_only_where_somebody_says_so() {
    let task = |at: usize| vec![call("task", json!({"prompt": format!("part {at}")}))];
    let fifty: Vec<_> = (0..50).map(task).collect();
    check(&LoopLimits::default(), &fifty, &[]);
    let frequency = ToolFrequency { warn: 2, hard_limit: 4 };
    let limits =
        LoopLimits { tool_freq_overrides: [("task".to_owned(), frequency)].into(), ..LoopLimits::default() };
    let expected = [(2, Finding::Warn(tool("task", 2, 4))), (4, Finding::Stop(tool("task", 4, 4)))];
    check(&limits, &fifty[..4], &expected);
    // The same delegations again and again are a loop all the same.
    let same_task = vec![task(0); 5];
    check(&LoopLimits::default(), &same_task, &[(3, Finding::Warn(same(3))), (5, Finding::Stop(same(5)))]);
}

// Chain facts §1.6: a warning about the set of calls leaves the tools uncounted for that reply.
#[test]
fn a_warned_reply_is_not_counted_by_tool() {
    let repeats = [vec![bash(0); 3], (1..60).map(bash).collect::<Vec<_>>()].concat();
    let expected = [
        (3, Finding::Warn(same(3))),
        (31, Finding::Warn(tool("bash", 30, 50))),
        (51, Finding::Stop(tool("bash", 50, 50))),
    ];
    check(&LoopLimits::default(), &repeats[..51], &expected);
}

proptest! {
    /// Counting one by one gives what counting the last replies from scratch gives.
    #[test]
    fn the_window_counts_like_a_recount(picks in prop::collection::vec(0_usize..4, 0..60)) {
        let limits = LoopLimits { tool_freq_warn: 9_999, tool_freq_hard_limit: 9_999, ..LoopLimits::default() };
        let replies: Vec<_> = picks.iter().map(|pick| bash(*pick)).collect();
        for (at, found) in judged(&limits, &replies).into_iter().enumerate() {
            let seen = &picks[(at + 1).saturating_sub(20)..=at];
            let count = u32::try_from(seen.iter().filter(|pick| **pick == picks[at]).count()).unwrap();
            match found {
                Finding::Stop(repeat) => prop_assert_eq!((repeat.count, count >= 5), (count, true)),
                Finding::Warn(repeat) => prop_assert_eq!((repeat.count, (3..5).contains(&count)), (count, true)),
                Finding::Fine => prop_assert!(count < 5),
            }
        }
    }

    /// The same for tools, as long as no warning is in between.
    #[test]
    fn the_frequency_counts_like_a_recount(picks in prop::collection::vec(0_usize..3, 0..120)) {
        let limits = LoopLimits {
            warn_threshold: 999, hard_limit: 999, tool_freq_warn: 20, tool_freq_hard_limit: 20, ..LoopLimits::default()
        };
        let names = ["a", "b", "c"];
        let replies: Vec<_> = picks.iter().map(|pick| vec![call(names[*pick], json!({}))]).collect();
        for (at, found) in judged(&limits, &replies).into_iter().enumerate() {
            let seen = &picks[(at + 1).saturating_sub(20)..=at];
            let is_all_one = seen.len() == 20 && seen.iter().all(|pick| *pick == picks[at]);
            prop_assert_eq!(matches!(found, Finding::Stop(_)), is_all_one);
        }
    }
}
