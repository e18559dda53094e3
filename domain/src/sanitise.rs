//! Untrusted text on its way to a model.
//!
//! Whatever a person, a model or the network wrote may imitate the framework's own marks. Here
//! such imitations are made harmless; what a text means is never judged.
//!
//! - [`neutralise`] turns blocked tags into entities and defuses boundary lines. For results and
//!   for values inside a larger text.
//! - [`frame`] neutralises and puts the whole between the boundary lines. For a user's turn.
//! - [`escape`] turns every angle bracket and ampersand into an entity. For one value in a line of
//!   framework text.

mod scanner;
#[cfg(test)]
mod tests;

use self::scanner::tag_end;

/// Opens a user's turn.
pub const BEGIN_MARKER: &str = "--- BEGIN USER INPUT ---";
/// Closes a user's turn.
pub const END_MARKER: &str = "--- END USER INPUT ---";
/// What a copy of the opening marker inside a text becomes.
const DEFUSED_BEGIN_MARKER: &str = "[BEGIN USER INPUT]";
/// What a copy of the closing marker inside a text becomes.
const DEFUSED_END_MARKER: &str = "[END USER INPUT]";

/// Names of tags that belong to the framework, and words that are used to imitate its authority
/// (chain facts (c)). A tag that a prompt of ours uses must be here; a test compares.
pub const BLOCKED_TAGS: [&str; 42] = [
    "system-reminder",
    "system_reminder",
    "memory",
    "current_date",
    "think",
    "analysis",
    "role",
    "soul",
    "self_update",
    "thinking_style",
    "clarification_system",
    "critical_reminders",
    "response_style",
    "citations",
    "uploaded_files",
    "current_uploads",
    "subagent_system",
    "skill_system",
    "skill_index",
    "available_skills",
    "disabled_skills",
    "memory_tool_system",
    "todo_list_system",
    "durable_context_data",
    "slash_skill_activation",
    "mcp_routing_hints",
    "available-deferred-tools",
    "goal_continuation",
    "background_task_event",
    "file_editing_workflow",
    "guidelines",
    "output_format",
    "working_directory",
    "tool_restrictions",
    "report_contract",
    "acceptance_criteria",
    "system",
    "instruction",
    "important",
    "override",
    "ignore",
    "prompt",
];

/// Makes blocked tags and boundary lines harmless, and changes nothing else. Doing it again
/// changes nothing more.
pub fn neutralise(text: &str) -> String {
    defuse_markers(&escape_tags(text))
}

/// Neutralises a user's turn and puts it between the boundary lines. Blank text stays as it is,
/// and a text that is framed already keeps its frame.
pub fn frame(text: &str) -> String {
    if text.trim().is_empty() {
        return text.to_owned();
    }
    let text = escape_tags(text);
    let framed = text.strip_prefix(BEGIN_MARKER).and_then(|rest| rest.strip_suffix(END_MARKER));
    match framed {
        Some(inner) => format!("{BEGIN_MARKER}{}{END_MARKER}", defuse_markers(inner)),
        None => format!("{BEGIN_MARKER}\n{}\n{END_MARKER}", defuse_markers(&text)),
    }
}

/// Escapes `&`, `<` and `>`; quotation marks stay, so the result is for element text, not for
/// attributes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn defuse_markers(text: &str) -> String {
    text.replace(BEGIN_MARKER, DEFUSED_BEGIN_MARKER).replace(END_MARKER, DEFUSED_END_MARKER)
}

/// Turns every angle bracket of every blocked tag into an entity.
fn escape_tags(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(opening) = rest.find('<') {
        let (before, candidate) = rest.split_at(opening);
        escaped.push_str(before);
        // A bracket that opens no blocked tag is kept, and the search goes on right behind it.
        let (taken, following) = match tag_end(candidate) {
            Some(end) => {
                let (tag, following) = candidate.split_at(end);
                (tag.replace('<', "&lt;").replace('>', "&gt;"), following)
            }
            None => ("<".to_owned(), candidate.strip_prefix('<').unwrap_or_default()),
        };
        escaped.push_str(&taken);
        rest = following;
    }
    escaped.push_str(rest);
    escaped
}
