//! The messages that a subagent begins with (facts §3.5): one system message and the task.

use jiff::civil::Date;

use super::{
    BLANK_LINE,
    acceptance::{CRITERIA_POINTER, bounded_criteria, criteria_block},
    date::date_note,
    report_contract::report_contract,
};
use crate::message::Message;

/// What a subagent is told before its first turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Briefing<'a> {
    /// The definition's own prompt.
    pub system_prompt: Option<&'a str>,
    /// The index of its skills; `None` when it has none.
    pub skills: Option<&'a str>,
    /// The list of tools that it has to search for; `None` when there are none.
    pub deferred_tools: Option<&'a str>,
    /// Hints at which of those suit what; `None` when there are none.
    pub routing_hints: Option<&'a str>,
    /// The day on which it begins.
    pub today: Option<Date>,
    /// Whether its report is compared with receipts.
    pub receipts_enabled: bool,
    /// The task, in the lead's words.
    pub prompt: &'a str,
    /// What has to hold for the work to be accepted, in the lead's words.
    pub acceptance_criteria: &'a [String],
}

/// One system message, whose parts stand in a fixed order, and one human message. The lead's words
/// are in the latter only.
pub fn initial_messages(briefing: &Briefing<'_>) -> Vec<Message> {
    let criteria = bounded_criteria(briefing.acceptance_criteria);
    vec![
        Message::system(system_text(briefing, !criteria.is_empty())),
        task_message(briefing.prompt, &criteria),
    ]
}

fn system_text(briefing: &Briefing<'_>, has_criteria: bool) -> String {
    let Briefing { system_prompt, skills, deferred_tools, routing_hints, .. } = *briefing;
    let contract = report_contract(briefing.receipts_enabled);
    let pointer = has_criteria.then_some(CRITERIA_POINTER);
    let date = briefing.today.map(date_note);
    let parts =
        [system_prompt, skills, deferred_tools, routing_hints, Some(&contract), pointer, date.as_deref()];
    let written: Vec<&str> = parts.into_iter().flatten().filter(|part| !part.trim().is_empty()).collect();
    written.join(BLANK_LINE)
}

fn task_message(prompt: &str, criteria: &[String]) -> Message {
    if criteria.is_empty() {
        return Message::human(prompt);
    }
    Message::human(format!("{prompt}{BLANK_LINE}{}", criteria_block(criteria)))
}
