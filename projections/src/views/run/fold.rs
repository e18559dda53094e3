//! How a run's row follows its events.

use domain::{
    event::{
        DelegationEvent, Event, LEAD_CALLER, Logged, ModelEvent, RunEnded, RunEvent, RunSettings, RunStatus,
        RunStatusChanged, SubagentEvent,
    },
    feed::{MIDDLEWARE_PREFIX, SUBAGENT_PREFIX},
    limits::STEP_TEXT_CHARS_MAX,
    message::Message,
    text,
    usage::Usage,
};

use super::{RunRow, RunUsage, SettingsSummary, started_run};
use crate::{view::FoldError, views::ledger::delegation_of};

impl RunRow {
    /// Whether the event can be folded: what starts a run must name the run that it is about.
    pub(crate) fn check(event: &Logged) -> Result<(), FoldError> {
        match (&event.event, &event.scope.run_id) {
            (Event::Run(RunEvent::Started(settings)), Some(run_id)) if *run_id != settings.run_id => {
                let text = format!("it starts run {} and is recorded for run {run_id}", settings.run_id);
                Err(FoldError::Contradiction(text))
            }
            (
                Event::Run(_)
                | Event::Thread(_)
                | Event::Model(_)
                | Event::Tool(_)
                | Event::Delegation(_)
                | Event::Subagent(_)
                | Event::Registry(_)
                | Event::Foreign(_),
                _,
            ) => Ok(()),
        }
    }

    /// The run after one of its events. Only its start makes it.
    pub(crate) fn fold(row: Option<Self>, event: &Logged) -> Option<Self> {
        let mut row = match (row, &event.event) {
            (Some(row), _) => row,
            (None, Event::Run(RunEvent::Started(settings))) => {
                started_run(event)?;
                Self::new(event, settings)
            }
            (
                None,
                Event::Run(_)
                | Event::Thread(_)
                | Event::Model(_)
                | Event::Tool(_)
                | Event::Delegation(_)
                | Event::Subagent(_)
                | Event::Registry(_)
                | Event::Foreign(_),
            ) => return None,
        };
        row.updated_at = event.recorded_at;
        row.last_seq = event.seq;
        row.take(event);
        Some(row)
    }

    fn new(event: &Logged, settings: &RunSettings) -> Self {
        Self {
            thread_id: event.thread_id.clone(),
            run_id: settings.run_id.clone(),
            status: RunStatus::Pending,
            stop_reason: None,
            error: None,
            model_name: settings.model_name.clone(),
            created_at: event.recorded_at,
            started_at: None,
            ended_at: None,
            updated_at: event.recorded_at,
            usage: RunUsage::default(),
            turns: 0,
            delegations_requested: 0,
            delegations_refused: 0,
            result: None,
            result_truncated: false,
            first_seq: event.seq,
            last_seq: event.seq,
            settings: SettingsSummary::of(settings),
            is_of_others: event.is_of_others(),
        }
    }

    fn take(&mut self, event: &Logged) {
        match &event.event {
            // A summary of the lead's history is no work of the lead, but it was paid for.
            Event::Run(RunEvent::Compacted(compaction)) => {
                Usage::add_to(&mut self.usage.total, compaction.usage());
            }
            Event::Run(of_run) if self.is_told_by(event) => self.take_run(event, of_run),
            Event::Subagent(SubagentEvent::Compacted(compacted)) => {
                self.usage.add_report(compacted.compaction.usage(), |usage| &mut usage.subagents);
            }
            Event::Model(ModelEvent::AiResponse(reply)) => self.take_reply(event, reply),
            Event::Subagent(SubagentEvent::Message(captured)) => {
                self.usage.add(&captured.message, |usage| &mut usage.subagents);
            }
            Event::Delegation(of_delegation) if delegation_of(event).is_some() => {
                self.take_delegation(of_delegation);
            }
            Event::Run(_)
            | Event::Thread(_)
            | Event::Model(
                ModelEvent::HumanInput(_)
                | ModelEvent::ToolResult(_)
                | ModelEvent::Failed(_)
                | ModelEvent::Retried(_)
                | ModelEvent::AnswerMissing(_)
                | ModelEvent::AnswerCut(_)
                | ModelEvent::ToolStalled(_),
            )
            | Event::Tool(_)
            | Event::Delegation(_)
            | Event::Subagent(
                SubagentEvent::Started(_)
                | SubagentEvent::Step(_)
                | SubagentEvent::Receipt(_)
                | SubagentEvent::Capped(_)
                | SubagentEvent::Ended(_),
            )
            | Event::Registry(_)
            | Event::Foreign(_) => {}
        }
    }

