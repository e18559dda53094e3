//! What a run is doing, folded from its events: the lead and one line per delegation.

use domain::{
    card::CardHead,
    event::{Event, Logged, ModelEvent, RunEvent, RunStatus},
    ids::{DelegationId, RunId},
    message::Message,
    usage::Usage,
};
use jiff::Timestamp;

pub(crate) mod lines;
pub(crate) mod screen_lines;
pub(crate) mod watch;

/// A run as somebody watches it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Progress {
    run_id: RunId,
    lead: Lead,
    delegations: Vec<(DelegationId, Watched)>,
    answer: Option<String>,
    ending: Option<Ending>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Its last status.
    pub(crate) status: RunStatus,
    /// What went wrong, if something did.
    pub(crate) error: Option<String>,
}

/// A delegation, and what it waits for.
#[derive(Debug, Clone, PartialEq)]
struct Watched {
    head: CardHead,
    wait: Option<Wait>,
}

/// A model call failed and will be tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wait {
    /// How long the model is left alone, in milliseconds.
    pub(crate) ms: u64,
    /// The class of the failure.
    pub(crate) reason: String,
}

/// What the lead does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lead {
    /// Where its run stands.
    pub(crate) status: RunStatus,
    /// Model calls so far.
    pub(crate) turns: u32,
    /// Its own tokens, where reported.
    pub(crate) usage: Option<Usage>,
    /// The last tool that it asked for.
    pub(crate) last_tool: Option<String>,
    /// When the run was asked for.
    pub(crate) started_at: Option<Timestamp>,
    /// When it ended.
    pub(crate) ended_at: Option<Timestamp>,
    /// What it waits for, until the model replies.
    pub(crate) wait: Option<Wait>,
}

/// Whose line an event changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changed {
    /// Nobody's.
    Nothing,
    /// The lead's.
    Lead,
    /// That of the delegation at this place.
    Delegation(usize),
}

impl Progress {
    /// A run of which nothing is known yet.
    pub(crate) const fn new(run_id: RunId) -> Self {
        let lead = Lead {
            status: RunStatus::Pending,
            turns: 0,
            usage: None,
            last_tool: None,
            started_at: None,
            ended_at: None,
            wait: None,
        };
        Self { run_id, lead, delegations: Vec::new(), answer: None, ending: None }
    }

    /// The lead.
    pub(crate) const fn lead(&self) -> &Lead {
        &self.lead
    }

    /// The delegations, in the order in which they were asked for.
    pub(crate) fn delegations(&self) -> impl Iterator<Item = &CardHead> {
        self.delegations.iter().map(|(_, watched)| &watched.head)
    }

    /// The delegation at a place.
    pub(crate) fn delegation(&self, place: usize) -> Option<&CardHead> {
        self.delegations.get(place).map(|(_, watched)| &watched.head)
    }

    /// What the delegation at a place waits for.
    pub(crate) fn wait(&self, place: usize) -> Option<&Wait> {
        self.delegations.get(place).and_then(|(_, watched)| watched.wait.as_ref())
    }

    /// The lead's last words, whole.
    pub(crate) fn answer(&self) -> Option<&str> {
        self.answer.as_deref()
    }

    /// How the run ended; none while it has not.
    pub(crate) const fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Takes an event of the thread, and says whose line it changed.
    pub(crate) fn take(&mut self, logged: &Logged) -> Changed {
        if logged.scope.run_id.as_ref() != Some(&self.run_id) {
            return Changed::Nothing;
        }
        match &logged.event {
            Event::Run(event) => self.take_run(logged, event),
            Event::Model(event) => self.take_model(logged, event),
            Event::Delegation(_) | Event::Subagent(_) => self.take_delegation(logged),
            Event::Thread(_) | Event::Tool(_) | Event::Registry(_) | Event::Foreign(_) => Changed::Nothing,
        }
    }

    fn take_run(&mut self, logged: &Logged, event: &RunEvent) -> Changed {
        match event {
            RunEvent::Started(_) => self.lead.started_at = Some(logged.recorded_at),
            RunEvent::StatusChanged(changed) => {
                self.lead.status = changed.status;
                if changed.status.is_terminal() && self.ending.is_none() {
                    self.lead.wait = None;
                    self.lead.ended_at = Some(logged.recorded_at);
                    self.ending = Some(Ending { status: changed.status, error: changed.error.clone() });
                }
            }
            RunEvent::Ended(end) if !end.result_truncated => self.answer = Some(end.result.clone()),
            RunEvent::Compacted(compaction) => Usage::add_to(&mut self.lead.usage, compaction.usage()),
            RunEvent::Capped(_) | RunEvent::Ended(_) | RunEvent::Failed(_) => return Changed::Nothing,
        }
        Changed::Lead
    }

    fn take_model(&mut self, logged: &Logged, event: &ModelEvent) -> Changed {
        let reply = match event {
            ModelEvent::AiResponse(Message::Assistant(reply)) => reply,
            ModelEvent::Retried(retry) => {
                return self
                    .take_wait(logged, Some(Wait { ms: retry.wait_ms, reason: retry.reason.clone() }));
            }
            ModelEvent::Failed(_) => return self.take_wait(logged, None),
            ModelEvent::HumanInput(_)
            | ModelEvent::AiResponse(_)
            | ModelEvent::ToolResult(_)
            | ModelEvent::AnswerMissing(_)
            | ModelEvent::AnswerCut(_)
            | ModelEvent::ToolStalled(_) => {
                return Changed::Nothing;
            }
        };
        self.lead.wait = None;
        self.lead.turns += 1;
        Usage::add_to(&mut self.lead.usage, reply.usage);
        if let Some(call) = reply.tool_calls.last() {
            self.lead.last_tool = Some(call.name.clone());
        }
        if !reply.content.trim().is_empty() {
            self.answer = Some(reply.content.clone());
        }
        Changed::Lead
    }

    /// Model calls of subagents carry their delegation.
    fn take_wait(&mut self, logged: &Logged, wait: Option<Wait>) -> Changed {
        let Some(id) = logged.scope.delegation_id else {
            self.lead.wait = wait;
            return Changed::Lead;
        };
        let Some(place) = self.delegations.iter().position(|(known, _)| *known == id) else {
            return Changed::Nothing;
        };
        if let Some((_, watched)) = self.delegations.get_mut(place) {
            watched.wait = wait;
        }
        Changed::Delegation(place)
    }

    fn take_delegation(&mut self, logged: &Logged) -> Changed {
        let Some(id) = logged.scope.delegation_id else { return Changed::Nothing };
        let place = self.delegations.iter().position(|(known, _)| *known == id);
        let known = place.and_then(|place| self.delegation(place)).cloned();
        let Some(head) = CardHead::fold(known, logged) else { return Changed::Nothing };
        // Whatever happens to a delegation, it does not wait any more.
        let watched = Watched { head, wait: None };
        match place.and_then(|place| self.delegations.get_mut(place)) {
            Some(slot) => slot.1 = watched,
            None => self.delegations.push((id, watched)),
        }
        Changed::Delegation(place.unwrap_or(self.delegations.len() - 1))
    }
}

#[cfg(test)]
mod tests;
