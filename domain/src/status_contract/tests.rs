use serde_json::{Map, Value, json};

use super::*;
use crate::{digest::sha256_hex, limits::ERROR_DETAIL_CHARS_MAX, usage::Usage};

#[track_caller]
fn check_text(status: &str, detail: Option<&str>, stop_reason: Option<StopReason>, expected: &str) {
    let status = status.parse().unwrap();
    let outcome = TaskOutcome { stop_reason, ..TaskOutcome::new(status, detail.map(str::to_owned)) };
    assert_eq!(outcome.text(), expected);
}

// Facts §9.4, every row; §12 lines 66 to 69; chain facts (f) 98.
#[test]
fn every_row_of_the_display_table() {
    use StopReason::{LoopCapped, TokenCapped, TurnCapped};
    check_text("completed", Some("ok"), None, "Task Succeeded. Result: ok");
    check_text(
        "completed",
        Some("ok"),
        Some(TokenCapped),
        "Task Succeeded (capped: token budget). Result: ok",
    );
    check_text("completed", Some("ok"), Some(TurnCapped), "Task Succeeded (capped: turn budget). Result: ok");
    let looped = "Task Succeeded (capped: repeated tool-call loop). Result: ok";
    check_text("completed", Some("ok"), Some(LoopCapped), looped);
    check_text("failed", None, None, "Task failed.");
    check_text("failed", Some("Task failed."), None, "Task failed.");
    check_text("failed", Some("  "), None, "Task failed.");
    check_text("failed", None, Some(TurnCapped), "Task failed (capped: turn budget).");
    check_text("failed", Some("subagent crashed"), None, "Task failed. Error: subagent crashed");
    check_text(
        "failed",
        Some("boom"),
        Some(LoopCapped),
        "Task failed (capped: repeated tool-call loop). Error: boom",
    );
    check_text("cancelled", None, None, "Task cancelled by user.");
    check_text("cancelled", Some("why"), Some(TurnCapped), "Task cancelled by user. Error: why");
    check_text("timed_out", None, Some(TokenCapped), "Task timed out.");
    check_text("timed_out", Some("timeout"), None, "Task timed out. Error: timeout");
    check_text("polling_timed_out", None, None, "Task polling timed out.");
    check_text("polling_timed_out", Some("zz"), None, "zz");
}

#[track_caller]
fn check_metadata(outcome: &TaskOutcome, expected: Value) {
    assert_eq!(Value::Object(outcome.metadata()), expected);
}

