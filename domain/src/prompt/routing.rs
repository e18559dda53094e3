//! When to delegate: the one text that the lead's prompt, the `task` tool and the descriptions of
//! the built-in types share, so that they cannot disagree (facts §2).

/// When to delegate.
pub(super) const ROUTING_POLICY: &str = "\
Direct work is the default. Delegate only when the benefit (time saved, a specialist's skills, bulky detail kept \
out of this conversation) is clearly greater than the cost (starting up, finding out again what is already known, \
putting results together, conflicting changes and side effects). Routine git, build, test or deploy work alone does \
not justify delegation.";
