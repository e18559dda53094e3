//! One run from its start to its recorded end: the lead at work, and the order in which things
//! close behind it.

use std::panic::AssertUnwindSafe;

use domain::{
    agent::{Agent, Conclusion},
    causes::with_causes,
    event::{CancelReason, RunStopReason},
    prompt::task_tool,
    run::{RunCommand, RunEnding},
    tool_spec::{TASK_TOOL, ToolSpec},
};
use futures::FutureExt;

use crate::{
    agent_loop::AgentLoop,
    cancellation::StopCause,
    live_runs::LiveRun,
    recorder::{Recorder, Seat},
    run_context::RunContext,
    run_owner::{Decision, Record, RecordError},
    tools::ToolContext,
};

/// How the lead came out.
enum Came {
    Concluded(Conclusion, Option<RunStopReason>),
    Stopped,
    Unrecorded(RecordError),
    Panicked,
}

/// Works on the run until it has its end, unless the process goes down first.
pub(crate) async fn work(live: LiveRun, agent: Agent, is_begun: bool) {
    let context = live.context();
    let came = AssertUnwindSafe(lead(context, agent, is_begun)).catch_unwind().await;
    let came = came.unwrap_or(Came::Panicked);
    if !matches!(came, Came::Concluded(..)) {
        context.stop.stop(StopCause::Cancelled(CancelReason::ParentEnded));
    }
    context.delegations.close();
    context.delegations.wait().await;
    if let Some(ending) = ending(context, came) {
        let record = Record { decision: Decision::Run(RunCommand::End(ending)), facts: Vec::new() };
        if let Err(error) = context.owner.record(record).await {
            tracing::error!(run = %context.settings.run_id, error = &error as &dyn std::error::Error, "a run has no recorded end");
        }
    }
}

async fn lead(context: &RunContext, agent: Agent, is_begun: bool) -> Came {
    let model = match context.services.models.get(&context.settings.model_name) {
        Ok(model) => model,
        Err(unknown) => {
            let error = format!("{unknown}; the run was started with it");
            return Came::Concluded(Conclusion::Failed { error, stop_reason: None }, None);
        }
    };
    let confinement = context.services.confinement.as_ref().ok().cloned();
    let mut agent_loop = AgentLoop {
        agent,
        recorder: Recorder { context: context.clone(), seat: Seat::Lead },
        model,
        tools: tools(context).into(),
        tool_context: ToolContext::new(context.folders.clone(), confinement, context.stop.token())
            .listed_in(context.tool_work.clone())
            .keeping(context.output_keeper()),
    };
    let worked = tokio::select! {
        biased;
        () = context.stop.stopped() => return Came::Stopped,
        worked = begin_and_drive(context, &mut agent_loop, is_begun) => worked,
    };
    match worked {
        Ok(conclusion) => Came::Concluded(conclusion, agent_loop.agent.run_stop_reason()),
        Err(error) => Came::Unrecorded(error),
    }
}

async fn begin_and_drive(
    context: &RunContext,
    agent_loop: &mut AgentLoop,
    is_begun: bool,
) -> Result<Conclusion, RecordError> {
    if !is_begun {
        let record = Record { decision: Decision::Run(RunCommand::Begin), facts: Vec::new() };
        context.owner.record(record).await?;
    }
    agent_loop.drive().await
}

/// The lead's tools are the ones that its run was started with.
fn tools(context: &RunContext) -> Vec<ToolSpec> {
    let services = &context.services;
    let names = &context.settings.tools;
    let mut tools = services.toolbox.specs(Some(names), &[]);
    if names.iter().any(|name| name == TASK_TOOL) {
        let allowed = context.settings.allowed_subagents.as_deref();
        let listed = context.registry.available(services.allows_bash(), allowed);
        let types: Vec<&str> = listed.iter().map(|listed| listed.definition.name.as_str()).collect();
        // A lead with nobody to delegate to is not told of the tool.
        if !types.is_empty() {
            tools.push(task_tool(&types));
        }
    }
    tools
}

/// `None` when the run is to go on at the next start.
fn ending(context: &RunContext, came: Came) -> Option<RunEnding> {
    let failed = |error: String| Some(RunEnding::Failed { error, stop_reason: None });
    match came {
        Came::Concluded(Conclusion::Completed { text, .. }, stop_reason) => {
            Some(RunEnding::Returned { result: text, stop_reason })
        }
        Came::Concluded(Conclusion::Failed { error, .. }, stop_reason) => {
            Some(RunEnding::Failed { error, stop_reason })
        }
        // What a shutdown cut short, the next start goes on with.
        Came::Stopped | Came::Unrecorded(_) if context.stop.cause() == Some(StopCause::ShuttingDown) => None,
        Came::Stopped => Some(RunEnding::Interrupted),
        Came::Unrecorded(error) => failed(format!("the run could not be recorded: {}", with_causes(&error))),
        Came::Panicked => {
            failed("the run stopped by a defect in Remit; the server's own log says where".to_owned())
        }
    }
}
