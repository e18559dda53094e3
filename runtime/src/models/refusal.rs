//! What a provider says when it refuses, in a body of its own or in the middle of a stream.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use domain::{limits::ERROR_DETAIL_CHARS_MAX, text};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use super::{
    ModelErrorKind,
    classify::{Symptoms, classify},
};

/// What is read of a refusal's body.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024;

/// Some providers give the wait in milliseconds in a header of their own.
const RETRY_AFTER_MS: &str = "retry-after-ms";

/// A provider's refusal, bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The status of the answer; of an error inside a stream, the status in its code.
    pub(crate) status: Option<u16>,
    /// The wait that the body asks for, where the headers do not.
    pub(crate) retry_after: Option<Duration>,
    code: String,
    message: String,
}

impl Refusal {
    /// From the body of an answer that is not a success.
    pub(crate) fn from_body(status: u16, body: &[u8]) -> Self {
        let said = match serde_json::from_slice::<Value>(body) {
            Ok(value) => Self::from_value(&value),
            Err(_) => Self::plain(&String::from_utf8_lossy(body)),
        };
        let is_redirect = (300..400).contains(&status);
        let message = if is_redirect { "redirects are not followed".to_owned() } else { said.message };
        Self { status: Some(status), message, ..said }
    }

    /// From an error object in its usual places: `{error: {message, code}}`, `{error: TEXT}`,
    /// `{message}`, `{detail}`, or a list with one of them.
    pub(crate) fn from_value(value: &Value) -> Self {
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        let error = value.get("error").filter(|error| is_said(error)).unwrap_or(value);
        let text_at = |key: &str| error.get(key).filter(|found| is_said(found)).map(plain_text);
        let message = text_at("message").or_else(|| text_at("detail")).unwrap_or_else(|| plain_text(error));
        let (code, name) = (text_at("code"), text_at("status"));
        let number = code.as_ref().or(name.as_ref()).and_then(|code| code.parse().ok());
        let number = number.filter(|status| (400..600).contains(status));
        // Google has the status as a number in `code`, and its name in `status`.
        let is_named = number.is_some() && name.as_deref().is_some_and(|name| name.parse::<u16>().is_err());
        let code = if is_named { name } else { code }.or_else(|| text_at("type")).unwrap_or_default();
        Self {
            status: number.or_else(|| status_of_type(&code)),
            retry_after: delay_in(error),
            code: text::prefix(&code, ERROR_DETAIL_CHARS_MAX).text,
            ..Self::plain(&message)
        }
    }

    fn plain(message: &str) -> Self {
        let message = text::prefix(&text::one_line(message), ERROR_DETAIL_CHARS_MAX).text;
        Self { status: None, retry_after: None, code: String::new(), message }
    }

    /// What sort of failure it is. Google speaks of a quota also where only the rate of the last
    /// minute was too high; then it says in the body when to come again.
    pub(crate) fn kind(&self) -> ModelErrorKind {
        let kind = classify(Symptoms { message: &self.message, code: &self.code, status: self.status });
        let is_rate = self.status == Some(429) && self.retry_after.is_some();
        if is_rate && kind == ModelErrorKind::Quota { ModelErrorKind::Transient } else { kind }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "the provider answered {status}")?,
            None => f.write_str("the provider reported an error")?,
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        if !self.code.is_empty() {
            write!(f, " (code {})", self.code)?;
        }
        Ok(())
    }
}

/// Whether a value says anything: `error: null` and `error: ""` come with good replies.
pub(crate) fn is_said(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) | Value::Number(_) => true,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// The status that Anthropic gives with each type of error. Inside a stream only the type comes.
fn status_of_type(code: &str) -> Option<u16> {
    match code {
        "invalid_request_error" => Some(400),
        "authentication_error" => Some(401),
        "billing_error" => Some(402),
        "permission_error" => Some(403),
        "not_found_error" => Some(404),
        "request_too_large" => Some(413),
        "rate_limit_error" => Some(429),
        "api_error" => Some(500),
        "timeout_error" => Some(504),
        "overloaded_error" => Some(529),
        _ => None,
    }
}

