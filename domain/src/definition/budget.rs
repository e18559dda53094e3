//! Token budgets, as they are configured and as they are enforced.

use serde::{Deserialize, Serialize};

use super::settings::{Checks, SettingProblem};

/// A subagent's tokens when nothing is configured and its history is not compacted.
const SUBAGENT_TOKENS_DEFAULT: u64 = 2_000_000;
/// The same when history is compacted, and so costs less.
const SUBAGENT_TOKENS_DEFAULT_WITH_SUMMARIZATION: u64 = 1_000_000;

/// A token budget, complete.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TokenBudget {
    /// Whether it is enforced.
    pub enabled: bool,
    /// Input and output together.
    pub max_tokens: u64,
    /// Input alone; `None` sets no limit.
    pub max_input_tokens: Option<u64>,
    /// Output alone; `None` sets no limit.
    pub max_output_tokens: Option<u64>,
    /// The used share of a limit at which the model is warned, 0 to 1.
    pub warn_threshold: f64,
    /// The used share of a limit at which the work is stopped, 0 to 1.
    pub hard_stop_threshold: f64,
}

impl TokenBudget {
    /// What a written block starts from, and a lead without one has (facts §1.4).
    pub const BARE: Self = Self {
        enabled: false,
        max_tokens: 200_000,
        max_input_tokens: None,
        max_output_tokens: None,
        warn_threshold: 0.8,
        hard_stop_threshold: 1.0,
    };

    /// What a subagent has when nobody configured anything.
    pub const fn subagent_default(summarization_enabled: bool) -> Self {
        let max_tokens = if summarization_enabled {
            SUBAGENT_TOKENS_DEFAULT_WITH_SUMMARIZATION
        } else {
            SUBAGENT_TOKENS_DEFAULT
        };
        Self { enabled: true, max_tokens, warn_threshold: 0.7, ..Self::BARE }
    }
}

/// A `token_budget` block as it is written. It stands on its own: what it leaves out comes from
/// [`TokenBudget::BARE`] and never from the default of the place where it stands, except that it
/// is on unless it says `enabled: false`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenBudgetSettings {
    /// Whether it is enforced; on when it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Input and output together, from 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Input alone, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_input_tokens: Option<u64>,
    /// Output alone, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// The used share at which the model is warned, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warn_threshold: Option<f64>,
    /// The used share at which the work is stopped, 0 to 1 and not below the warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard_stop_threshold: Option<f64>,
}

impl TokenBudgetSettings {
    /// The budget that the block describes.
    pub fn resolve(&self) -> TokenBudget {
        let bare = TokenBudget::BARE;
        TokenBudget {
            enabled: self.enabled.unwrap_or(true),
            max_tokens: self.max_tokens.unwrap_or(bare.max_tokens),
            max_input_tokens: self.max_input_tokens,
            max_output_tokens: self.max_output_tokens,
            warn_threshold: self.warn_threshold.unwrap_or(bare.warn_threshold),
            hard_stop_threshold: self.hard_stop_threshold.unwrap_or(bare.hard_stop_threshold),
        }
    }

    /// Checks every value against its range. `key` is the block's full key, such as
    /// `subagents.token_budget`.
    pub fn problems(&self, key: &str) -> Vec<SettingProblem> {
        let mut checks = Checks::below(key);
        checks.at_least("max_tokens", self.max_tokens, 1_000);
        checks.at_least("max_input_tokens", self.max_input_tokens, 1);
        checks.at_least("max_output_tokens", self.max_output_tokens, 1);
        checks.share("warn_threshold", self.warn_threshold);
        checks.share("hard_stop_threshold", self.hard_stop_threshold);
        let TokenBudget { warn_threshold, hard_stop_threshold, .. } = self.resolve();
        if hard_stop_threshold < warn_threshold {
            let allowed = format!("at least warn_threshold, which is {warn_threshold}");
            checks.problem("hard_stop_threshold", hard_stop_threshold, allowed);
        }
        checks.found()
    }
}
