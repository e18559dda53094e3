//! Runs one tool call, or says why it does not run. Whatever happens, the model gets a result and
//! the delegation a receipt.
//!
//! At most once where it matters: the intent of a call with side effects is durable before it
//! runs, and a call that was started before a crash is run again only if that is harmless.

use std::panic::AssertUnwindSafe;

use domain::{
    agent::{AgentRole, PendingCall},
    delegation::ReceiptDraft,
    digest::sha256_hex,
    event::{RefusalReason, ToolStarted},
    kept_output::KeptOutput,
    limits::{DELEGATION_DEPTH_MAX, TOOL_CALLS_PER_REPLY_MAX},
    message::{ToolArgs, ToolCall, ToolMessage, ToolStatus},
    receipt::ReceiptOutcome,
    status_contract::raised_message,
    tool_meta::{self, MetaSource, ToolErrorType, ToolMeta},
    tool_spec::{SideEffect, TASK_TOOL},
};
use futures::FutureExt;
use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::{
    agent_loop::AgentLoop,
    journal::Fact,
    recorder::call_id,
    run_owner::RecordError,
    tools::{Tool, ToolOutcome},
};

/// A call that has ended.
pub(crate) struct Done {
    pub(crate) message: ToolMessage,
    pub(crate) receipt: ReceiptDraft,
    /// Facts to record together with the result.
    pub(crate) facts: Vec<Fact>,
}

/// What came of a call, before it is written down.
struct Came {
    text: String,
    outcome: ReceiptOutcome,
    output_bytes: u64,
    output_sha256: String,
    kept: Option<KeptOutput>,
    /// What the result is worth; `None` is read out of its words.
    meta: Option<ToolMeta>,
}

impl Came {
    /// The framework's own words in place of an output.
    fn without_output(text: String, outcome: ReceiptOutcome) -> Self {
        let (output_bytes, output_sha256) = (text.len() as u64, sha256_hex(text.as_bytes()));
        let meta = Some(ToolMeta::error(ToolErrorType::Unknown, MetaSource::ToolReturn));
        Self { text, outcome, output_bytes, output_sha256, kept: None, meta }
    }

    /// The same with what the result is worth.
    fn worth(self, meta: ToolMeta) -> Self {
        Self { meta: Some(meta), ..self }
    }
}

/// Runs the call if it can be run.
pub(crate) async fn run(agent_loop: &mut AgentLoop, pending: &PendingCall) -> Result<Done, RecordError> {
    let (started_at, since) = (agent_loop.recorder.context.services.clock.now(), Instant::now());
    let came = attempt(agent_loop, pending).await?;
    let mut done = done(&pending.call, came, started_at, since);
    if agent_loop.agent.role() == AgentRole::Subagent && pending.call.name == TASK_TOOL {
        // A subagent that tries to delegate leaves a refusal of its own.
        let message = done.message.content.clone();
        done.facts.push(agent_loop.recorder.refusal(&pending.call, RefusalReason::Depth, message));
    }
    Ok(done)
}

/// Answers a call that there was no room for.
pub(crate) fn over_the_limit(agent_loop: &AgentLoop, pending: &PendingCall) -> Done {
    let text = format!(
        "Error: not run, because one reply may call at most {TOOL_CALLS_PER_REPLY_MAX} tools. Call it again if it is still needed."
    );
    let started_at = agent_loop.recorder.context.services.clock.now();
    done(&pending.call, Came::without_output(text, ReceiptOutcome::Denied), started_at, Instant::now())
}

async fn attempt(agent_loop: &mut AgentLoop, pending: &PendingCall) -> Result<Came, RecordError> {
    let call = &pending.call;
    if let Some(text) = agent_loop.agent.refuse_call(call) {
        return Ok(Came::without_output(text, ReceiptOutcome::Denied).worth(ToolMeta::BLOCKED));
    }
    let args = match &call.args {
        ToolArgs::Object(args) => args,
        ToolArgs::Invalid(raw) => return Ok(invalid_arguments(raw)),
    };
    let toolbox = agent_loop.recorder.context.services.toolbox.clone();
    let tool = match toolbox.get(&call.name).filter(|_| agent_loop.has_tool(&call.name)) {
        Some(tool) => tool,
        None => return Ok(unknown_tool(agent_loop, &call.name)),
    };
    let side_effect = tool.side_effect(args);
    if pending.was_started && side_effect == SideEffect::Effectful {
        return Ok(unknown_outcome(&call.name));
    }
    if side_effect != SideEffect::ReadOnly {
        let recorded = agent_loop.recorder.tool_started(started(agent_loop, call, args, side_effect)).await?;
        agent_loop.take(&recorded);
    }
    Ok(performed(tool, agent_loop, args).await)
}

