//! The hard cap on `task` calls per response and per run (chain facts §1.1), independent of what
//! the prompt says.

use crate::{
    event::{Cap, CapAction, CapAxis, RefusalReason},
    guard::{append_note, notes, settle_finish},
    message::{AssistantMessage, ToolCall},
    tool_spec::TASK_TOOL,
};

/// How many delegations a run may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DelegationLimits {
    /// Per response.
    pub per_response: u32,
    /// Per run.
    pub per_run: u32,
}

/// A reply after the cap.
#[derive(Debug, Clone, PartialEq)]
pub struct Limited {
    /// The reply, with the calls that may go on.
    pub reply: AssistantMessage,
    /// The calls that were dropped, in call order, with the reason for each.
    pub dropped: Vec<(ToolCall, RefusalReason)>,
    /// The cap to record, when the run has no delegation left.
    pub cap: Option<Cap>,
}

/// Keeps the first `task` calls that the limits allow, and every other call. `prior` counts the
/// delegations that this run has requested before.
pub fn limit(reply: AssistantMessage, limits: DelegationLimits, prior: u32) -> Limited {
    let remaining = limits.per_run.saturating_sub(prior);
    let allowed = limits.per_response.min(remaining);
    let asked = reply.tool_calls.iter().filter(|call| is_task(call)).count();
    if u32::try_from(asked).is_ok_and(|asked| asked <= allowed) {
        return Limited { reply, dropped: Vec::new(), cap: None };
    }
    let mut limited = drop_excess(reply, allowed, remaining);
    if remaining == 0 {
        append_note(&mut limited.reply, notes::SUBAGENT_LIMIT_REACHED);
        limited.cap = Some(Cap {
            axis: CapAxis::Delegations,
            action: CapAction::Stop,
            used: u64::from(prior),
            budget: u64::from(limits.per_run),
        });
    }
    limited
}

fn drop_excess(mut reply: AssistantMessage, allowed: u32, remaining: u32) -> Limited {
    let (mut kept, mut dropped, mut tasks) = (Vec::new(), Vec::new(), 0_u32);
    for call in std::mem::take(&mut reply.tool_calls) {
        tasks += u32::from(is_task(&call));
        if !is_task(&call) || tasks <= allowed {
            kept.push(call);
        } else {
            let reason =
                if tasks > remaining { RefusalReason::PerRunLimit } else { RefusalReason::PerResponseLimit };
            dropped.push((call, reason));
        }
    }
    reply.tool_calls = kept;
    settle_finish(&mut reply);
    Limited { reply, dropped, cap: None }
}

fn is_task(call: &ToolCall) -> bool {
    call.name == TASK_TOOL
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ResponseMetadata, ToolArgs};

    struct Row {
        calls: &'static [&'static str],
        limits: (u32, u32),
        prior: u32,
        kept: &'static [&'static str],
        is_exhausted: bool,
    }

    fn reply(calls: &[&str]) -> AssistantMessage {
        let named = |id: &&str| {
            let name = if id.starts_with('t') { TASK_TOOL } else { "bash" };
            ToolCall { id: (*id).into(), name: name.into(), args: ToolArgs::parse("") }
        };
        AssistantMessage {
            content: "hello".into(),
            tool_calls: calls.iter().map(named).collect(),
            response_metadata: ResponseMetadata {
                finish_reason: Some("tool_calls".into()),
                model_name: None,
            },
            ..AssistantMessage::default()
        }
    }

    #[track_caller]
    fn check(row: &Row) {
        let given = reply(row.calls);
        let limits = DelegationLimits { per_response: row.limits.0, per_run: row.limits.1 };
        let limited = limit(given.clone(), limits, row.prior);
        let kept: Vec<_> = limited.reply.tool_calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(kept, row.kept);
        assert_eq!(limited.dropped.len(), row.calls.len() - row.kept.len());
        let note = format!("hello\n\n{}", notes::SUBAGENT_LIMIT_REACHED);
        assert_eq!(limited.reply.content, if row.is_exhausted { &note } else { "hello" });
        assert_eq!(limited.cap.is_some(), row.is_exhausted);
        let finish = if row.kept.is_empty() { "stop" } else { "tool_calls" };
        assert_eq!(limited.reply.response_metadata.finish_reason.as_deref(), Some(finish));
    }

    // Chain facts (f) lines 1-5 and facts §12 lines 22-26.
    #[test]
    fn the_first_allowed_calls_stay() {
        check(&Row {
            calls: &["t1", "t2", "t3"],
            limits: (3, 6),
            prior: 0,
            kept: &["t1", "t2", "t3"],
            is_exhausted: false,
        });
        check(&Row {
            calls: &["t1", "t2", "t3", "t4", "t5"],
            limits: (3, 6),
            prior: 0,
            kept: &["t1", "t2", "t3"],
            is_exhausted: false,
        });
        check(&Row {
            calls: &["t1", "t2", "t3"],
            limits: (3, 6),
            prior: 5,
            kept: &["t1"],
            is_exhausted: false,
        });
        check(&Row { calls: &["t1"], limits: (3, 6), prior: 6, kept: &[], is_exhausted: true });
        check(&Row { calls: &["t1", "b", "t2"], limits: (3, 6), prior: 6, kept: &["b"], is_exhausted: true });
        check(&Row {
            calls: &["t1", "t2", "t3", "t4"],
            limits: (2, 6),
            prior: 0,
            kept: &["t1", "t2"],
            is_exhausted: false,
        });
        check(&Row {
            calls: &["b1", "b2"],
            limits: (1, 1),
            prior: 9,
            kept: &["b1", "b2"],
            is_exhausted: false,
        });
    }

    #[test]
    fn each_dropped_call_says_which_limit() {
        let limits = DelegationLimits { per_response: 1, per_run: 6 };
        let reasons = |prior| {
            let dropped = limit(reply(&["t1", "t2", "t3"]), limits, prior).dropped;
            dropped.into_iter().map(|(call, reason)| (call.id, reason)).collect::<Vec<_>>()
        };
        let (response, run) = (RefusalReason::PerResponseLimit, RefusalReason::PerRunLimit);
        assert_eq!(reasons(0), [("t2".to_owned(), response), ("t3".to_owned(), response)]);
        assert_eq!(reasons(4), [("t2".to_owned(), response), ("t3".to_owned(), run)]);
        assert_eq!(reasons(6), [("t1".to_owned(), run), ("t2".to_owned(), run), ("t3".to_owned(), run)]);
    }
}
