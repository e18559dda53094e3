//! Delegates: from the lead's `task` call to the result that it gets.
//!
//! The request is durable before anything is done for it. A refusal comes before any model call
//! and is recorded together with the lead's answer.

mod accept;
mod bounded;
mod result;

use std::time::Duration;

use domain::{
    delegation::DelegationCommand,
    event::{DelegationRequested, Event, Scope},
    limits::POLLING_GRACE_SECONDS,
    message::ToolCall,
    status_contract::{SubagentStatus, TaskOutcome},
};
use tokio::sync::oneshot;

use self::{
    accept::{Refusal, accept, queue_full},
    result::{delivered, out_of_patience, result_message},
};
use crate::{
    admission::Entry,
    cancellation::{StopCause, StopSignal},
    recorder::Recorder,
    run_context::RunContext,
    run_owner::{Decision, Record, RecordError},
    subagent::{self, Ended, Listed, Start, Work},
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
    let entry = enter(&recorder.context, &scope);
    if matches!(entry, Entry::Full) {
        return refuse(recorder, call, scope, queue_full()).await;
    }
    let listed = Listed::enter(&recorder.context, &scope);
    let command = DelegationCommand::Request(Box::new(request.clone()));
    let mut recorded = decide(recorder, &scope, command).await?;
    if let Entry::Waiting(waiting) = &entry {
        let queued = DelegationCommand::Queue { place: waiting.place() };
        recorded.extend(decide(recorder, &scope, queued).await?);
    }
    let start_at = Start::Enter { entry, spent: Duration::ZERO };
    let work = Work { scope, request, listed, start: start_at, history: Vec::new() };
    Ok((recorded, start(recorder, call, work)))
}

/// Every delegation that may be worked on has an id of ours.
fn enter(context: &RunContext, scope: &Scope) -> Entry {
    scope.delegation_id.map_or(Entry::Full, |id| context.services.admission.enter(id))
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
    let in_queue = context.services.queue_timeout;
    match &work.start {
        Start::Enter { entry: Entry::Waiting(_), spent } => {
            at_work.saturating_add(in_queue.saturating_sub(*spent))
        }
        Start::GoOn { entry: Entry::Waiting(_), spent } => {
            at_work.saturating_sub(*spent).saturating_add(in_queue)
        }
        Start::GoOn { entry: Entry::Admitted(_) | Entry::Full, spent } => at_work.saturating_sub(*spent),
        Start::Enter { entry: Entry::Admitted(_) | Entry::Full, .. } | Start::Over(_) => at_work,
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
            let outcome = if is_cut_off { out_of_patience(&request, outcome) } else { outcome };
            let command = DelegationCommand::Deliver(delivered(&request, &outcome));
            let result = result_message(&call, &outcome, Some(&trail));
            let result = bounded::within(recorder.context.output_keeper(), result).await;
            recorder.delivered(scope, command, result).await
        }
        Ended::Unrecorded(error) => Err(error),
    }
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

async fn decide(
    recorder: &Recorder,
    scope: &Scope,
    command: DelegationCommand,
) -> Result<Vec<Event>, RecordError> {
    let decision = Decision::Delegation(scope.clone(), Box::new(command));
    recorder.context.owner.record(Record { decision, facts: Vec::new() }).await
}
