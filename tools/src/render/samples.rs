//! Answers for the golden files of the renderers.

use contracts::wire::{
    cap::Cap,
    card::{Card, CardCall, CardCap, CardStep, StepKind},
    delegation::{Delegation, DelegationStatus, StopReason},
    event::EventRecord,
    evidence::{
        Acceptance, AcceptanceVerdict, Citation, CitationVerdict, Citations, CitationsVerdict, Receipt,
        ReceiptOutcome,
    },
    managed::{ManagedChange, ManagedSubagent, ManagedVersion, SubagentDefinition},
    run::{Run, RunStatus},
    subagent::{Subagent, SubagentBudget, SubagentSource},
    thread::{Thread, ThreadStatus},
    usage::Usage,
    usage_report::{UsageFigures, UsageGroup, UsageReport},
};
use serde_json::{Map, json, value::RawValue};

const RUN: &str = "0193a1b2-c3d4-7000-8000-000000000001";

pub(crate) fn usage(total_tokens: u64) -> Usage {
    Usage { input_tokens: total_tokens - 1, output_tokens: 1, total_tokens, cache_read_tokens: None }
}

fn delegation(task: &str, description: &str, status: DelegationStatus) -> Delegation {
    Delegation {
        task_id: task.into(),
        delegation_id: format!("0193a1b2-c3d4-7{}00-8000-000000000000", task.trim_start_matches("call_")),
        run_id: RUN.into(),
        description: description.into(),
        subagent_type: "general-purpose".into(),
        status,
        stop_reason: None,
        result_brief: None,
        result_sha256: None,
        error: None,
        model_name: Some("offline".into()),
        usage: None,
        citations: None,
        acceptance: None,
        queued_at: None,
        started_at: Some("2026-11-30T18:45:02Z".into()),
        ended_at: Some("2026-11-30T18:45:03.25Z".into()),
        delivered: true,
        first_seq: 12,
    }
}

pub(crate) fn ledger() -> Vec<Delegation> {
    vec![
        Delegation {
            usage: Some(usage(12_345)),
            result_brief: Some("Twelve files in three folders.\nThe largest is Größe.md.".into()),
            ..delegation("call_1", "Survey the files", DelegationStatus::Completed)
        },
        Delegation {
            usage: Some(usage(900)),
            stop_reason: Some(StopReason::TurnCapped),
            result_brief: Some("Read as far as it got".into()),
            ..delegation(
                "call_2",
                "Read 漢字の説明 and everything that it refers to",
                DelegationStatus::Completed,
            )
        },
        Delegation {
            subagent_type: "bash".into(),
            error: Some("bash is not available here".into()),
            started_at: None,
            model_name: None,
            ..delegation("call_3", "", DelegationStatus::Refused)
        },
        Delegation {
            ended_at: None,
            delivered: false,
            ..delegation("call_4", "Still at it", DelegationStatus::InProgress)
        },
    ]
}

pub(crate) fn runs() -> Vec<Run> {
    let first = Run {
        run_id: RUN.into(),
        thread_id: "t-1".into(),
        assistant_id: "lead".into(),
        status: RunStatus::Success,
        stop_reason: Some("turn_capped".into()),
        error: None,
        result: Some("The folder holds twelve files.".into()),
        model_name: Some("offline".into()),
        usage: Some(usage(13_245)),
        subagent_usage: None,
        turns: 3,
        delegations: 3,
        metadata: Map::new(),
        created_at: "2026-11-30T18:45:02Z".into(),
        updated_at: "2026-11-30T18:45:04.5Z".into(),
        seq: 40,
    };
    let failed = Run {
        run_id: "0193a1b2-c3d5-7000-8000-000000000002".into(),
        status: RunStatus::Error,
        stop_reason: None,
        result: None,
        error: Some("the model \"local\" cannot be reached".into()),
        usage: None,
        turns: 0,
        delegations: 0,
        ..first.clone()
    };
    vec![failed, first]
}

pub(crate) fn threads() -> Vec<Thread> {
    vec![Thread {
        thread_id: "0193a1b2-c3d4-7000-8000-000000000009".into(),
        status: ThreadStatus::Busy,
        metadata: Map::new(),
        user_id: "default".into(),
        seq: 1_240,
        created_at: "2026-11-30T18:45:02Z".into(),
        updated_at: "2026-11-30T18:45:04.5Z".into(),
    }]
}

pub(crate) fn caps() -> Vec<Cap> {
    let cap = |seq: u64, axis: &str, action: &str, used: u64, budget: u64| Cap {
        run_id: Some(RUN.into()),
        task_id: (seq > 30).then(|| "call_2".to_owned()),
        delegation_id: None,
        axis: axis.into(),
        action: action.into(),
        used,
        budget,
        at: "2026-11-30T18:45:02Z".into(),
        seq,
    };
    vec![cap(21, "tokens", "warn", 1_400_210, 2_000_000), cap(40, "turns", "stop", 60, 60)]
}

