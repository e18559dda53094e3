//! Delegates: from the lead's `task` call to the result that it gets.
//!
//! The request is durable before anything is done for it. A refusal comes before any model call
//! and is recorded together with the lead's answer.

use std::time::Duration;

use domain::{
    delegation::DelegationCommand,
    event::{DelegationDelivered, DelegationRequested, Event, RefusalReason, Scope},
    limits::{POLLING_GRACE_SECONDS, TASK_DESCRIPTION_CHARS_MAX},
    message::{ToolArgs, ToolCall, ToolMessage, ToolStatus},
    prompt,
    status_contract::{self, SubagentStatus, TaskOutcome},
    text,
    tool_spec::TASK_TOOL,
};
use tokio::sync::oneshot;

use crate::{
    admission::Entry,
    cancellation::{StopCause, StopSignal},
    recorder::Recorder,
    run_context::RunContext,
    run_owner::{Decision, Record, RecordError},
    subagent::{self, Ended, Start, Work},
    task_args::{self, TaskArgs},
};

/// What came of asking.
pub(crate) enum Opened {
    /// The lead has its answer already.
    Refused,
    /// A subagent works on it.
    Started(Box<Delegated>),
}

/// A delegation whose result the lead waits for.
pub(crate) struct Delegated {
    call: ToolCall,
    scope: Scope,
    request: DelegationRequested,
    /// How long the lead waits for the result.
    patience: Duration,
    stop: StopSignal,
    ended: oneshot::Receiver<Ended>,
}

/// Why a call is not carried out.
struct Refusal {
    reason: RefusalReason,
    message: String,
}

/// Carries a `task` call out or refuses it; goes on with the delegation that the call had before a
/// restart. Gives back what was recorded.
pub(crate) async fn open(recorder: &Recorder, call: &ToolCall) -> Result<(Vec<Event>, Opened), RecordError> {
    if let Some(resumable) = recorder.context.take_resumable(&call.id) {
        return subagent::resume(&recorder.context, resumable).map_or_else(
            || Ok((Vec::new(), Opened::Refused)),
            |work| Ok((Vec::new(), start(recorder, call, work))),
        );
    }
    let scope = recorder.context.new_delegation(&call.id);
    let request = match accept(&recorder.context, call, &scope) {
        Ok(request) => request,
        Err(refusal) => return refuse(recorder, call, scope, refusal).await,
    };
    let entry = recorder.context.services.admission.enter();
    if matches!(entry, Entry::Full) {
        return refuse(recorder, call, scope, queue_full()).await;
    }
    let command = DelegationCommand::Request(Box::new(request.clone()));
    let mut recorded = decide(recorder, &scope, command).await?;
    if let Entry::Waiting(waiting) = &entry {
        let queued = DelegationCommand::Queue { place: waiting.place() };
        recorded.extend(decide(recorder, &scope, queued).await?);
    }
    let work = Work { scope, request, start: Start::Enter(entry), history: Vec::new() };
    Ok((recorded, start(recorder, call, work)))
}

fn start(recorder: &Recorder, call: &ToolCall, work: Work) -> Opened {
    let (scope, request) = (work.scope.clone(), work.request.clone());
    let patience = patience(&recorder.context, &work);
    let (stop, ended) = subagent::spawn(&recorder.context, work);
    Opened::Started(Box::new(Delegated { call: call.clone(), scope, request, patience, stop, ended }))
}

/// The subagent's own time limit and some grace (facts §4.5). What waits for a slot has not begun
/// to use its time, so the longest wait comes on top.
fn patience(context: &RunContext, work: &Work) -> Duration {
    let at_work = Duration::from_secs(work.request.timeout_seconds.saturating_add(POLLING_GRACE_SECONDS));
    match &work.start {
        Start::Enter(Entry::Waiting(_)) | Start::GoOn(Entry::Waiting(_)) => {
            at_work.saturating_add(context.services.queue_timeout)
        }
        Start::Enter(Entry::Admitted(_) | Entry::Full)
        | Start::GoOn(Entry::Admitted(_) | Entry::Full)
        | Start::Over(_) => at_work,
    }
}

/// Waits for the end and gives the lead its result, recorded as delivered. A lead whose own wait
/// runs out stops the subagent and is told so, unless the subagent was done a moment before.
pub(crate) async fn deliver(recorder: &Recorder, delegated: Delegated) -> Result<Vec<Event>, RecordError> {
    let Delegated { call, scope, request, patience, stop, mut ended } = delegated;
    let (ended, ran_out) = match tokio::time::timeout(patience, &mut ended).await {
        Ok(ended) => (ended, false),
        Err(_) => {
            stop.stop(StopCause::WaitRanOut);
            (ended.await, true)
        }
    };
    match ended.map_err(|_| RecordError::OwnerGone)? {
        Ended::Refused { reason, message } => {
            let refusal = Refusal { reason, message };
            Ok(refuse(recorder, &call, scope, refusal).await?.0)
        }
        Ended::Over { outcome, trail } => {
            let is_cut_off = ran_out && outcome.status == SubagentStatus::TimedOut;
            let outcome = if is_cut_off { out_of_patience(&request) } else { outcome };
            let command = DelegationCommand::Deliver(delivered(&request, &outcome));
            recorder.delivered(scope, command, result_message(&call, &outcome, Some(&trail))).await
        }
        Ended::Unrecorded(error) => Err(error),
    }
}

fn out_of_patience(request: &DelegationRequested) -> TaskOutcome {
    let detail = status_contract::polling_timed_out_detail(request.timeout_seconds, "timed_out");
    let mut outcome = TaskOutcome::new(SubagentStatus::PollingTimedOut, Some(detail));
    outcome.model_name = Some(request.model_name.clone());
    outcome
}

