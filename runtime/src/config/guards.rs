//! What keeps an agent's history short and its calls from going round in circles.

use std::fmt::Display;

use domain::{definition::SettingProblem, limits::LOOP_COUNT_RANGE};
use serde::{Deserialize, Serialize};

use super::check::Checks;

/// The `summarization` section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Summarization {
    /// Whether history is compacted at all.
    pub enabled: bool,
    /// What starts it: any of these. None of them means never.
    pub trigger: Vec<Extent>,
    /// What is kept as it is.
    pub keep: Extent,
}

/// How much of a history, in one of three units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Tokens, from 1.
    Tokens(u64),
    /// Messages, from 1.
    Messages(u32),
    /// A share of the model's context, above 0 and up to 1.
    Fraction(f64),
}

impl Default for Summarization {
    fn default() -> Self {
        Self { enabled: false, trigger: vec![Extent::Tokens(32_000)], keep: Extent::Messages(10) }
    }
}

impl Summarization {
    pub(super) fn problems(&self) -> Vec<SettingProblem> {
        let mut checks = Checks::below("summarization");
        for trigger in &self.trigger {
            trigger.check("trigger", &mut checks);
        }
        self.keep.check("keep", &mut checks);
        checks.found()
    }
}

impl Extent {
    fn check(&self, key: &str, checks: &mut Checks) {
        let mut refuse = |unit: &str, value: &dyn Display, allowed: &str| {
            checks.problem(&format!("{key}.{unit}"), value, allowed);
        };
        match self {
            Self::Tokens(tokens) if *tokens == 0 => refuse("tokens", tokens, "at least 1"),
            Self::Messages(messages) if *messages == 0 => refuse("messages", messages, "at least 1"),
            Self::Fraction(share) if !(*share > 0.0 && *share <= 1.0) => {
                refuse("fraction", share, "above 0 and at most 1");
            }
            Self::Tokens(_) | Self::Messages(_) | Self::Fraction(_) => {}
        }
    }
}

/// The `loop_detection` section (chain facts §1.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoopDetection {
    /// Whether loops are looked for.
    pub enabled: bool,
    /// The same calls this often within the window: the model is warned.
    pub warn_threshold: u32,
    /// The same calls this often within the window: the work is stopped.
    pub hard_limit: u32,
    /// Replies that are looked back at.
    pub window_size: u32,
    /// One tool this often: the model is warned.
    pub tool_freq_warn: u32,
    /// One tool this often: the work is stopped.
    pub tool_freq_hard_limit: u32,
}

impl Default for LoopDetection {
    fn default() -> Self {
        Self {
            enabled: true,
            warn_threshold: 3,
            hard_limit: 5,
            window_size: 20,
            tool_freq_warn: 30,
            tool_freq_hard_limit: 50,
        }
    }
}

impl LoopDetection {
    pub(super) fn problems(&self) -> Vec<SettingProblem> {
        let mut checks = Checks::below("loop_detection");
        for (key, count) in [
            ("warn_threshold", self.warn_threshold),
            ("hard_limit", self.hard_limit),
            ("window_size", self.window_size),
            ("tool_freq_warn", self.tool_freq_warn),
            ("tool_freq_hard_limit", self.tool_freq_hard_limit),
        ] {
            checks.within(key, &count, &LOOP_COUNT_RANGE);
        }
        for (warn_key, warn, hard_key, hard) in [
            ("warn_threshold", self.warn_threshold, "hard_limit", self.hard_limit),
            ("tool_freq_warn", self.tool_freq_warn, "tool_freq_hard_limit", self.tool_freq_hard_limit),
        ] {
            if hard < warn {
                checks.problem(hard_key, &hard, &format!("at least {warn_key}, which is {warn}"));
            }
        }
        checks.found()
    }
}