pub(crate) fn usage_report() -> UsageReport {
    let group = |model: &str, caller: &str, figures: UsageFigures| UsageGroup {
        model_name: Some(model.into()),
        caller: Some(caller.into()),
        figures,
        ..UsageGroup::default()
    };
    let lead = UsageFigures {
        calls: 3,
        calls_without_usage: 1,
        usage: Some(Usage { cache_read_tokens: Some(4_096), ..usage(12_345) }),
        at_least: true,
        cost: Some(0.0312),
        cost_at_least: true,
    };
    let child = UsageFigures {
        calls: 1_200,
        calls_without_usage: 0,
        usage: Some(usage(1_234_567)),
        at_least: false,
        cost: None,
        cost_at_least: true,
    };
    let total = UsageFigures { calls: 1_203, usage: Some(usage(1_246_912)), ..lead };
    UsageReport {
        group_by: vec!["model".into(), "caller".into()],
        currency: Some("USD".into()),
        total,
        data: vec![group("large", "lead_agent", lead), group("qwen-漢字", "subagent:general-purpose", child)],
        has_more: false,
        next_after: None,
    }
}

pub(crate) fn messages() -> Vec<EventRecord> {
    let said = |seq: u64, event_type: &str, content: serde_json::Value, caller: &str| EventRecord {
        content: RawValue::from_string(content.to_string()).unwrap(),
        metadata: RawValue::from_string(json!({"caller": caller}).to_string()).unwrap(),
        seq,
        event_type: event_type.into(),
        category: "message".into(),
        ..events().remove(0)
    };
    let call = json!({"id": "call_1", "name": "task", "args": {"description": "Look \u{1b}[2J"}});
    vec![
        said(3, "llm.human.input", json!({"type": "human", "content": "What is here?\nSay it shortly."}), ""),
        said(
            5,
            "llm.ai.response",
            json!({"type": "ai", "content": "I delegate.", "tool_calls": [call]}),
            "lead_agent",
        ),
        said(
            30,
            "llm.tool.result",
            json!({"type": "tool", "name": "task", "status": "error", "content": "é".repeat(700)}),
            "lead_agent",
        ),
        said(31, "llm.ai.response", json!([{"text": "A title"}]), "middleware:title"),
        said(32, "somebody.said", json!("free text"), ""),
    ]
}

fn receipt(id: &str, tool: &str, outcome: ReceiptOutcome, seq: u64) -> Receipt {
    Receipt {
        id: id.into(),
        tool_name: tool.into(),
        tool_call_id: format!("call-of-{id}"),
        args_sha256: "a".repeat(64),
        output_sha256: "0123456789abcdef".repeat(4),
        output_bytes: 2_048 * seq,
        outcome,
        started_at: "2026-11-30T18:45:02Z".into(),
        duration_ms: 40 * seq,
        seq,
    }
}

fn step(message_index: u32, kind: StepKind, text: &str) -> CardStep {
    CardStep { message_index, kind, text: text.into(), truncated: false, tool_calls: None, tool_name: None }
}

pub(crate) fn card() -> Card {
    let call = |name: &str, args| CardCall { name: name.into(), args, args_truncated: false };
    Card {
        task_id: "call_1".into(),
        delegation_id: "0193a1b2-c3d4-7000-8000-000000000006".into(),
        status: DelegationStatus::Completed,
        queue_place: None,
        estimated_wait_seconds: None,
        description: "Survey the files".into(),
        prompt: Some("List what is there.\nThen read the largest file.".into()),
        subagent_type: "general-purpose".into(),
        model_name: Some("offline".into()),
        usage: Some(usage(12_345)),
        turns: 3,
        compactions: 0,
        steps: vec![
            CardStep {
                tool_calls: Some(vec![call("ls", json!({"path": "/mnt/user-data/workspace"}))]),
                ..step(1, StepKind::Ai, "")
            },
            CardStep { tool_name: Some("ls".into()), ..step(2, StepKind::Tool, "Größe.md\nnotes/\n") },
            CardStep {
                tool_calls: Some(vec![call("read_file", json!({"path": "Größe.md"}))]),
                ..step(3, StepKind::Ai, "Reading the largest file.")
            },
            CardStep { tool_name: Some("read_file".into()), ..step(4, StepKind::Tool, "Error: \u{1b}[2J") },
            CardStep { tool_calls: Some(Vec::new()), ..step(5, StepKind::Ai, "Twelve files. [r1 ls]") },
        ],
        caps: vec![CardCap { axis: "turns".into(), action: "warn".into(), used: 3, budget: 4, seq: 30 }],
        receipts: vec![
            receipt("r1", "ls", ReceiptOutcome::Ok, 1),
            receipt("r2", "read_file", ReceiptOutcome::Error, 31),
        ],
        citations: Some(Citations {
            overall: CitationsVerdict::Verified,
            items: vec![Citation {
                text: "[r1 ls]".into(),
                receipt_id: "r1".into(),
                tool_name: "ls".into(),
                verdict: CitationVerdict::Resolved,
            }],
        }),
        acceptance: vec![Acceptance {
            criterion: "file_exists: report.md".into(),
            verdict: AcceptanceVerdict::Unmet,
            evidence: Some("no such file".into()),
        }],
        result: Some("Twelve files. [r1 ls]\nThe largest is Größe.md.".into()),
        error: None,
        stop_reason: None,
        seq: 33,
    }
}