/// The `retryDelay` among Google's details, such as `3.5s`.
fn delay_in(error: &Value) -> Option<Duration> {
    let delay = error.get("details")?.as_array()?.iter().find_map(|detail| detail.get("retryDelay"))?;
    let seconds = delay.as_str()?.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The wait that the headers ask for: milliseconds, seconds or an HTTP date. A date in the past is
/// no wait at all.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text_of = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok();
    if let Some(wait) = text_of(RETRY_AFTER_MS).and_then(number) {
        return Duration::try_from_secs_f64(wait / 1_000.0).ok();
    }
    let text = text_of(RETRY_AFTER.as_str())?;
    match number(text) {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => {
            let until = httpdate::parse_http_date(text).ok()?;
            Some(until.duration_since(now).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderName;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_wait(header: &'static str, value: &str, expected_ms: Option<u128>) {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let headers = HeaderMap::from_iter([(HeaderName::from_static(header), value.parse().unwrap())]);
        assert_eq!(retry_after(&headers, now).map(|wait| wait.as_millis()), expected_ms, "{value}");
    }

    // Chain facts (f) line 87.
    #[test]
    fn a_wait_is_read_in_every_form() {
        check_wait("retry-after", "12", Some(12_000));
        check_wait("retry-after", " 0.5 ", Some(500));
        check_wait("retry-after-ms", "250", Some(250));
        check_wait("retry-after", "Sun, 09 Sep 2001 01:46:50 GMT", Some(10_000));
        check_wait("retry-after", "Sun, 09 Sep 2001 01:46:00 GMT", Some(0));
        for nonsense in ["soon", "-1", "NaN", "inf", ""] {
            check_wait("retry-after", nonsense, None);
        }
    }

    #[track_caller]
    fn check(status: u16, body: &[u8], kind: ModelErrorKind, shown: &str) {
        let refusal = Refusal::from_body(status, body);
        assert_eq!((refusal.kind(), refusal.to_string().as_str()), (kind, shown));
    }

    #[test]
    fn refusals_are_read_in_their_usual_places() {
        let body =
            json!({"error": {"message": "bad\n  field", "type": "invalid_request_error", "code": null}});
        check(
            400,
            body.to_string().as_bytes(),
            ModelErrorKind::Generic,
            "the provider answered 400: bad field (code invalid_request_error)",
        );
        check(
            500,
            b"{\"error\": \"loading\"}",
            ModelErrorKind::Transient,
            "the provider answered 500: loading",
        );
        check(
            401,
            b"[{\"error\": {\"message\": \"who?\"}}]",
            ModelErrorKind::Auth,
            "the provider answered 401: who?",
        );
        check(422, b"{\"detail\": [1]}", ModelErrorKind::Generic, "the provider answered 422: [1]");
        check(
            502,
            b"<html>Bad Gateway",
            ModelErrorKind::Transient,
            "the provider answered 502: <html>Bad Gateway",
        );
        check(429, b"", ModelErrorKind::Transient, "the provider answered 429");
        check(
            302,
            b"<a>elsewhere</a>",
            ModelErrorKind::Generic,
            "the provider answered 302: redirects are not followed",
        );
    }

    #[test]
    fn a_type_in_a_stream_stands_for_its_status() {
        for (code, status, kind) in [
            ("api_error", 500, ModelErrorKind::Transient),
            ("rate_limit_error", 429, ModelErrorKind::Transient),
            ("overloaded_error", 529, ModelErrorKind::Busy),
            ("authentication_error", 401, ModelErrorKind::Auth),
            ("billing_error", 402, ModelErrorKind::Quota),
            ("invalid_request_error", 400, ModelErrorKind::Generic),
        ] {
            let refusal =
                Refusal::from_value(&json!({"type": "error", "error": {"type": code, "message": "no"}}));
            assert_eq!((refusal.status, refusal.kind()), (Some(status), kind), "{code}");
        }
    }

    fn google(delay: Option<&str>) -> Value {
        let details = delay.map(|delay| json!([{"reason": "x"}, {"retryDelay": delay}]));
        json!({"error": {"code": 429, "message": "You exceeded your current quota",
            "status": "RESOURCE_EXHAUSTED", "details": details}})
    }

    // A day's quota is used up for good; a minute's comes with a wait.
    #[test]
    fn a_quota_with_a_wait_is_a_rate() {
        let refusal = Refusal::from_value(&google(Some("3.5s")));
        assert_eq!(
            (refusal.kind(), refusal.retry_after),
            (ModelErrorKind::Transient, Some(Duration::from_millis(3_500)))
        );
        assert_eq!(
            refusal.to_string(),
            "the provider answered 429: You exceeded your current quota (code RESOURCE_EXHAUSTED)"
        );
        for delay in [None, Some("soon"), Some("-1s"), Some("")] {
            let refusal = Refusal::from_value(&google(delay));
            assert_eq!((refusal.kind(), refusal.retry_after), (ModelErrorKind::Quota, None), "{delay:?}");
        }
    }

    // Field report 91.
    #[test]
    fn a_long_message_is_cut_between_characters() {
        let refusal = Refusal::from_body(500, "\u{1F600}".repeat(900).as_bytes());
        assert_eq!(refusal.message.chars().count(), ERROR_DETAIL_CHARS_MAX);
    }

    #[test]
    fn an_error_in_a_stream_may_carry_its_status_as_a_code() {
        let refusal = Refusal::from_value(&json!({"error": {"code": 502, "message": "upstream"}}));
        assert_eq!((refusal.status, refusal.kind()), (Some(502), ModelErrorKind::Transient));
    }
}
