//! Every text that stands before a model with the framework's authority.
//!
//! The texts are golden files in `contracts/prompts`: a changed one is a reviewed decision. What a
//! person, a model or the network wrote is never part of them; it travels in human and tool
//! messages, and what a line here quotes of it is escaped.

mod acceptance;
mod bash;
mod briefing;
mod date;
mod delegated;
mod delegation;
mod durable;
mod folders;
mod general_purpose;
mod lead;
mod refusal;
mod report_contract;
mod routing;
mod summary;
mod task_tool;
#[cfg(test)]
mod tests;

pub use self::{
    acceptance::bounded_criteria,
    briefing::{Briefing, initial_messages},
    date::date_note,
    delegation::DelegationOffer,
    lead::lead_system_prompt,
    refusal::{BASH_DISABLED, type_not_allowed, unknown_type},
    task_tool::task_tool,
};
pub(crate) use self::{
    bash::{bash, bash_description},
    durable::{DURABLE_CONTEXT_CONTRACT, durable_context},
    general_purpose::{general_purpose, general_purpose_description},
    summary::{SummaryMaterial, summary_request},
};

/// Stands between the parts of a prompt.
const BLANK_LINE: &str = "\n\n";
