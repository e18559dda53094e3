//! Drives one agent, lead or sub: ask it for the next effect, perform it, give it what was
//! recorded, until it is done. All memory of the agent is in what was recorded.

use std::sync::Arc;

use domain::{
    agent::{Agent, AgentEvent, AgentRole, Conclusion, Effect},
    event::Event,
    tool_spec::{TASK_TOOL, ToolSpec},
};

use crate::{
    effects::{call_model, compact, run_tools},
    models::ChatModel,
    recorder::Recorder,
    run_owner::RecordError,
    tools::ToolContext,
};

/// One agent at work.
pub(crate) struct AgentLoop {
    pub(crate) agent: Agent,
    pub(crate) recorder: Recorder,
    pub(crate) model: Arc<dyn ChatModel>,
    /// What the agent may call, by exact name, in the order in which the model is told.
    pub(crate) tools: Arc<[ToolSpec]>,
    pub(crate) tool_context: ToolContext,
}

impl AgentLoop {
    /// Works until nothing is left to do. Dropping the future stops the call in flight; what was
    /// recorded until then stands.
    pub(crate) async fn drive(&mut self) -> Result<Conclusion, RecordError> {
        loop {
            if let Some(cap) = self.agent.turn_cap() {
                let recorded = self.recorder.capped(cap).await?;
                self.take(&recorded);
            }
            match self.agent.next_effect() {
                Effect::Compact(plan) => compact::perform(self, *plan).await?,
                Effect::CallModel => call_model::perform(self).await?,
                Effect::RunTools(calls) => run_tools::perform(self, calls).await?,
                Effect::Finish(conclusion) => return Ok(conclusion),
            }
        }
    }

    /// Gives the agent what was recorded: the same fold as after a crash.
    pub(crate) fn take(&mut self, recorded: &[Event]) {
        let of = match self.agent.role() {
            AgentRole::Lead => AgentEvent::of_lead,
            AgentRole::Subagent => AgentEvent::of_subagent,
        };
        recorded.iter().filter_map(of).for_each(|event| self.agent.evolve(event));
    }

    /// Whether `task` calls of the agent become delegations, or refusals of them that are recorded: those
    /// of a lead whose run was started with the tool.
    pub(crate) fn may_delegate(&self) -> bool {
        let tools = &self.recorder.context.settings.tools;
        self.agent.role() == AgentRole::Lead && tools.iter().any(|name| name == TASK_TOOL)
    }

    /// Whether the agent was given the tool of this name.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }
}
