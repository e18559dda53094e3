//! What was used and what it cost, summed up.

use serde::{Deserialize, Serialize};

use super::usage::Usage;

/// The answer of `GET /usage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsageReport {
    /// What the groups stand for: `thread`, `run`, `model`, `caller`, `day`.
    pub group_by: Vec<String>,
    /// The currency of costs; absent where no model has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Everything that was asked about, also what is on other pages.
    pub total: UsageFigures,
    /// The groups in the order of their values.
    pub data: Vec<UsageGroup>,
    /// Whether there are more groups.
    pub has_more: bool,
    /// The `after` of the next page, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}

/// What was used under one combination of values. Only what was grouped by is there.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct UsageGroup {
    /// The thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// The run; empty for what belongs to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
    /// Who called it: `lead_agent`, `subagent:{type}`, `middleware:summarize` for summaries of a
    /// lead's history, or what others recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// The day in universal time: `2026-11-30`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// What was used.
    #[serde(flatten)]
    pub figures: UsageFigures,
}

/// Calls, tokens and costs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct UsageFigures {
    /// Model calls that replied.
    pub calls: u64,
    /// Those of them whose provider reported no tokens.
    pub calls_without_usage: u64,
    /// The tokens that were reported; null when nothing was.
    pub usage: Option<Usage>,
    /// Whether more was used than was reported.
    pub at_least: bool,
    /// What it cost, as far as prices are known; null where none is.
    pub cost: Option<f64>,
    /// Whether it cost more than is known.
    pub cost_at_least: bool,
}
