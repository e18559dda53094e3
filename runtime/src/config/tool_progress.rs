//! When a tool brings an agent no further.

use domain::{
    definition::SettingProblem,
    guard::tool_progress::ProgressLimits,
    limits::{PROGRESS_COUNT_RANGE, PROGRESS_LIKENESS_RANGE},
};
use serde::{Deserialize, Serialize};

use super::check::Checks;

/// The `tool_progress` section (chain facts §1.7).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolProgress {
    /// Whether anybody looks.
    pub enabled: bool,
    /// Results in a row that bring nothing: the model is warned.
    pub stagnation_threshold: u32,
    /// Further ones after which a tool is not run any more, if the model can do nothing about it.
    pub warn_escalation_count: u32,
    /// Whether the model is told.
    pub inject_assessment: bool,
    /// The share of common words, from 0 to 1, from which on a result repeats an earlier one.
    pub jaccard_threshold: f64,
    /// Different words that a result needs to be compared at all.
    pub min_words: u32,
    /// Tools that nobody looks at, by name.
    pub exempt_tools: Vec<String>,
}

impl Default for ToolProgress {
    fn default() -> Self {
        let limits = ProgressLimits::default();
        Self {
            enabled: false,
            stagnation_threshold: limits.stagnation_threshold,
            warn_escalation_count: limits.warn_escalation_count,
            inject_assessment: limits.inject_assessment,
            jaccard_threshold: limits.jaccard_threshold,
            min_words: limits.min_words,
            exempt_tools: limits.exempt_tools,
        }
    }
}

impl ToolProgress {
    /// What tools are held to; `None` when nobody looks.
    pub(crate) fn limits(&self) -> Option<ProgressLimits> {
        self.enabled.then(|| ProgressLimits {
            stagnation_threshold: self.stagnation_threshold,
            warn_escalation_count: self.warn_escalation_count,
            inject_assessment: self.inject_assessment,
            jaccard_threshold: self.jaccard_threshold,
            min_words: self.min_words,
            exempt_tools: self.exempt_tools.clone(),
        })
    }

    pub(super) fn problems(&self) -> Vec<SettingProblem> {
        let mut checks = Checks::below("tool_progress");
        for (key, count) in [
            ("stagnation_threshold", self.stagnation_threshold),
            ("warn_escalation_count", self.warn_escalation_count),
            ("min_words", self.min_words),
        ] {
            checks.within(key, &count, &PROGRESS_COUNT_RANGE);
        }
        checks.within("jaccard_threshold", &self.jaccard_threshold, &PROGRESS_LIKENESS_RANGE);
        checks.found()
    }
}
