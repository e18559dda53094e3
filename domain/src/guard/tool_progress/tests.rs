use super::*;
use crate::{message::ToolStatus, tool_meta::analyse};

fn result(content: &str) -> ToolMessage {
    let status = ToolStatus::Success;
    let mut result =
        ToolMessage { content: content.into(), name: "search".into(), status, ..ToolMessage::default() };
    analyse(&result).stamp(&mut result);
    result
}

fn actions(progress: &mut ToolProgress, contents: &[&str]) -> Vec<Option<ProgressAction>> {
    let limits = ProgressLimits::default();
    let judge = |content: &&str| progress.judge(&result(content), &limits).map(|stalled| stalled.action);
    contents.iter().map(judge).collect()
}

const WARNED: Option<ProgressAction> = Some(ProgressAction::Warned);
const BLOCKED: Option<ProgressAction> = Some(ProgressAction::Blocked);

// Chain facts (f) line 97.
#[test]
fn line_97_five_time_outs_block_a_tool_after_two_hints() {
    let mut progress = ToolProgress::default();
    let found = actions(&mut progress, &["Error: timed out"; 5]);
    assert_eq!(found, [None, None, WARNED, WARNED, BLOCKED]);
    assert_eq!(progress.hints().len(), 2, "{:?}", progress.hints());
    let refused = progress.blocked("search").unwrap();
    assert_eq!((refused.problems, refused.error_type), (5, Some(ToolErrorType::Transient)));
    assert_eq!(progress.blocked("fetch"), None);
}

// Chain facts (f) line 97.
#[test]
fn line_97_who_finds_nothing_is_warned_and_never_blocked() {
    let mut progress = ToolProgress::default();
    let found = actions(&mut progress, &["No results found"; 8]);
    assert_eq!(found, [None, None, WARNED, WARNED, WARNED, WARNED, WARNED, WARNED]);
    assert_eq!((progress.blocked("search"), progress.hints().len()), (None, HINTS_MAX));
    progress.told();
    assert!(progress.hints().is_empty());
}

// Chain facts (f) line 97.
#[test]
fn line_97_a_tool_without_leave_is_blocked_at_once_and_only_in_this_work() {
    let mut progress = ToolProgress::default();
    assert_eq!(actions(&mut progress, &["Error: 401 unauthorized"]), [BLOCKED]);
    assert!(progress.hints().is_empty());
    assert_eq!(ToolProgress::default().blocked("search"), None);
}

#[test]
fn one_good_result_makes_up_for_all_before() {
    let mut progress = ToolProgress::default();
    let fails = "Error: timed out";
    let found = actions(&mut progress, &[fails, fails, "good", fails, fails, fails]);
    assert_eq!(found, [None, None, None, None, None, WARNED]);
}

#[test]
fn what_was_said_before_brings_nothing() {
    let said = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen";
    let mut progress = ToolProgress::default();
    let found = actions(&mut progress, &[said, said, said, said]);
    assert_eq!(found, [None, None, None, WARNED]);
    let other: String = said.split(' ').map(|word| format!("{word}x ")).collect();
    assert_eq!(actions(&mut progress, &[&other, said]), [None, None]);
    assert_eq!(actions(&mut ToolProgress::default(), &["short"; 5]), [None; 5]);
}

#[test]
fn exempt_tools_refused_calls_and_results_without_a_worth_count_nothing() {
    let (mut progress, limits) = (ToolProgress::default(), ProgressLimits::default());
    for _ in 0..5 {
        let mut delegated = result("Error: timed out");
        delegated.name = "task".into();
        assert_eq!(progress.judge(&delegated, &limits), None);
        let mut unsaid = result("Error: timed out");
        unsaid.additional_kwargs.clear();
        assert_eq!(progress.judge(&unsaid, &limits), None);
        let mut refused = result("Error: timed out");
        ToolMeta::BLOCKED.stamp(&mut refused);
        let stalled = progress.judge(&refused, &limits).unwrap();
        assert_eq!((stalled.action, stalled.problems), (ProgressAction::Refused, 0));
    }
    assert!(progress.hints().is_empty());
}

#[test]
fn without_hints_the_model_is_told_nothing() {
    let limits = ProgressLimits { inject_assessment: false, ..ProgressLimits::default() };
    let mut progress = ToolProgress::default();
    let judged = (0..3).filter_map(|_| progress.judge(&result("Error: timed out"), &limits)).count();
    assert_eq!((judged, progress.hints().len()), (1, 0));
}