// Facts §9.2; §12 lines 66 to 69 and 116.
#[test]
fn metadata_holds_only_what_belongs_to_the_status() {
    let completed = TaskOutcome {
        status: SubagentStatus::Completed,
        detail: Some(" done \n".into()),
        stop_reason: Some(StopReason::TokenCapped),
        model_name: Some(" fast ".into()),
        usage: Some(Usage { cache_read_tokens: Some(9), ..Usage::new(1, 2) }),
    };
    check_metadata(
        &completed,
        json!({
            "subagent_status": "completed", "subagent_result_brief": "done",
            "subagent_result_sha256": sha256_hex(b" done \n"), "subagent_stop_reason": "token_capped",
            "subagent_model_name": "fast",
            "subagent_token_usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        }),
    );
    let failed = TaskOutcome {
        status: SubagentStatus::Failed,
        model_name: Some("  ".into()),
        usage: None,
        ..completed
    };
    check_metadata(
        &failed,
        json!({"subagent_status": "failed", "subagent_error": "done", "subagent_stop_reason": "token_capped"}),
    );
    check_metadata(
        &TaskOutcome::new(SubagentStatus::Failed, None),
        json!({"subagent_status": "failed", "subagent_error": "Task failed."}),
    );
    let blank = TaskOutcome::new(SubagentStatus::Cancelled, Some("  ".into()));
    check_metadata(&blank, json!({"subagent_status": "cancelled"}));
    let blank = TaskOutcome::new(SubagentStatus::Completed, Some("\n ".into()));
    check_metadata(&blank, json!({"subagent_status": "completed"}));
}

// Facts §12 line 76, and chain facts (f) 99.
#[test]
fn a_long_result_is_whole_in_the_text_and_brief_in_the_metadata() {
    let result = "x".repeat(10_000);
    let outcome = TaskOutcome::new(SubagentStatus::Completed, Some(result.clone()));
    assert!(outcome.text().ends_with(&result));
    let metadata = outcome.metadata();
    let text = |key: &str| metadata[key].as_str().unwrap();
    assert_eq!(text(RESULT_BRIEF_KEY).chars().count(), 2_000);
    assert_eq!(text(RESULT_SHA256_KEY), sha256_hex(result.as_bytes()));
    assert_eq!(text(RESULT_SHA256_KEY).len(), 64);
}

// Facts §12 line 113, and chain facts (f) 100.
#[test]
fn every_contract_value_is_known_and_any_other_is_an_error() {
    for status in SubagentStatus::ALL {
        assert_eq!(status.as_str().parse(), Ok(status));
        assert_eq!(serde_json::to_value(status).unwrap(), json!(status.as_str()));
        for stop_reason in StopReason::ALL.map(Some).into_iter().chain([None]) {
            let outcome = TaskOutcome { stop_reason, ..TaskOutcome::new(status, Some("text".into())) };
            let reading = read(&outcome.metadata()).unwrap();
            assert_eq!((reading.status, reading.stop_reason), (status, stop_reason));
        }
    }
    for reason in StopReason::ALL {
        assert_eq!(reason.as_str().parse(), Ok(reason));
        assert_eq!(serde_json::to_value(reason).unwrap(), json!(reason.as_str()));
    }
    for text in ["nope", "", "Completed", "in_progress", "max_turns_reached"] {
        assert!(text.parse::<SubagentStatus>().is_err(), "{text}");
    }
    let error = "safety_capped".parse::<StopReason>().unwrap_err().to_string();
    let expected = "unknown stop reason \"safety_capped\": contract version 2 knows \
                    token_capped, turn_capped, loop_capped";
    assert_eq!(error, expected);
}

#[track_caller]
fn check_reading(metadata: Value, expected: Option<Reading>) {
    let Value::Object(map) = &metadata else { panic!("not an object: {metadata}") };
    assert_eq!(read(map), expected, "{metadata}");
}

fn reading(status: SubagentStatus) -> Reading {
    Reading { status, result: None, error: None, stop_reason: None, model_name: None, usage: None }
}

// Facts §9.5; §12 lines 114 and 115; chain facts (f) 100.
#[test]
fn the_reader_keeps_what_is_well_formed() {
    use SubagentStatus::{Completed, Failed, TimedOut};
    check_reading(json!({}), None);
    check_reading(json!({"subagent_status": 1}), None);
    check_reading(json!({"subagent_status": "nope", "subagent_error": "e"}), None);

    let digest = "0123456789abcdef".repeat(4);
    let brief =
        |sha256: Option<&str>| Some(ResultBrief { text: "r".into(), sha256: sha256.map(str::to_owned) });
    check_reading(
        json!({"subagent_status": "completed", "subagent_result_brief": " r ", "subagent_result_sha256": digest,
            "subagent_error": "ignored", "subagent_stop_reason": "safety_capped", "subagent_model_name": " m ",
            "subagent_token_usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3, "x": 4}}),
        Some(Reading {
            result: brief(Some(&digest)),
            model_name: Some("m".into()),
            usage: Some(Usage::new(1, 2)),
            ..reading(Completed)
        }),
    );
    for bad in
        [digest.to_uppercase(), digest[1..].to_owned(), format!("{digest}0"), format!("{} ", &digest[1..])]
    {
        let metadata = json!({"subagent_status": "completed", "subagent_result_brief": "r", "subagent_result_sha256": bad});
        check_reading(metadata, Some(Reading { result: brief(None), ..reading(Completed) }));
    }
    check_reading(
        json!({"subagent_status": "completed", "subagent_result_sha256": digest}),
        Some(reading(Completed)),
    );
    check_reading(
        json!({"subagent_status": "timed_out", "subagent_result_brief": "r", "subagent_error": "late",
            "subagent_token_usage": {"input_tokens": true, "output_tokens": 2, "total_tokens": 3}}),
        Some(Reading { error: Some("late".into()), ..reading(TimedOut) }),
    );

    let turns = Some(StopReason::TurnCapped);
    check_reading(
        json!({"subagent_status": "max_turns_reached", "subagent_result_brief": "r"}),
        Some(Reading { result: brief(None), stop_reason: turns, ..reading(Completed) }),
    );
    check_reading(
        json!({"subagent_status": "max_turns_reached", "subagent_result_brief": " ", "subagent_error": "e"}),
        Some(Reading { error: Some("e".into()), stop_reason: turns, ..reading(Failed) }),
    );
    check_reading(
        json!({"subagent_status": "max_turns_reached", "subagent_stop_reason": "loop_capped"}),
        Some(Reading { stop_reason: Some(StopReason::LoopCapped), ..reading(Failed) }),
    );
}

// Facts §12 line 70.
#[test]
fn a_polling_timeout_counts_whole_minutes() {
    let detail = polling_timed_out_detail(1, "running");
    assert!(detail.starts_with("Task polling timed out after 0 minutes. "), "{detail}");
    assert!(detail.ends_with("Status: running"), "{detail}");
    assert!(polling_timed_out_detail(1_800, "pending").contains("after 30 minutes"));
}

// Facts §12 line 79, and chain facts (f) 95 and 96.
#[test]
fn a_tool_that_broke_is_stamped_only_when_it_is_task() {
    let task = raised_message("task", "RuntimeError", "no model");
    assert!(task.text.starts_with("Task failed. Error: RuntimeError: no model. "), "{}", task.text);
    assert_eq!(
        Value::Object(task.metadata),
        json!({"subagent_status": "failed", "subagent_error": "RuntimeError: no model."})
    );
    let bash = raised_message("bash", "RuntimeError", "no shell!");
    assert!(bash.text.contains("RuntimeError: no shell! "), "{}", bash.text);
    assert_eq!(bash.metadata, Map::new());
}

#[test]
fn the_detail_of_a_tool_that_broke_is_bounded() {
    let cut = |length: usize| {
        let text = raised_message("task", "E", &"é".repeat(length)).text;
        (text.matches('é').count(), text.contains("é..."))
    };
    assert_eq!(cut(ERROR_DETAIL_CHARS_MAX), (500, false));
    assert_eq!(cut(ERROR_DETAIL_CHARS_MAX + 1), (497, true));
}
