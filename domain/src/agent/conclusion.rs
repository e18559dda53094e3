//! How a piece of work ended, judged from its last reply alone (facts §3.6).

use super::Agent;
use crate::{
    event::{CapAction, CapAxis},
    guard::{last_words::are_a_note_alone, safety},
    message::{AssistantMessage, ERROR_DETAIL_KEY},
    status_contract::{NO_RESPONSE, StopReason},
};

/// How a piece of work ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conclusion {
    /// A usable answer.
    Completed {
        /// The answer, whole.
        text: String,
        /// The guard that made the agent stop early.
        stop_reason: Option<StopReason>,
    },
    /// No usable answer.
    Failed {
        /// Why.
        error: String,
        /// The guard that ended the work.
        stop_reason: Option<StopReason>,
    },
}

/// Judges an agent with nothing left to do.
pub(super) fn conclude(agent: &Agent) -> Conclusion {
    let reply = agent.last_reply();
    let stop_reason = guard_reason(agent);
    if let Some(fallback) = reply.filter(|reply| reply.is_error_fallback()) {
        let stop_reason =
            if agent.is_answered() { None } else { stop_reason.or(Some(StopReason::TurnCapped)) };
        return Conclusion::Failed { error: fallback_error(fallback), stop_reason };
    }
    if agent.is_answered() {
        answered(agent, reply, stop_reason)
    } else {
        out_of_turns(agent, reply, stop_reason)
    }
}

/// A proper end. Without text it is not an answer, whatever the provider called it; nor is the note
/// of a guard that ended the work, when nothing else was said.
fn answered(agent: &Agent, reply: Option<&AssistantMessage>, stop_reason: Option<StopReason>) -> Conclusion {
    if let Some(found) = reply.and_then(safety::detect) {
        let partial = reply.map_or("", |reply| reply.content.trim());
        let error =
            format!("The provider stopped the reply for safety ({}). Partial text: {partial}", found.value);
        return Conclusion::Failed {
            error: error.trim_end_matches(" Partial text: ").to_owned(),
            stop_reason,
        };
    }
    let Some(text) = reply.map(|reply| &reply.content).filter(|text| !text.trim().is_empty()) else {
        return Conclusion::Failed { error: NO_RESPONSE.to_owned(), stop_reason };
    };
    let is_checked = agent.guards.last_words().are_checked();
    if is_checked && stop_reason.is_some() && are_a_note_alone(text) {
        return Conclusion::Failed { error: text.trim().to_owned(), stop_reason };
    }
    Conclusion::Completed { text: text.clone(), stop_reason }
}

fn out_of_turns(agent: &Agent, reply: Option<&AssistantMessage>, reason: Option<StopReason>) -> Conclusion {
    let stop_reason = Some(reason.unwrap_or(StopReason::TurnCapped));
    match reply.map(|reply| reply.content.trim()).filter(|text| !text.is_empty()) {
        Some(text) => Conclusion::Completed { text: text.to_owned(), stop_reason },
        None => Conclusion::Failed { error: format!("Reached max_turns={}", agent.max_turns), stop_reason },
    }
}

/// The first guard in the chain's order that ended the work (facts §3.7).
fn guard_reason(agent: &Agent) -> Option<StopReason> {
    let fired = |axis| agent.caps.iter().any(|cap| cap.axis == axis && cap.action == CapAction::Stop);
    let in_chain_order =
        [(CapAxis::Loop, StopReason::LoopCapped), (CapAxis::Tokens, StopReason::TokenCapped)];
    in_chain_order.into_iter().find(|(axis, _)| fired(*axis)).map(|(_, reason)| reason)
}

fn fallback_error(reply: &AssistantMessage) -> String {
    let detail =
        || reply.additional_kwargs.get(ERROR_DETAIL_KEY).and_then(serde_json::Value::as_str).map(str::trim);
    let text = Some(reply.content.trim()).filter(|text| !text.is_empty());
    text.or_else(|| detail().filter(|text| !text.is_empty())).unwrap_or("LLM request failed").to_owned()
}
