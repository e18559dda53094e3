//! Guards that fired.

use contracts::wire::cap as wire;
use domain::event::{CapAction, CapAxis};
use projections::CapRow;

/// What may be asked for, by its name.
pub(crate) const AXES: [(&str, CapAxis); 8] = [
    ("turns", CapAxis::Turns),
    ("tokens", CapAxis::Tokens),
    ("loop", CapAxis::Loop),
    ("delegations", CapAxis::Delegations),
    ("time", CapAxis::Time),
    ("depth", CapAxis::Depth),
    ("safety", CapAxis::Safety),
    ("retries", CapAxis::Retries),
];
/// What may be asked for, by its name.
pub(crate) const ACTIONS: [(&str, CapAction); 2] = [("warn", CapAction::Warn), ("stop", CapAction::Stop)];

/// A guard that fired.
pub(crate) fn to_wire(row: &CapRow) -> wire::Cap {
    wire::Cap {
        run_id: row.run_id.as_ref().map(ToString::to_string),
        task_id: row.task_id.as_ref().map(ToString::to_string),
        delegation_id: row.delegation_id.map(|id| id.to_string()),
        axis: axis(row.cap.axis).to_owned(),
        action: action(row.cap.action).to_owned(),
        used: row.cap.used,
        budget: row.cap.budget,
        at: row.at.to_string(),
        seq: row.seq,
    }
}

/// What a guard watches.
pub(crate) const fn axis(axis: CapAxis) -> &'static str {
    match axis {
        CapAxis::Turns => "turns",
        CapAxis::Tokens => "tokens",
        CapAxis::Loop => "loop",
        CapAxis::Delegations => "delegations",
        CapAxis::Time => "time",
        CapAxis::Depth => "depth",
        CapAxis::Safety => "safety",
        CapAxis::Retries => "retries",
    }
}

/// What a guard did.
pub(crate) const fn action(action: CapAction) -> &'static str {
    match action {
        CapAction::Warn => "warn",
        CapAction::Stop => "stop",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_asked_for() {
        assert!(AXES.iter().all(|(name, one)| *name == axis(*one)));
        assert!(ACTIONS.iter().all(|(name, one)| *name == action(*one)));
    }
}
