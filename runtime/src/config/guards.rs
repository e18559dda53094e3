//! What keeps an agent's calls from going round in circles.

use std::collections::BTreeMap;

use domain::{
    definition::SettingProblem,
    guard::loop_detection::{LoopLimits, ToolFrequency},
    limits::LOOP_COUNT_RANGE,
};
use serde::{Deserialize, Serialize};

use super::check::Checks;

/// The `loop_detection` section (chain facts §1.6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Tools that may be called more or less often than others, by name.
    pub tool_freq_overrides: BTreeMap<String, ToolFrequencyOverride>,
}

/// How often one tool may be called, in `loop_detection.tool_freq_overrides`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFrequencyOverride {
    /// This often: the model is warned.
    pub warn: u32,
    /// This often: the work is stopped.
    pub hard_limit: u32,
}

impl Default for LoopDetection {
    fn default() -> Self {
        let limits = LoopLimits::default();
        Self {
            enabled: true,
            warn_threshold: limits.warn_threshold,
            hard_limit: limits.hard_limit,
            window_size: limits.window_size,
            tool_freq_warn: limits.tool_freq_warn,
            tool_freq_hard_limit: limits.tool_freq_hard_limit,
            tool_freq_overrides: BTreeMap::new(),
        }
    }
}

impl LoopDetection {
    /// What agents are held to; `None` when loops are not looked for.
    pub(crate) fn limits(&self) -> Option<LoopLimits> {
        let frequency =
            |own: &ToolFrequencyOverride| ToolFrequency { warn: own.warn, hard_limit: own.hard_limit };
        let overrides = self.tool_freq_overrides.iter().map(|(name, own)| (name.clone(), frequency(own)));
        self.enabled.then(|| LoopLimits {
            warn_threshold: self.warn_threshold,
            hard_limit: self.hard_limit,
            window_size: self.window_size,
            tool_freq_warn: self.tool_freq_warn,
            tool_freq_hard_limit: self.tool_freq_hard_limit,
            tool_freq_overrides: overrides.collect(),
        })
    }

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
        for (name, own) in &self.tool_freq_overrides {
            own.check(&format!("tool_freq_overrides.{name}"), &mut checks);
        }
        checks.found()
    }
}

impl ToolFrequencyOverride {
    fn check(self, key: &str, checks: &mut Checks) {
        checks.within(&format!("{key}.warn"), &self.warn, &LOOP_COUNT_RANGE);
        checks.within(&format!("{key}.hard_limit"), &self.hard_limit, &LOOP_COUNT_RANGE);
        if self.hard_limit < self.warn {
            let allowed = format!("at least warn, which is {}", self.warn);
            checks.problem(&format!("{key}.hard_limit"), &self.hard_limit, &allowed);
        }
    }
}