fn delivered(request: &DelegationRequested, outcome: &TaskOutcome) -> DelegationDelivered {
    let read = status_contract::read(&outcome.metadata());
    let brief = read.as_ref().and_then(|read| read.result.as_ref());
    DelegationDelivered {
        task_id: request.task_id.clone(),
        status: outcome.status,
        result_brief: brief.map(|brief| brief.text.clone()),
        result_sha256: brief.and_then(|brief| brief.sha256.clone()),
        error: read.as_ref().and_then(|read| read.error.clone()),
    }
}

fn accept(context: &RunContext, call: &ToolCall, scope: &Scope) -> Result<DelegationRequested, Refusal> {
    let args = parse(call)?;
    let settings = &context.settings;
    let services = &context.services;
    let allowed = settings.allowed_subagents.as_deref();
    let resolved = services.registry.permit(&args.subagent_type, services.allows_bash(), allowed);
    let resolved = resolved.map_err(|reason| not_permitted(context, &args.subagent_type, reason))?;
    let definition = resolved.definition;
    let model_name = domain::definition::model_name(
        &definition.model,
        Some(&settings.model_name),
        &services.models.names(),
    );
    Ok(DelegationRequested {
        task_id: scope.task_id.clone().unwrap_or_else(|| context.unnamed_call()),
        description: text::prefix(&args.description, TASK_DESCRIPTION_CHARS_MAX).text,
        prompt: args.prompt,
        subagent_type: definition.name.clone(),
        model_name: model_name.unwrap_or_else(|_| settings.model_name.clone()),
        max_turns: definition.max_turns,
        timeout_seconds: definition.timeout_seconds,
        tools: definition.select_tools(&services.toolbox.names()),
        receipts_enabled: services.receipts_enabled,
        acceptance_criteria: prompt::bounded_criteria(&args.acceptance_criteria),
    })
}

fn parse(call: &ToolCall) -> Result<TaskArgs, Refusal> {
    let invalid = |message| Refusal { reason: RefusalReason::InvalidArguments, message };
    match &call.args {
        ToolArgs::Object(args) => task_args::parse(args).map_err(invalid),
        ToolArgs::Invalid(_) => Err(invalid(
            "the arguments are not a complete JSON object; send the call again, whole".to_owned(),
        )),
    }
}

fn not_permitted(context: &RunContext, name: &str, reason: RefusalReason) -> Refusal {
    let services = &context.services;
    let allowed = context.settings.allowed_subagents.as_deref();
    let listed = services.registry.available(services.allows_bash(), allowed);
    let names: Vec<&str> = listed.iter().map(|listed| listed.definition.name.as_str()).collect();
    let message = match reason {
        RefusalReason::NotAllowed => prompt::type_not_allowed(name, &names),
        RefusalReason::BashDisabled => prompt::BASH_DISABLED.to_owned(),
        RefusalReason::UnknownType
        | RefusalReason::InvalidArguments
        | RefusalReason::PerResponseLimit
        | RefusalReason::PerRunLimit
        | RefusalReason::Depth
        | RefusalReason::QueueFull
        | RefusalReason::QueueTimeout => prompt::unknown_type(name, &names),
    };
    Refusal { reason, message }
}

fn queue_full() -> Refusal {
    let message =
        "all subagent slots are taken and the queue is full; do this part yourself or ask again later";
    Refusal { reason: RefusalReason::QueueFull, message: message.to_owned() }
}

/// The refusal and the lead's answer, recorded together.
async fn refuse(
    recorder: &Recorder,
    call: &ToolCall,
    scope: Scope,
    refusal: Refusal,
) -> Result<(Vec<Event>, Opened), RecordError> {
    let outcome = TaskOutcome::new(SubagentStatus::Failed, Some(refusal.message.clone()));
    let refused = recorder.refused(&scope, call, refusal.reason, refusal.message);
    let message = result_message(call, &outcome, None);
    let recorded = recorder.delivered(scope, DelegationCommand::Refuse(refused), message).await?;
    Ok((recorded, Opened::Refused))
}

/// The tool message that the lead sees. What ended badly says where its partial work is.
fn result_message(call: &ToolCall, outcome: &TaskOutcome, trail: Option<&subagent::Trail>) -> ToolMessage {
    let mut content = outcome.text();
    let mut additional_kwargs = outcome.metadata();
    if let Some(trail) = trail {
        additional_kwargs.extend(trail.metadata());
        match (outcome.status, trail.citation_line()) {
            (SubagentStatus::Completed, Some(line)) => content.push_str(&format!("\n\n{line}")),
            (SubagentStatus::Completed, None) => {}
            (
                SubagentStatus::Failed
                | SubagentStatus::Cancelled
                | SubagentStatus::TimedOut
                | SubagentStatus::PollingTimedOut,
                _,
            ) => content.push_str(&trail.text()),
        }
    }
    let status = match outcome.status {
        SubagentStatus::Completed => ToolStatus::Success,
        SubagentStatus::Failed
        | SubagentStatus::Cancelled
        | SubagentStatus::TimedOut
        | SubagentStatus::PollingTimedOut => ToolStatus::Error,
    };
    ToolMessage {
        content,
        tool_call_id: call.id.clone(),
        name: TASK_TOOL.to_owned(),
        status,
        additional_kwargs,
    }
}

async fn decide(
    recorder: &Recorder,
    scope: &Scope,
    command: DelegationCommand,
) -> Result<Vec<Event>, RecordError> {
    let decision = Decision::Delegation(scope.clone(), Box::new(command));
    recorder.context.owner.record(Record { decision, facts: Vec::new() }).await
}