/// A tool that panics costs its own call and nothing else.
async fn performed(tool: &dyn Tool, agent_loop: &AgentLoop, args: &Map<String, Value>) -> Came {
    let run = async { tool.run(&agent_loop.tool_context, args).await };
    let Ok(output) = AssertUnwindSafe(run).catch_unwind().await else { return broken(&tool.spec().name) };
    let outcome = match output.outcome {
        ToolOutcome::Ok => ReceiptOutcome::Ok,
        ToolOutcome::Error => ReceiptOutcome::Error,
        ToolOutcome::Denied => ReceiptOutcome::Denied,
    };
    Came {
        text: output.text,
        outcome,
        output_bytes: output.output_bytes,
        output_sha256: output.output_sha256,
        kept: output.kept,
        meta: None,
    }
}

fn started(
    agent_loop: &AgentLoop,
    call: &ToolCall,
    args: &Map<String, Value>,
    side_effect: SideEffect,
) -> ToolStarted {
    ToolStarted {
        tool_call_id: call_id(&call.id).unwrap_or_else(|| agent_loop.recorder.context.unnamed_call()),
        tool_name: call.name.clone(),
        args_sha256: args_sha256(&ToolArgs::Object(args.clone())),
        side_effect,
        started_at: agent_loop.recorder.context.services.clock.now(),
    }
}

fn invalid_arguments(raw: &str) -> Came {
    let problem = serde_json::from_str::<Map<String, Value>>(raw).err().map(|error| error.to_string());
    let problem = problem.unwrap_or_else(|| "they are not an object".to_owned());
    let text = format!(
        "Error: the arguments are not a complete JSON object ({problem}). Nothing was run. Call the tool again with \
         complete arguments."
    );
    Came::without_output(text, ReceiptOutcome::Error)
}

fn unknown_tool(agent_loop: &AgentLoop, name: &str) -> Came {
    let names: Vec<&str> = agent_loop.tools.iter().map(|tool| tool.name.as_str()).collect();
    let names = names.join(", ");
    let text = match (name, agent_loop.agent.role()) {
        ("", _) => format!("Error: the call names no tool. Nothing was run. Available: {names}"),
        (TASK_TOOL, AgentRole::Subagent) => format!(
            "Error: a subagent cannot delegate, because delegation goes {DELEGATION_DEPTH_MAX} level deep. Do the \
             work with your own tools: {names}"
        ),
        (other, _) => {
            let shown = domain::text::prefix(other, domain::limits::NAME_CHARS_MAX).text;
            format!("Error: there is no tool {shown:?} here. Nothing was run. Available: {names}")
        }
    };
    Came::without_output(text, ReceiptOutcome::Denied)
}

fn broken(name: &str) -> Came {
    let detail = "it stopped by a defect in Remit, and what it did is unknown";
    let meta = ToolMeta::error(ToolErrorType::Unknown, MetaSource::Exception);
    Came::without_output(raised_message(name, "Panic", detail).text, ReceiptOutcome::Unknown).worth(meta)
}

fn unknown_outcome(name: &str) -> Came {
    let text = format!(
        "Error: {name} was started before the server stopped, and whether it finished is unknown. It was not run \
         again. Check what it did before you repeat it."
    );
    Came::without_output(text, ReceiptOutcome::Unknown)
}

fn done(call: &ToolCall, came: Came, started_at: Timestamp, since: Instant) -> Done {
    let receipt = ReceiptDraft {
        tool_name: call.name.clone(),
        tool_call_id: call.id.clone(),
        args_sha256: args_sha256(&call.args),
        output_sha256: came.output_sha256,
        output_bytes: came.output_bytes,
        outcome: came.outcome,
        started_at,
        duration_ms: u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    let status = match came.outcome {
        ReceiptOutcome::Ok => ToolStatus::Success,
        ReceiptOutcome::Error | ReceiptOutcome::Denied | ReceiptOutcome::Unknown => ToolStatus::Error,
    };
    let mut message = ToolMessage {
        content: came.text,
        tool_call_id: call.id.clone(),
        name: call.name.clone(),
        status,
        additional_kwargs: Map::new(),
    };
    came.meta.unwrap_or_else(|| tool_meta::analyse(&message)).stamp(&mut message);
    if let Some(kept) = &came.kept {
        message.keep_output(kept);
    }
    Done { message, receipt, facts: Vec::new() }
}

/// Of the arguments as compact JSON, or of the raw text where they are none.
fn args_sha256(args: &ToolArgs) -> String {
    match args {
        ToolArgs::Object(map) => sha256_hex(Value::Object(map.clone()).to_string().as_bytes()),
        ToolArgs::Invalid(raw) => sha256_hex(raw.as_bytes()),
    }
}
