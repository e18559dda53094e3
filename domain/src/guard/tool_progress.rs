//! Finds a tool that brings an agent no further (chain facts §1.7): it fails, finds nothing, or says
//! again and again what it has said before. The model is told first; a tool that only fails, and
//! about which the model can do nothing, is not run any more in this run or delegation.
//!
//! Only results that say what they are worth are looked at, and so no delegation is.

mod words;

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use self::words::Words;
use super::notes;
use crate::{
    message::ToolMessage,
    tool_meta::{MetaSource, MetaStatus, NextAction, ToolErrorType, ToolMeta},
};

/// Good results of a tool that a new one is compared with.
const GOOD_RESULTS_MAX: usize = 3;
/// Hints that wait to be told, the newest ones.
const HINTS_MAX: usize = 3;

/// When a tool brings an agent no further.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgressLimits {
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

impl Default for ProgressLimits {
    fn default() -> Self {
        let exempt = ["ask_clarification", "write_todos", "present_files", "task"];
        Self {
            stagnation_threshold: 3,
            warn_escalation_count: 2,
            inject_assessment: true,
            jaccard_threshold: 0.8,
            min_words: 10,
            exempt_tools: exempt.map(str::to_owned).into(),
        }
    }
}

/// What the guard did about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgressAction {
    /// It warned the model.
    Warned,
    /// It blocked the tool for the rest of the work.
    Blocked,
    /// It did not let a call of a blocked tool run.
    Refused,
}

/// A tool that brings nothing, and what was done about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stalled {
    /// The tool.
    pub tool_name: String,
    /// What was done.
    pub action: ProgressAction,
    /// Results in a row that brought nothing.
    pub problems: u32,
    /// What went wrong the last time; absent for results that were no errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<ToolErrorType>,
}

/// What the tools of one agent brought it so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ToolProgress {
    tools: BTreeMap<String, Watched>,
    /// What the model is to be told, oldest first.
    hints: Vec<String>,
}

/// One tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Watched {
    problems: u32,
    error_type: Option<ToolErrorType>,
    is_blocked: bool,
    good: VecDeque<Words>,
}

impl ToolProgress {
    /// Takes a result.
    pub(super) fn judge(&mut self, result: &ToolMessage, limits: &ProgressLimits) -> Option<Stalled> {
        let meta = ToolMeta::of(result).filter(|_| limits.watches(&result.name))?;
        let tool = self.tools.entry(result.name.clone()).or_default();
        let action = match meta.source {
            MetaSource::ProgressMiddleware => Some(ProgressAction::Refused),
            MetaSource::Exception | MetaSource::ToolReturn | MetaSource::ContentAnalysis => {
                tool.take(&result.content, &meta, limits)
            }
        };
        let (problems, error_type) = (tool.problems, tool.error_type);
        let stalled = Stalled { tool_name: result.name.clone(), action: action?, problems, error_type };
        if stalled.action == ProgressAction::Warned && limits.inject_assessment {
            self.hint(notes::progress_hint(&stalled, meta.recommended_next_action));
        }
        Some(stalled)
    }

    /// Why a tool is not run any more.
    pub(super) fn blocked(&self, tool_name: &str) -> Option<Stalled> {
        let tool = self.tools.get(tool_name).filter(|tool| tool.is_blocked)?;
        Some(Stalled {
            tool_name: tool_name.to_owned(),
            action: ProgressAction::Refused,
            problems: tool.problems,
            error_type: tool.error_type,
        })
    }

    /// What the model is to be told.
    pub(super) fn hints(&self) -> &[String] {
        &self.hints
    }

    /// A reply shows that the model was told.
    pub(super) fn told(&mut self) {
        self.hints.clear();
    }

    fn hint(&mut self, hint: String) {
        self.hints.retain(|known| *known != hint);
        self.hints.push(hint);
        let too_many = self.hints.len().saturating_sub(HINTS_MAX);
        self.hints.drain(..too_many);
    }
}

impl Watched {
    fn take(&mut self, content: &str, meta: &ToolMeta, limits: &ProgressLimits) -> Option<ProgressAction> {
        let is_error = match meta.status {
            MetaStatus::Success => {
                let words = Words::of(content);
                if !self.repeats(&words, limits) {
                    self.brought(words);
                    return None;
                }
                false
            }
            MetaStatus::PartialSuccess => false,
            MetaStatus::Error => true,
        };
        self.problems = self.problems.saturating_add(1);
        self.error_type = meta.error_type;
        let is_hopeless = is_error && !meta.recoverable_by_model;
        let is_for_good = is_hopeless && meta.recommended_next_action == NextAction::Stop;
        if is_for_good || (is_hopeless && self.problems >= limits.blocked_from()) {
            self.is_blocked = true;
            return Some(ProgressAction::Blocked);
        }
        (self.problems >= limits.stagnation_threshold).then_some(ProgressAction::Warned)
    }

    fn repeats(&self, words: &Words, limits: &ProgressLimits) -> bool {
        self.good.iter().any(|earlier| words.repeat(earlier, limits.min_words, limits.jaccard_threshold))
    }

    fn brought(&mut self, words: Words) {
        (self.problems, self.error_type) = (0, None);
        self.good.push_back(words);
        if self.good.len() > GOOD_RESULTS_MAX {
            self.good.pop_front();
        }
    }
}

impl ProgressLimits {
    fn watches(&self, tool_name: &str) -> bool {
        !self.exempt_tools.iter().any(|exempt| exempt == tool_name)
    }

    const fn blocked_from(&self) -> u32 {
        self.stagnation_threshold.saturating_add(self.warn_escalation_count)
    }
}

#[cfg(test)]
mod tests;
