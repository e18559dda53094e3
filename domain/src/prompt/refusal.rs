//! What a lead is told when its `task` call names a type that it cannot have (facts §4.2).

use crate::{limits::NAME_CHARS_MAX, text};

/// Why there is no shell, and what an operator can do about it.
pub const BASH_DISABLED: &str = "\
Bash subagent is disabled: its commands would run on this host without a sandbox. Configure a sandbox that isolates \
commands, or set `sandbox.allow_host_bash: true` on a host where any command may run. Until then, use the file tools or \
another subagent type.";

/// No source has the type.
pub fn unknown_type(name: &str, available: &[&str]) -> String {
    format!("Unknown subagent type '{}'. Available: {}", shown(name), listed(available))
}

/// The type exists, but not for this run.
pub fn type_not_allowed(name: &str, available: &[&str]) -> String {
    format!("Subagent type '{}' is not allowed in this run. Available: {}", shown(name), listed(available))
}

/// A name that no type can have may be of any length.
fn shown(name: &str) -> String {
    text::prefix(name, NAME_CHARS_MAX).text
}

fn listed(available: &[&str]) -> String {
    if available.is_empty() { "none".to_owned() } else { available.join(", ") }
}
