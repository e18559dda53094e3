//! The work itself: a subagent with a slot, under its time limit.

use std::{panic::AssertUnwindSafe, time::Duration};

use domain::{
    agent::{Agent, Conclusion},
    causes::with_causes,
    delegation::DelegationEnding,
    event::{Event, SubagentEvent, SubagentMessage},
    message::Message,
    prompt::{Briefing, initial_messages},
};
use futures::FutureExt;

use super::{Ended, Subagent};
use crate::{
    admission::Slot,
    agent_loop::AgentLoop,
    cancellation::StopCause,
    journal::Fact,
    recorder::{Recorder, Seat},
    run_owner::RecordError,
    tools::ToolContext,
};

impl Subagent {
    /// Works under what is left of the time limit. The slot is given back after the end is recorded.
    pub(super) async fn run(&self, slot: Slot, spent: Duration, agent: Agent) -> Result<Ended, RecordError> {
        let _slot = slot;
        let limit = Duration::from_secs(self.request.timeout_seconds).saturating_sub(spent);
        if limit.is_zero() {
            return self.timed_out(&agent).await;
        }
        let model = match self.context.services.models.get(&self.request.model_name) {
            Ok(model) => model,
            Err(unknown) => {
                let error = unknown.to_string();
                return self.end(DelegationEnding::Failed { error, stop_reason: None }, &agent).await;
            }
        };
        let services = &self.context.services;
        let confinement = services.confinement.as_ref().ok().cloned();
        let mut agent_loop = AgentLoop {
            agent,
            recorder: self.recorder(),
            model,
            tools: services.toolbox.specs(Some(&self.request.tools), &[]).into(),
            tool_context: ToolContext::new(self.context.folders.clone(), confinement, self.stop.token())
                .listed_in(self.context.tool_work.clone())
                .keeping(self.context.output_keeper()),
        };
        let worked = tokio::select! {
            biased;
            () = self.stop.stopped() => None,
            worked = AssertUnwindSafe(self.drive(&mut agent_loop)).catch_unwind() => Some(worked),
            () = tokio::time::sleep(limit) => return self.timed_out(&agent_loop.agent).await,
        };
        match worked {
            None => self.stopped(&agent_loop.agent).await,
            Some(Ok(Ok(conclusion))) => self.end(ending(conclusion), &agent_loop.agent).await,
            Some(Ok(Err(error))) => self.unrecorded(error, &agent_loop.agent).await,
            Some(Err(_panic)) => {
                let error =
                    "the subagent stopped by a defect in Remit; the server's own log says where".to_owned();
                self.end(DelegationEnding::Failed { error, stop_reason: None }, &agent_loop.agent).await
            }
        }
    }

    async fn timed_out(&self, agent: &Agent) -> Result<Ended, RecordError> {
        let error = format!("Execution timed out after {} seconds", self.request.timeout_seconds);
        self.end(DelegationEnding::TimedOut { error }, agent).await
    }

    async fn drive(&self, agent_loop: &mut AgentLoop) -> Result<Conclusion, RecordError> {
        if !agent_loop.agent.is_briefed() {
            let recorded = self.brief(&agent_loop.recorder).await?;
            agent_loop.take(&recorded);
        }
        agent_loop.drive().await
    }

    /// The whole briefing is recorded together: half of one would pass for all of it after a crash.
    async fn brief(&self, recorder: &Recorder) -> Result<Vec<Event>, RecordError> {
        let mut messages = self.briefing().into_iter();
        let Some(first) = messages.next() else { return Ok(Vec::new()) };
        let whole = |message| SubagentMessage { task_id: self.request.task_id.clone(), message };
        let fact = |message| Fact {
            scope: self.scope.clone(),
            event: Event::Subagent(SubagentEvent::Message(whole(message))),
        };
        recorder.said_with(first, None, messages.map(fact).collect()).await
    }

    /// A step that the log does not take ends this delegation and no other, as long as the log
    /// takes its end.
    async fn unrecorded(&self, error: RecordError, agent: &Agent) -> Result<Ended, RecordError> {
        if self.stop.cause() == Some(StopCause::ShuttingDown) {
            return Err(error);
        }
        let text = format!("a step of the subagent could not be recorded: {}", with_causes(&error));
        let ending = DelegationEnding::Failed { error: text, stop_reason: None };
        self.end(ending, agent).await.map_err(|_| error)
    }

    fn briefing(&self) -> Vec<Message> {
        let resolved = self.context.registry.resolve(self.request.subagent_type.as_str());
        let system_prompt = resolved.and_then(|resolved| resolved.definition.system_prompt);
        initial_messages(&Briefing {
            system_prompt: system_prompt.as_deref(),
            today: Some(self.context.services.today()),
            receipts_enabled: self.request.receipts_enabled,
            prompt: &self.request.prompt,
            acceptance_criteria: &self.request.acceptance_criteria,
            ..Briefing::default()
        })
    }

    fn recorder(&self) -> Recorder {
        let seat = Seat::Subagent {
            scope: self.scope.clone(),
            task_id: self.request.task_id.clone(),
            subagent_type: self.request.subagent_type.clone(),
        };
        Recorder { context: self.context.clone(), seat }
    }
}

fn ending(conclusion: Conclusion) -> DelegationEnding {
    match conclusion {
        Conclusion::Completed { text, stop_reason } => {
            DelegationEnding::Completed { result: text, stop_reason }
        }
        Conclusion::Failed { error, stop_reason } => DelegationEnding::Failed { error, stop_reason },
    }
}
