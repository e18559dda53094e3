//! When an agent's history is compacted, and what stays of it (chain facts §2.9).

use std::{collections::BTreeMap, fmt::Display};

pub use domain::compaction::Extent;
use domain::{compaction::CompactionSettings, definition::SettingProblem, limits::SUMMARY_TRIM_TOKENS_RANGE};
use serde::{Deserialize, Serialize};

use super::check::Checks;
use crate::models::{ModelSettings, configured::OFFLINE_NAME};

/// Tokens of history that the summary model is shown when nothing is configured: the number of the
/// reference's example, as are the other defaults.
const TRIM_TOKENS_DEFAULT: u64 = 15_564;

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
    /// Tokens of history that the summary model is shown; `null` shows it all.
    pub trim_tokens: Option<u64>,
    /// The model that is asked for summaries first; `null` asks the agent's own alone.
    pub model_name: Option<String>,
    /// What the summary model is told, in place of Remit's own words.
    pub prompt: Option<String>,
}

impl Default for Summarization {
    fn default() -> Self {
        Self {
            enabled: false,
            trigger: vec![Extent::Tokens(32_000)],
            keep: Extent::Messages(10),
            trim_tokens: Some(TRIM_TOKENS_DEFAULT),
            model_name: None,
            prompt: None,
        }
    }
}

impl Summarization {
    /// What runs are started with, given what each model can hold; `None` where history is not
    /// compacted.
    pub(crate) fn settings(&self, context_tokens: BTreeMap<String, u32>) -> Option<CompactionSettings> {
        let is_on = self.enabled && !self.trigger.is_empty();
        is_on.then(|| CompactionSettings {
            trigger: self.trigger.clone(),
            keep: self.keep,
            trim_tokens: self.trim_tokens,
            model_name: self.model_name.clone(),
            prompt: self.prompt.clone(),
            context_tokens,
        })
    }

    pub(super) fn problems(&self, models: &[ModelSettings]) -> Vec<SettingProblem> {
        let mut checks = Checks::below("summarization");
        let extents = self.trigger.iter().map(|trigger| ("trigger", trigger)).chain([("keep", &self.keep)]);
        for (key, extent) in extents {
            check(extent, key, &mut checks);
            self.check_share(extent, key, models, &mut checks);
        }
        if let Some(tokens) = &self.trim_tokens {
            checks.within("trim_tokens", tokens, &SUMMARY_TRIM_TOKENS_RANGE);
        }
        let known: Vec<&str> = match models {
            [] => vec![OFFLINE_NAME],
            models => models.iter().map(|model| model.name.as_str()).collect(),
        };
        if let Some(name) = self.model_name.as_deref().filter(|name| !known.contains(name)) {
            let allowed = format!("null or a configured model: {}", known.join(", "));
            checks.problem("model_name", &format!("{name:?}"), &allowed);
        }
        if self.prompt.as_ref().is_some_and(|prompt| prompt.trim().is_empty()) {
            checks.problem("prompt", &"blank", "null or a text");
        }
        checks.found()
    }

    /// A share needs a whole: every model that an agent may have must say what it can hold.
    fn check_share(&self, extent: &Extent, key: &str, models: &[ModelSettings], checks: &mut Checks) {
        let Extent::Fraction(share) = extent else { return };
        let without: Vec<&str> = models
            .iter()
            .filter(|model| model.context_tokens.is_none())
            .map(|model| model.name.as_str())
            .collect();
        if self.enabled && (models.is_empty() || !without.is_empty()) {
            let names = if models.is_empty() { "the offline model".to_owned() } else { without.join(", ") };
            let allowed = format!("in tokens or messages as long as context_tokens is not set for {names}");
            checks.problem(&format!("{key}.fraction"), share, &allowed);
        }
    }
}

fn check(extent: &Extent, key: &str, checks: &mut Checks) {
    let mut refuse = |unit: &str, value: &dyn Display, allowed: &str| {
        checks.problem(&format!("{key}.{unit}"), value, allowed);
    };
    match extent {
        Extent::Tokens(tokens) if *tokens == 0 => refuse("tokens", tokens, "at least 1"),
        Extent::Messages(messages) if *messages == 0 => refuse("messages", messages, "at least 1"),
        Extent::Fraction(share) if !(*share > 0.0 && *share <= 1.0) => {
            refuse("fraction", share, "above 0 and at most 1");
        }
        Extent::Tokens(_) | Extent::Messages(_) | Extent::Fraction(_) => {}
    }
}
