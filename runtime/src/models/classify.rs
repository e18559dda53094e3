//! From a provider's words and status to a sort of failure (chain facts §2.8).
//!
//! Words come before the status: a 429 that speaks of a quota does not pass by waiting.

use super::error::ModelErrorKind;

const QUOTA_WORDS: &[&str] =
    &["insufficient_quota", "quota", "billing", "credit", "payment", "余额不足", "欠费", "额度", "配额"];
const AUTH_WORDS: &[&str] = &[
    "authentication",
    "unauthorized",
    "invalid api key",
    "invalid_api_key",
    "api key not valid",
    "permission",
    "forbidden",
    "access denied",
    "鉴权",
    "未授权",
];
const BURST_WORDS: &[&str] =
    &["limit_burst_rate", "rate increased too quickly", "burst rate", "速率增长过快", "突发速率"];
const BUSY_WORDS: &[&str] = &[
    "server is busy",
    "server busy",
    "overloaded",
    "temporarily unavailable",
    "try again later",
    "at capacity",
    "high demand",
    "繁忙",
    "负载过高",
];

/// Statuses after which the same request may succeed.
const TRANSIENT_STATUSES: &[u16] = &[408, 409, 425, 429, 500, 502, 503, 504];

/// What a provider said of a failure.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Symptoms<'a> {
    pub(crate) message: &'a str,
    pub(crate) code: &'a str,
    pub(crate) status: Option<u16>,
}

/// The sort of failure: words first, then the status. Quota and burst words count in the message
/// and the code, the others only in the message.
pub(crate) fn classify(symptoms: Symptoms<'_>) -> ModelErrorKind {
    let message = symptoms.message.to_lowercase();
    let both = format!("{message}\n{}", symptoms.code.to_lowercase());
    let says = |text: &str, words: &[&str]| words.iter().any(|word| text.contains(word));
    if says(&both, QUOTA_WORDS) {
        ModelErrorKind::Quota
    } else if says(&message, AUTH_WORDS) {
        ModelErrorKind::Auth
    } else if says(&both, BURST_WORDS) {
        ModelErrorKind::BurstRate
    } else if symptoms.status.is_some_and(|status| TRANSIENT_STATUSES.contains(&status)) {
        ModelErrorKind::Transient
    } else if says(&message, BUSY_WORDS) {
        ModelErrorKind::Busy
    } else {
        wordless(symptoms.status)
    }
}

/// A bare 401, 402, 403 or 529 speaks for itself.
const fn wordless(status: Option<u16>) -> ModelErrorKind {
    match status {
        Some(401 | 403) => ModelErrorKind::Auth,
        Some(402) => ModelErrorKind::Quota,
        Some(529) => ModelErrorKind::Busy,
        Some(_) | None => ModelErrorKind::Generic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, code: &str, message: &str, expected: ModelErrorKind) {
        let symptoms = Symptoms { message, code, status: (status > 0).then_some(status) };
        assert_eq!(classify(symptoms), expected, "{symptoms:?}");
    }

    // Chain facts (f) line 85.
    #[test]
    fn words_come_before_the_status() {
        check(429, "", "You exceeded your current quota", ModelErrorKind::Quota);
        check(429, "insufficient_quota", "slow down", ModelErrorKind::Quota);
        check(429, "rate_limit_exceeded", "slow down", ModelErrorKind::Transient);
        check(429, "limit_burst_rate", "slow down", ModelErrorKind::BurstRate);
        check(503, "", "Permission denied", ModelErrorKind::Auth);
        check(0, "", "who knows", ModelErrorKind::Generic);
        check(400, "context_length_exceeded", "too many tokens", ModelErrorKind::Generic);
        check(529, "", "Overloaded", ModelErrorKind::Busy);
        check(400, "INVALID_ARGUMENT", "API key not valid. Pass a valid one.", ModelErrorKind::Auth);
        check(200, "", "服务繁忙", ModelErrorKind::Busy);
    }

    #[test]
    fn statuses_without_words() {
        for status in [408, 409, 425, 429, 500, 502, 503, 504] {
            check(status, "", "", ModelErrorKind::Transient);
        }
        check(401, "", "", ModelErrorKind::Auth);
        check(403, "", "", ModelErrorKind::Auth);
        check(402, "", "", ModelErrorKind::Quota);
        check(529, "", "", ModelErrorKind::Busy);
        check(404, "", "", ModelErrorKind::Generic);
        check(302, "", "", ModelErrorKind::Generic);
    }
}
