//! Range checks of settings, each with the words that say what would have been accepted.

use std::{fmt::Display, ops::RangeInclusive};

use crate::definition::ModelChoice;

/// A setting that is outside its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} is {value}: it must be {allowed}")]
pub struct SettingProblem {
    /// The full key, such as `subagents.max_total_per_run`.
    pub key: String,
    /// What was given.
    pub value: String,
    /// What would have been accepted.
    pub allowed: String,
}

/// Collects what is wrong with the settings below one key.
pub(in crate::definition) struct Checks<'a> {
    key: &'a str,
    problems: Vec<SettingProblem>,
}

impl<'a> Checks<'a> {
    pub(in crate::definition) const fn below(key: &'a str) -> Self {
        Self { key, problems: Vec::new() }
    }

    pub(in crate::definition) fn found(self) -> Vec<SettingProblem> {
        self.problems
    }

    pub(in crate::definition) fn problem(&mut self, name: &str, value: impl Display, allowed: String) {
        let key = format!("{}.{name}", self.key);
        self.problems.push(SettingProblem { key, value: value.to_string(), allowed });
    }

    pub(in crate::definition) fn at_least(&mut self, name: &str, value: Option<u64>, min: u64) {
        if let Some(value) = value.filter(|value| *value < min) {
            self.problem(name, value, format!("at least {min}"));
        }
    }

    pub(in crate::definition) fn within(&mut self, name: &str, value: u32, range: &RangeInclusive<u32>) {
        if !range.contains(&value) {
            self.problem(name, value, format!("from {} to {}", range.start(), range.end()));
        }
    }

    pub(in crate::definition) fn share(&mut self, name: &str, value: Option<f64>) {
        // What is not a number is in no range, so the test is for being inside.
        if let Some(value) = value.filter(|value| !(0.0..=1.0).contains(value)) {
            self.problem(name, value, "from 0 to 1".to_owned());
        }
    }

    pub(in crate::definition) fn named_model(&mut self, name: &str, model: Option<&ModelChoice>) {
        match model {
            Some(ModelChoice::Named(model)) if model.trim().is_empty() => {
                self.problem(name, format!("{model:?}"), "a model's name or \"inherit\"".to_owned());
            }
            Some(ModelChoice::Named(_) | ModelChoice::Inherit) | None => {}
        }
    }
}
