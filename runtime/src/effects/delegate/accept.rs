//! Whether a `task` call can be carried out, and with what the subagent will obey.

use domain::{
    event::{DelegationRequested, RefusalReason, Scope},
    limits::TASK_DESCRIPTION_CHARS_MAX,
    message::{ToolArgs, ToolCall},
    prompt, text,
};

use crate::{
    run_context::RunContext,
    task_args::{self, TaskArgs},
};

/// Why a call is not carried out.
pub(super) struct Refusal {
    pub(super) reason: RefusalReason,
    pub(super) message: String,
}

/// What the subagent will obey, all of it resolved here and never again.
pub(super) fn accept(
    context: &RunContext,
    call: &ToolCall,
    scope: &Scope,
) -> Result<DelegationRequested, Refusal> {
    let args = parse(call)?;
    let settings = &context.settings;
    let services = &context.services;
    let allowed = settings.allowed_subagents.as_deref();
    let resolved = context.registry.permit(&args.subagent_type, services.allows_bash(), allowed);
    let resolved = resolved.map_err(|reason| not_permitted(context, &args.subagent_type, reason))?;
    let (definition, token_budget) = (resolved.definition, resolved.token_budget);
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
        tools: definition.select_tools(&lead_tools(context)),
        receipts_enabled: services.receipts_enabled,
        acceptance_criteria: prompt::bounded_criteria(&args.acceptance_criteria),
        token_budget: token_budget.enabled.then(|| Box::new(token_budget)),
    })
}

/// The tools of the lead that this process has: a child is given no more, whatever was configured since
/// its run was started.
fn lead_tools(context: &RunContext) -> Vec<String> {
    let mut names = context.services.toolbox.names();
    names.retain(|name| context.settings.tools.contains(name));
    names
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
    let listed = context.registry.available(services.allows_bash(), allowed);
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

pub(super) fn queue_full() -> Refusal {
    let message =
        "all subagent slots are taken and the queue is full; do this part yourself or ask again later";
    Refusal { reason: RefusalReason::QueueFull, message: message.to_owned() }
}