    /// Whether the event says where the run stands. Its first end stands, and of a run of ours nobody
    /// else can say it.
    fn is_told_by(&self, event: &Logged) -> bool {
        !self.status.is_terminal() && (self.is_of_others || !event.is_of_others())
    }

    /// A turn is a reply of the lead's model. What others had a model say for this run was paid for by
    /// whoever they say it was (facts §5).
    fn take_reply(&mut self, event: &Logged, reply: &Message) {
        let caller = event.caller().unwrap_or(LEAD_CALLER);
        if caller.starts_with(SUBAGENT_PREFIX) {
            self.usage.add(reply, |usage| &mut usage.subagents);
        } else if caller.starts_with(MIDDLEWARE_PREFIX) {
            Usage::add_to(&mut self.usage.total, reply.as_assistant().and_then(|reply| reply.usage));
        } else {
            self.turns += 1;
            self.usage.add(reply, |usage| &mut usage.lead);
        }
    }

    const fn take_delegation(&mut self, event: &DelegationEvent) {
        match event {
            DelegationEvent::Requested(_) => self.delegations_requested += 1,
            DelegationEvent::Refused(_) => self.delegations_refused += 1,
            DelegationEvent::Queued(_)
            | DelegationEvent::Admitted(_)
            | DelegationEvent::Resumed(_)
            | DelegationEvent::Delivered(_) => {}
        }
    }

    /// Takes an event of the run itself, which has not ended.
    fn take_run(&mut self, event: &Logged, of_run: &RunEvent) {
        match of_run {
            RunEvent::StatusChanged(changed) => self.take_status(event, changed),
            RunEvent::Ended(ended) => self.take_result(ended),
            RunEvent::Failed(failed) => self.error = Some(bounded(&failed.error)),
            RunEvent::Started(_) | RunEvent::Capped(_) | RunEvent::Compacted(_) => {}
        }
    }

    fn take_status(&mut self, event: &Logged, changed: &RunStatusChanged) {
        self.status = changed.status;
        self.stop_reason = changed.stop_reason;
        if let Some(error) = &changed.error {
            self.error = Some(bounded(error));
        }
        if changed.status == RunStatus::Running {
            self.started_at.get_or_insert(event.recorded_at);
        }
        if changed.status.is_terminal() {
            self.ended_at = Some(event.recorded_at);
        }
    }

    fn take_result(&mut self, ended: &RunEnded) {
        let result = text::prefix(&ended.result, STEP_TEXT_CHARS_MAX);
        self.result_truncated = ended.result_truncated || result.is_truncated;
        self.result = Some(result.text);
    }
}

impl RunUsage {
    /// Adds what a model reported for a reply to the total and to one caller.
    fn add(&mut self, message: &Message, caller: fn(&mut Self) -> &mut Option<Usage>) {
        self.add_report(message.as_assistant().and_then(|reply| reply.usage), caller);
    }

    fn add_report(&mut self, report: Option<Usage>, caller: fn(&mut Self) -> &mut Option<Usage>) {
        Usage::add_to(&mut self.total, report);
        Usage::add_to(caller(self), report);
    }
}

fn bounded(error: &str) -> String {
    text::prefix(error, STEP_TEXT_CHARS_MAX).text
}
