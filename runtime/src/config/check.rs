//! Checks every value against its range, and names all that are outside at once.

use std::{collections::BTreeSet, fmt::Display, ops::RangeInclusive};

use domain::definition::SettingProblem;

use super::Config;
use crate::models::{SettingsError, configured::OFFLINE_NAME};

/// Collects what is wrong below one section.
pub(super) struct Checks {
    section: &'static str,
    problems: Vec<SettingProblem>,
}

impl Checks {
    pub(super) const fn below(section: &'static str) -> Self {
        Self { section, problems: Vec::new() }
    }

    pub(super) fn found(self) -> Vec<SettingProblem> {
        self.problems
    }

    pub(super) fn problem(&mut self, key: &str, value: &dyn Display, allowed: &str) {
        let key = format!("{}.{key}", self.section);
        self.problems.push(SettingProblem { key, value: value.to_string(), allowed: allowed.to_owned() });
    }

    pub(super) fn within<T: PartialOrd + Display>(
        &mut self,
        key: &str,
        value: &T,
        range: &RangeInclusive<T>,
    ) {
        if !range.contains(value) {
            self.problem(key, value, &format!("from {} to {}", range.start(), range.end()));
        }
    }
}

/// Everything that is wrong with a configuration.
pub(super) fn problems_of(config: &Config) -> Vec<SettingProblem> {
    let mut problems = model_problems(config);
    problems.extend(limit_problems(config));
    problems.extend(config.subagent_batches.problems());
    problems.extend(config.summarization.problems(&config.models));
    problems.extend(config.llm_call.problems());
    problems.extend(config.circuit_breaker.problems());
    problems.extend(config.loop_detection.problems());
    problems.extend(config.tool_progress.problems());
    problems.extend(config.token_budget.iter().flat_map(|budget| budget.problems("token_budget")));
    problems.extend(config.log.problems());
    problems.extend(config.server.problems(&config.log.path));
    problems.extend(super::redaction::problems(&config.redaction));
    problems.extend(config.pricing.problems());
    problems
}

/// What is wrong with the limits of delegation alone.
pub(crate) fn limit_problems(config: &Config) -> Vec<SettingProblem> {
    let mut problems = config.subagents.validate().err().unwrap_or_default();
    problems.extend(config.subagent_runtime.problems());
    problems
}

fn model_problems(config: &Config) -> Vec<SettingProblem> {
    let mut problems = Vec::new();
    let mut names = BTreeSet::new();
    for model in &config.models {
        problems.extend(model.validate().err().map(|error| model_problem(&model.name, error)));
        if !names.insert(model.name.as_str()) {
            problems.push(SettingProblem {
                key: format!("models.{}.name", model.name),
                value: format!("{:?} twice", model.name),
                allowed: "a name of its own".to_owned(),
            });
        }
    }
    if config.models.is_empty() {
        names.insert(OFFLINE_NAME);
    }
    if let Some(name) = config.default_model.as_deref().filter(|name| !names.contains(name)) {
        let known: Vec<_> = names.into_iter().collect();
        problems.push(SettingProblem {
            key: "default_model".to_owned(),
            value: format!("{name:?}"),
            allowed: format!("a configured model: {}", known.join(", ")),
        });
    }
    problems
}

fn model_problem(name: &str, error: SettingsError) -> SettingProblem {
    match error {
        SettingsError::OutOfRange { key, given, min, max } => {
            SettingProblem { key, value: given, allowed: format!("from {min} to {max}") }
        }
        SettingsError::Invalid { .. }
        | SettingsError::SecretFile { .. }
        | SettingsError::UnknownDefault(_)
        | SettingsError::Scenario { .. }
        | SettingsError::Client { .. } => SettingProblem {
            key: format!("models.{name}"),
            value: "refused".to_owned(),
            allowed: format!("a model that can be used: {error}"),
        },
    }
}
