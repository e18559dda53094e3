//! Token counts, as providers report them. What was not reported stays unknown.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Tokens of one or more model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens that were sent.
    pub input_tokens: u64,
    /// Tokens that came back.
    pub output_tokens: u64,
    /// Input and output together, or the provider's own total.
    pub total_tokens: u64,
    /// Tokens of the input that the provider had cached; stored only above zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
}

impl Usage {
    /// Counts whose total is their sum.
    pub const fn new(input_tokens: u64, output_tokens: u64) -> Self {
        let total_tokens = input_tokens.saturating_add(output_tokens);
        Self { input_tokens, output_tokens, total_tokens, cache_read_tokens: None }
    }

    /// What a provider reported: a missing or zero total becomes the sum, and counts that are all
    /// zero are no report at all (facts §5).
    pub fn reported(
        input_tokens: u64,
        output_tokens: u64,
        total_tokens: u64,
        cache_read_tokens: u64,
    ) -> Option<Self> {
        let summed = Self::new(input_tokens, output_tokens);
        let total_tokens = if total_tokens > 0 { total_tokens } else { summed.total_tokens };
        let cache_read_tokens = (cache_read_tokens > 0).then_some(cache_read_tokens);
        (total_tokens > 0).then_some(Self { total_tokens, cache_read_tokens, ..summed })
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let cached = |usage: Self| usage.cache_read_tokens.unwrap_or(0);
        let cache_read_tokens = cached(self).saturating_add(cached(other));
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
            cache_read_tokens: (cache_read_tokens > 0).then_some(cache_read_tokens),
        }
    }

    /// Adds a report to a total that may still be unknown.
    pub fn add_to(total: &mut Option<Self>, report: Option<Self>) {
        if let Some(report) = report {
            *total = Some(total.unwrap_or_default().plus(report));
        }
    }

    /// What is known after a cumulative report: one that is smaller came late, and one that is
    /// missing says nothing (facts §11.2).
    pub fn latest(known: Option<Self>, report: Option<Self>) -> Option<Self> {
        let is_late = |known: Self| report.is_none_or(|report| report.total_tokens < known.total_tokens);
        known.filter(|known| is_late(*known)).or(report)
    }

    /// Accepts an object whose three counts are non-negative integers, and drops other keys;
    /// anything else is no usage at all (facts §5, "Shared validator").
    pub fn from_untrusted(value: &Value) -> Option<Self> {
        let count = |key: &str| value.get(key)?.as_u64();
        Some(Self {
            input_tokens: count("input_tokens")?,
            output_tokens: count("output_tokens")?,
            total_tokens: count("total_tokens")?,
            cache_read_tokens: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // Facts §12 lines 81 and 82.
    #[test]
    fn a_missing_total_is_summed_and_all_zero_is_no_report() {
        assert_eq!(Usage::reported(200, 100, 0, 0), Some(Usage::new(200, 100)));
        assert_eq!(Usage::reported(0, 0, 0, 0), None);
        assert_eq!(Usage::reported(1, 2, 9, 0).map(|usage| usage.total_tokens), Some(9));
    }

    // Facts §12 lines 63 and 64.
    #[test]
    fn totals_add_up_and_stay_unknown_without_a_report() {
        let mut total = None;
        Usage::add_to(&mut total, None);
        assert_eq!(total, None);
        Usage::add_to(&mut total, Some(Usage::new(100, 50)));
        Usage::add_to(&mut total, Some(Usage::new(200, 80)));
        assert_eq!(total, Some(Usage::new(300, 130)));
    }

    // Facts §12 line 123.
    #[test]
    fn a_smaller_cumulative_report_came_late() {
        let (small, large) = (Some(Usage::new(100, 20)), Some(Usage::new(200, 40)));
        for (known, report, expected) in [
            (large, small, large),
            (small, large, large),
            (large, None, large),
            (None, small, small),
            (None, None, None),
        ] {
            assert_eq!(Usage::latest(known, report), expected);
        }
        // Of two of one size the later one may know more, such as what was cached.
        let cached = Usage { cache_read_tokens: Some(5), ..Usage::new(100, 20) };
        assert_eq!(Usage::latest(small, Some(cached)), Some(cached));
    }

    #[test]
    fn untrusted_usage_must_be_whole_counts() {
        let good = json!({"input_tokens": 1, "output_tokens": 2, "total_tokens": 3, "extra": "dropped"});
        assert_eq!(Usage::from_untrusted(&good), Some(Usage::new(1, 2)));
        for bad in [
            json!({"input_tokens": true, "output_tokens": 2, "total_tokens": 3}),
            json!({"input_tokens": -1, "output_tokens": 2, "total_tokens": 3}),
            json!({"input_tokens": 1.5, "output_tokens": 2, "total_tokens": 3}),
            json!({"input_tokens": 1, "output_tokens": 2}),
            json!("12"),
        ] {
            assert_eq!(Usage::from_untrusted(&bad), None, "{bad}");
        }
    }
}
