//! Resolves everything that a run obeys, once, when it starts.

use domain::{
    definition::{CustomAgent, InConfigOrder, Registry},
    event::RunSettings,
    guard::subagent_limit::DelegationLimits,
    ids::RunId,
    limits::{
        DELEGATIONS_PER_RUN_RANGE, IMAGES_CHARS_MAX, IMAGES_MAX, LEAD_TURNS_MAX_DEFAULT, PROMPT_CHARS_MAX,
    },
    message::HumanMessage,
    prompt::{DelegationOffer, date_note, lead_system_prompt},
    tool_spec::TASK_TOOL,
};

use crate::{
    request::{RunRequest, StartRunError},
    services::Services,
};

/// The one lead agent that there is.
const LEAD: &str = "lead";

/// Refuses input that says nothing, or too much.
pub(crate) fn check_input(input: &[HumanMessage]) -> Result<(), StartRunError> {
    let says_nothing =
        |message: &HumanMessage| message.content.trim().is_empty() && message.images.is_empty();
    if input.iter().all(says_nothing) {
        return Err(StartRunError::NoInput);
    }
    let images = || input.iter().flat_map(|message| &message.images);
    let (count, size) = (images().count(), images().map(|image| image.data.len()).sum());
    if count > IMAGES_MAX || size > IMAGES_CHARS_MAX {
        return Err(StartRunError::ImagesTooLarge { count, chars: size });
    }
    let chars = input.iter().map(|message| message.content.chars().count()).sum();
    if chars > PROMPT_CHARS_MAX { Err(StartRunError::InputTooLong { chars }) } else { Ok(()) }
}

/// The numbers that are shown to the lead are the numbers that are enforced, because both are
/// these.
pub(crate) fn resolve(
    services: &Services,
    request: &RunRequest,
    managed_subagents: Option<InConfigOrder<CustomAgent>>,
) -> Result<RunSettings, StartRunError> {
    let model_name = request.model_name.clone().unwrap_or_else(|| services.models.default_name().to_owned());
    services.models.get(&model_name)?;
    let limits = limits(services, request);
    let registry = services.registry.clone().with_managed(managed_subagents.as_ref());
    let mut tools = services.toolbox.names();
    if request.subagent_enabled {
        tools.push(TASK_TOOL.to_owned());
    }
    Ok(RunSettings {
        run_id: request.run_id.clone().unwrap_or_else(|| new_run_id(services)),
        assistant_id: LEAD.to_owned(),
        model_name,
        subagent_enabled: request.subagent_enabled,
        max_concurrent_subagents: limits.per_response,
        max_total_subagents: limits.per_run,
        allowed_subagents: request.allowed_subagents.clone(),
        max_turns: LEAD_TURNS_MAX_DEFAULT,
        tools,
        system_prompt: system_prompt(services, &registry, request, limits),
        managed_subagents: managed_subagents.map(Box::new),
        subagents: Some(Box::new(services.registry.settings().clone())),
        summarization_enabled: services.registry.summarization_enabled(),
        token_budget: services.token_budget.map(Box::new),
        loop_detection: services.loop_limits.clone().map(Box::new),
        model_retries_max: Some(services.model_retries_max),
        tool_progress: services.progress_limits.clone().map(Box::new),
        checks_last_words: true,
        summarization: services.compaction.clone().map(Box::new),
        metadata: request.metadata.clone(),
    })
}

/// Per response the smaller of what was asked for and what can run at once; per run what was asked
/// for, clamped, else what is configured (chain facts §1.1).
fn limits(services: &Services, request: &RunRequest) -> DelegationLimits {
    let max_running = services.admission.capacity().limits.max_running;
    let (least, most) = (*DELEGATIONS_PER_RUN_RANGE.start(), *DELEGATIONS_PER_RUN_RANGE.end());
    DelegationLimits {
        per_response: request.max_concurrent_subagents.unwrap_or(max_running).clamp(1, max_running),
        per_run: request
            .max_total_subagents
            .map_or(services.max_total_per_run, |asked| asked.clamp(least, most)),
    }
}

/// The prompt, and the day: both are recorded, so that a run which is resumed on another day is
/// still told this one.
fn system_prompt(
    services: &Services,
    registry: &Registry,
    request: &RunRequest,
    limits: DelegationLimits,
) -> String {
    let types = registry.available(services.allows_bash(), request.allowed_subagents.as_deref());
    let offer = DelegationOffer { types: &types, limits, receipts_enabled: services.receipts_enabled };
    let prompt = lead_system_prompt(request.subagent_enabled.then_some(&offer));
    format!("{prompt}\n\n{}", date_note(services.today()))
}

#[expect(clippy::expect_used, reason = "a UUID has 36 letters, digits and '-'")]
fn new_run_id(services: &Services) -> RunId {
    RunId::new(services.ids.uuid().to_string()).expect("a UUID is a run id")
}
