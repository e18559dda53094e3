//! Runs the calls of one reply. Delegations work side by side; everything else runs one call after
//! the other, because later calls of a reply often rely on what the earlier ones did.

use std::collections::VecDeque;

use domain::{agent::PendingCall, limits::TOOL_CALLS_PER_REPLY_MAX, message::Message, tool_spec::TASK_TOOL};

use super::{
    delegate::{self, Opened},
    tool_call,
};
use crate::{agent_loop::AgentLoop, run_owner::RecordError};

/// Runs the calls and records their results: delegations are requested in call order before
/// anything else is done, and delivered in call order after it.
pub(crate) async fn perform(agent_loop: &mut AgentLoop, calls: Vec<PendingCall>) -> Result<(), RecordError> {
    let may_delegate = agent_loop.may_delegate();
    let (mut opened, mut others) = (VecDeque::new(), Vec::new());
    for (place, pending) in calls.into_iter().enumerate() {
        if may_delegate && pending.call.name == TASK_TOOL {
            opened.push_back(open(agent_loop, &pending).await?);
        } else {
            others.push((place, pending));
        }
    }
    for (place, pending) in others {
        run_one(agent_loop, place, &pending).await?;
    }
    for delegation in opened.into_iter().flatten() {
        let recorded = delegate::deliver(&agent_loop.recorder, delegation).await?;
        agent_loop.take(&recorded);
    }
    Ok(())
}

/// Requests a delegation. A refused call has its result at once, and nothing is left to deliver.
async fn open(
    agent_loop: &mut AgentLoop,
    pending: &PendingCall,
) -> Result<Option<delegate::Delegated>, RecordError> {
    let (recorded, opened) = delegate::open(&agent_loop.recorder, &pending.call).await?;
    agent_loop.take(&recorded);
    match opened {
        Opened::Started(delegated) => Ok(Some(*delegated)),
        Opened::Refused => Ok(None),
    }
}

async fn run_one(agent_loop: &mut AgentLoop, place: usize, pending: &PendingCall) -> Result<(), RecordError> {
    let mut done = if place < TOOL_CALLS_PER_REPLY_MAX {
        tool_call::run(agent_loop, pending).await?
    } else {
        tool_call::over_the_limit(agent_loop, pending)
    };
    let stalled = agent_loop.agent.guard_result(&done.message);
    done.facts.extend(stalled.map(|stalled| agent_loop.recorder.stalled_fact(stalled)));
    let recorded =
        agent_loop.recorder.said_with(Message::Tool(done.message), Some(done.receipt), done.facts).await?;
    agent_loop.take(&recorded);
    Ok(())
}
