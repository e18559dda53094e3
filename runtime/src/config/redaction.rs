//! The `redaction` section: its patterns are compiled to find out whether they can be.

use domain::{
    definition::SettingProblem,
    redaction::{RedactionSettings, Redactor},
};

/// The first setting that cannot be used.
pub(super) fn problems(settings: &RedactionSettings) -> Vec<SettingProblem> {
    let problem = Redactor::new(settings).err().map(|error| SettingProblem {
        key: format!("redaction.{}", error.key),
        value: error.value,
        allowed: error.allowed,
    });
    problem.into_iter().collect()
}
