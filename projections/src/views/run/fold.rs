//! How a run's row follows its events.

use domain::{
    event::{
        DelegationEvent, Event, Logged, ModelEvent, RunEvent, RunSettings, RunStatusChanged, SubagentEvent,
    },
    event::{RunEnded, RunStatus},
    limits::STEP_TEXT_CHARS_MAX,
    message::Message,
    text,
    usage::Usage,
};

use super::{RunRow, RunUsage, SettingsSummary, started_run};
use crate::view::FoldError;

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
        }
    }

    fn take(&mut self, event: &Logged) {
        match &event.event {
            Event::Run(of_run) if !self.status.is_terminal() => self.take_run(event, of_run),
            Event::Subagent(SubagentEvent::Compacted(compacted)) => {
                self.usage.add_report(compacted.compaction.usage(), |usage| &mut usage.subagents);
            }
            Event::Model(ModelEvent::AiResponse(reply)) => {
                self.turns += 1;
                self.usage.add(reply, |usage| &mut usage.lead);
            }
            Event::Subagent(SubagentEvent::Message(captured)) => {
                self.usage.add(&captured.message, |usage| &mut usage.subagents);
            }
            Event::Delegation(DelegationEvent::Requested(_)) => self.delegations_requested += 1,
            Event::Delegation(DelegationEvent::Refused(_)) => self.delegations_refused += 1,
            Event::Run(_)
            | Event::Thread(_)
            | Event::Model(
                ModelEvent::HumanInput(_)
                | ModelEvent::ToolResult(_)
                | ModelEvent::Failed(_)
                | ModelEvent::Retried(_)
                | ModelEvent::AnswerMissing(_)
                | ModelEvent::AnswerCut(_),
            )
            | Event::Tool(_)
            | Event::Delegation(
                DelegationEvent::Queued(_) | DelegationEvent::Admitted(_) | DelegationEvent::Delivered(_),
            )
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

    /// Takes an event of the run itself, which has not ended.
    fn take_run(&mut self, event: &Logged, of_run: &RunEvent) {
        match of_run {
            RunEvent::StatusChanged(changed) => self.take_status(event, changed),
            RunEvent::Ended(ended) => self.take_result(ended),
            RunEvent::Failed(failed) => self.error = Some(bounded(&failed.error)),
            // A summary of the lead's history is no work of the lead, but it was paid for.
            RunEvent::Compacted(compaction) => Usage::add_to(&mut self.usage.total, compaction.usage()),
            RunEvent::Started(_) | RunEvent::Capped(_) => {}
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
