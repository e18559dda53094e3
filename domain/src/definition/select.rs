//! What a subagent takes over from its lead: the model and the skills.

use super::ModelChoice;

/// There is no model to run a subagent on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("choosing the subagent's model: none is configured; add one under `models`")]
pub struct NoModel;

/// The model's name: the one that the definition names, unchecked; else the lead's; else the first
/// configured one (facts §1.5). It is resolved once and used everywhere.
pub fn model_name(
    choice: &ModelChoice,
    parent: Option<&str>,
    configured: &[String],
) -> Result<String, NoModel> {
    match choice {
        ModelChoice::Named(name) => Ok(name.clone()),
        ModelChoice::Inherit => {
            parent.or(configured.first().map(String::as_str)).map(str::to_owned).ok_or(NoModel)
        }
    }
}

/// The skills that a subagent may use: its own, in its order, as far as its lead has them. `None`
/// is no restriction (facts §1.6).
pub fn effective_skills(parent: Option<&[String]>, child: Option<&[String]>) -> Option<Vec<String>> {
    match (parent, child) {
        (None, child) => child.map(<[String]>::to_vec),
        (Some(parent), None) => Some(parent.to_vec()),
        (Some(parent), Some(child)) => {
            Some(child.iter().filter(|skill| parent.contains(skill)).cloned().collect())
        }
    }
}
