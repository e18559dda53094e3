use serde_json::json;

use super::*;
use crate::message::ToolStatus;

fn result(name: &str, status: ToolStatus, content: &str) -> ToolMessage {
    ToolMessage { content: content.into(), name: name.into(), status, ..ToolMessage::default() }
}

#[track_caller]
fn check(name: &str, status: ToolStatus, content: &str, expected: Option<(ToolErrorType, NextAction)>) {
    let meta = analyse(&result(name, status, content));
    let found = meta.error_type.map(|error_type| (error_type, meta.recommended_next_action));
    assert_eq!(found, expected, "{name} {status:?}: {content}");
    let is_error = if expected.is_some() { MetaStatus::Error } else { MetaStatus::Success };
    assert_eq!(meta.status, is_error, "{name} {status:?}: {content}");
}

#[track_caller]
fn check_error(content: &str, error_type: ToolErrorType) {
    let meta = analyse(&result("search", ToolStatus::Success, content));
    assert_eq!((meta.status, meta.error_type), (MetaStatus::Error, Some(error_type)), "{content}");
}

// Chain facts (f) line 92.
#[test]
fn line_92_words_tell_an_error_and_numbers_only_alone() {
    use NextAction::{RewriteQuery, TryAlternative};
    use ToolErrorType::{NotFound, Unknown};
    let (success, error) = (ToolStatus::Success, ToolStatus::Error);
    check("search", success, "Error: HTTP 404", Some((NotFound, RewriteQuery)));
    check("search", success, "took 500ms", None);
    check("search", success, r#"{"error":"none"}"#, None);
    check("search", error, r#"{"user_id":401}"#, Some((Unknown, TryAlternative)));
    check("search", error, "exit code 401x", Some((Unknown, TryAlternative)));
    check("search", error, r#"{"error":"no such file"}"#, Some((NotFound, RewriteQuery)));
    check("search", success, r#"{"error":{"code":404}}"#, Some((NotFound, RewriteQuery)));
    check("search", success, "the word Error: is inside", None);
    for nothing in ["null", "false", "0", "[]", "{}", "\" N/A \"", "\"\""] {
        check("search", success, &format!(r#"{{"error":{nothing},"count":500}}"#), None);
    }
}

// Chain facts (f) line 93.
#[test]
fn line_93_a_page_that_is_not_there_is_known_by_its_title() {
    use ToolErrorType::NotFound;
    let success = ToolStatus::Success;
    let expected = Some((NotFound, NextAction::RewriteQuery));
    check("web_fetch", success, "\n# 404 Not Found\nnginx", expected);
    check("web_fetch", success, "## The page: HTTP Error 404 - Not Found", expected);
    check("web_fetch", success, "# 404 Ways to Cook Rice", None);
    check("web_fetch", success, "# 404", None);
    check("bash", success, "# 404 Not Found", None);
}

// Chain facts (f) line 94.
#[test]
fn line_94_nothing_found_is_a_part_and_a_time_out_passes() {
    let nothing = analyse(&result("search", ToolStatus::Success, "No results found"));
    assert_eq!(nothing, ToolMeta::PARTIAL);
    check_error("Error: request timed out", ToolErrorType::Transient);
}

#[test]
fn the_first_rule_that_fits_decides() {
    for (content, expected) in [
        ("Error: 403 Forbidden", ToolErrorType::Auth),
        ("Error: Rate limit reached, connection closed", ToolErrorType::RateLimited),
        ("Error: connection refused: permission denied", ToolErrorType::Transient),
        ("Error: the tool is disabled", ToolErrorType::Config),
        ("Error: Permission denied", ToolErrorType::Permission),
        ("error: no results", ToolErrorType::NoResults),
        ("Error: internal error", ToolErrorType::Internal),
        ("Error: it fell over", ToolErrorType::Unknown),
    ] {
        check_error(content, expected);
    }
}

#[test]
fn what_is_stamped_is_read_back_and_anything_else_is_nothing() {
    let mut stamped = result("ls", ToolStatus::Error, "x");
    assert_eq!(ToolMeta::of(&stamped), None);
    let meta = ToolMeta::error(ToolErrorType::RateLimited, MetaSource::Exception);
    meta.stamp(&mut stamped);
    assert_eq!(
        stamped.additional_kwargs[TOOL_META_KEY],
        json!({"status": "error", "error_type": "rate_limited", "recoverable_by_model": false,
            "recommended_next_action": "summarize", "source": "exception"})
    );
    assert_eq!(ToolMeta::of(&stamped), Some(meta));
    stamped.additional_kwargs.insert(TOOL_META_KEY.into(), json!({"status": "odd"}));
    assert_eq!(ToolMeta::of(&stamped), None);
}