pub(crate) fn events() -> Vec<EventRecord> {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    let record = |seq: u64, event_type: &str, content: &str| EventRecord {
        thread_id: "t-1".into(),
        run_id: Some(RUN.into()),
        seq,
        event_type: event_type.into(),
        category: "run".into(),
        content: raw(content),
        metadata: raw("{}"),
        created_at: "2026-11-30T18:45:02.5Z".into(),
        position: seq,
        event_id: "0193a1b2-c3d4-7000-8000-000000000100".into(),
        schema_version: 1,
        recorded_at: "2026-11-30T18:45:02.5Z".into(),
        task_id: event_type.starts_with("subagent").then(|| "call_1".to_owned()),
        delegation_id: None,
        user_id: "default".into(),
        causation_id: None,
        correlation_id: None,
        hash: "0".repeat(64),
        created: None,
    };
    vec![
        record(1, "run.status", r#"{"status":"running"}"#),
        record(
            2,
            "subagent.start",
            r#"{"task_id":"call_1","description":"Survey 漢字","model_name":"offline"}"#,
        ),
        record(
            3,
            "run.error",
            r#"{"error":"the model cannot be reached, and that for a reason which is long"}"#,
        ),
    ]
}

fn subagent(name: &str, source: SubagentSource, description: &str) -> Subagent {
    Subagent {
        name: name.into(),
        description: description.into(),
        source,
        available: true,
        model: "inherit".into(),
        max_turns: 60,
        timeout_seconds: 1_800,
        tools: None,
        disallowed_tools: Some(vec!["task".into(), "ask_clarification".into()]),
        skills: None,
        token_budget: SubagentBudget {
            enabled: true,
            max_tokens: 2_000_000,
            max_input_tokens: None,
            max_output_tokens: None,
            warn_threshold: 0.7,
            hard_stop_threshold: 1.0,
        },
        system_prompt: Some("You work.\nYou report.".into()),
    }
}

/// Types as leads are offered them: two built in, one configured, one kept.
pub(crate) fn subagents() -> Vec<Subagent> {
    vec![
        subagent("general-purpose", SubagentSource::BuiltIn, "Any work that takes several steps."),
        Subagent {
            available: false,
            tools: Some(vec!["bash".into(), "ls".into()]),
            ..subagent("bash", SubagentSource::BuiltIn, "Shell commands whose output is bulky.\nAnd no more.")
        },
        subagent("reviewer", SubagentSource::Configured, "Reads changes and says what is wrong."),
        Subagent {
            model: "local".into(),
            timeout_seconds: 90,
            skills: Some(Vec::new()),
            ..subagent("writer", SubagentSource::Managed, "Writes texts for people: Größe, 漢字.")
        },
    ]
}

fn definition(description: &str) -> SubagentDefinition {
    SubagentDefinition {
        description: description.into(),
        system_prompt: "Write plainly.\nCite what you read.".into(),
        tools: Some(vec!["read_file".into(), "grep".into()]),
        disallowed_tools: None,
        skills: Some(Vec::new()),
        model: "local".into(),
        max_turns: 50,
        timeout_seconds: 90,
    }
}

/// What administrators keep: one that is offered, one that is disabled, one that another type hides.
pub(crate) fn managed_subagents() -> Vec<ManagedSubagent> {
    let kept = |name: &str, version, enabled, hidden_by| ManagedSubagent {
        name: name.into(),
        version,
        enabled,
        hidden_by,
        definition: definition("Writes texts for people: Größe, 漢字."),
        created_at: "2026-11-30T18:45:02.5Z".into(),
        updated_at: "2026-11-30T18:50:02.5Z".into(),
    };
    vec![
        kept("drafter", 2, false, None),
        kept("reviewer", 1, true, Some(SubagentSource::Configured)),
        kept("writer", 4, true, None),
    ]
}

/// A definition that was made, changed, taken back and removed.
pub(crate) fn managed_versions() -> Vec<ManagedVersion> {
    let version = |version: u64, change, text: Option<&str>| ManagedVersion {
        version,
        change,
        to_version: (change == ManagedChange::RolledBack).then_some(1),
        enabled: text.is_some() && change != ManagedChange::Disabled,
        definition: text.map(definition),
        at: format!("2026-11-30T18:45:0{version}Z"),
    };
    vec![
        version(1, ManagedChange::Created, Some("Writes texts.")),
        version(2, ManagedChange::Disabled, Some("Writes texts.")),
        version(3, ManagedChange::RolledBack, Some("Writes texts.")),
        version(4, ManagedChange::Deleted, None),
    ]
}
