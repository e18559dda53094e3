//! Usage: which models were called, by whom, on which day, and what they used.
//!
//! Every model call is counted once, where it is recorded: a lead's with its reply, a subagent's with
//! its own. What a subagent brings back to its lead and what a run sums up at its end are the same
//! tokens again, and are not counted. A call whose provider reported nothing is counted as a call, and
//! makes every total that it is in one of "at least".

mod report;

use domain::{
    event::{
        DelegationEvent, DelegationRequested, Event, LEAD_CALLER, Logged, ModelEvent, RunEvent,
        SUMMARY_CALLER, SubagentEvent,
    },
    feed::SUBAGENT_PREFIX,
    ids::{DelegationId, RunId, ThreadId},
    message::{AssistantMessage, Message},
    usage::Usage,
};
use jiff::{civil::Date, tz::TimeZone};
use serde::{Deserialize, Serialize};

use crate::{
    keys::{
        KeyKind, NameHash,
        usage::{LeadModelKey, SubagentModelKey, UsageCellKey},
    },
    rows::Rows,
    view::{FoldError, View},
    views::run::started_run,
};

pub use self::report::{
    UsageAxis, UsageError, UsageFigures, UsageGroup, UsageQuery, UsageReport, usage_as_of,
};

/// Stands for a model or a type of subagent that nobody named (facts §5).
pub const UNKNOWN: &str = "unknown";

/// What one caller used of one model in one run on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UsageCell {
    pub(crate) run_id: Option<RunId>,
    pub(crate) day: Date,
    pub(crate) model_name: String,
    pub(crate) caller: String,
    pub(crate) calls: u64,
    pub(crate) calls_without_usage: u64,
    pub(crate) usage: Option<Usage>,
}

/// Whom a delegation went to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SubagentModel {
    pub(crate) model_name: String,
    pub(crate) subagent_type: String,
}

/// The view of all usage.
pub(crate) struct UsageView;

impl View for UsageView {
    const NAME: &'static str = "usage";
    const VERSION: u32 = 1;
    const KINDS: &'static [KeyKind] = &[KeyKind::LeadModel, KeyKind::SubagentModel, KeyKind::UsageCell];

    fn apply(&self, event: &Logged, rows: &mut Rows<'_>) -> Result<(), FoldError> {
        match &event.event {
            Event::Run(RunEvent::Started(settings)) if started_run(event).is_some() => {
                let Place { thread_id, run } = Place::of(event);
                rows.put(&LeadModelKey { thread_id, run }, settings.model_name.clone());
            }
            Event::Delegation(DelegationEvent::Requested(request)) => note_subagent(event, rows, request),
            Event::Run(RunEvent::Compacted(compaction)) => {
                for (model_name, usage) in compaction.calls() {
                    let call = Call { caller: SUMMARY_CALLER.to_owned(), model_name: model_name.to_owned() };
                    add(event, rows, Place::of(event), call, usage)?;
                }
            }
            Event::Subagent(SubagentEvent::Compacted(compacted)) => {
                for (model_name, usage) in compacted.compaction.calls() {
                    let caller = subagent_caller(event, rows, &Place::of(event))?;
                    let call = Call { caller, model_name: model_name.to_owned() };
                    add(event, rows, Place::of(event), call, usage)?;
                }
            }
            Event::Model(ModelEvent::AiResponse(Message::Assistant(reply))) => {
                let place = Place::of(event);
                let call = lead_call(event, rows, &place, reply)?;
                add(event, rows, place, call, reply.usage)?;
            }
            Event::Subagent(SubagentEvent::Message(captured)) => {
                if let Some(reply) = captured.message.as_assistant() {
                    let place = Place::of(event);
                    let call = subagent_call(event, rows, &place, reply)?;
                    add(event, rows, place, call, reply.usage)?;
                }
            }
            Event::Run(_)
            | Event::Delegation(_)
            | Event::Model(_)
            | Event::Subagent(_)
            | Event::Thread(_)
            | Event::Tool(_)
            | Event::Registry(_)
            | Event::Foreign(_) => {}
        }
        Ok(())
    }
}

/// Who called which model.
struct Call {
    caller: String,
    model_name: String,
}

/// Where a call is counted.
struct Place {
    thread_id: ThreadId,
    run: NameHash,
}

impl Place {
    fn of(event: &Logged) -> Self {
        let run = NameHash::of_any_run(&event.thread_id, event.scope.run_id.as_ref());
        Self { thread_id: event.thread_id.clone(), run }
    }

    fn key_of(&self, delegation_id: DelegationId) -> SubagentModelKey {
        SubagentModelKey { thread_id: self.thread_id.clone(), run: self.run.clone(), delegation_id }
    }
}

fn note_subagent(event: &Logged, rows: &mut Rows<'_>, request: &DelegationRequested) {
    if let Some(delegation_id) = event.scope.delegation_id {
        let model_name = request.model_name.clone();
        let subagent_type = request.subagent_type.as_str().to_owned();
        let key = Place::of(event).key_of(delegation_id);
        rows.put(&key, SubagentModel { model_name, subagent_type });
    }
}

/// A lead's model has the name that it is configured under. Of calls that others recorded, only what
/// they say of them is known.
fn lead_call(
    event: &Logged,
    rows: &mut Rows<'_>,
    Place { thread_id, run }: &Place,
    reply: &AssistantMessage,
) -> Result<Call, FoldError> {
    let caller = event.caller().unwrap_or(LEAD_CALLER).to_owned();
    let key = LeadModelKey { thread_id: thread_id.clone(), run: run.clone() };
    let configured = match caller.as_str() {
        LEAD_CALLER => rows.get(&key)?.cloned(),
        _ => None,
    };
    Ok(Call { caller, model_name: configured.unwrap_or_else(|| answered_by(reply)) })
}

fn subagent_call(
    event: &Logged,
    rows: &mut Rows<'_>,
    place: &Place,
    reply: &AssistantMessage,
) -> Result<Call, FoldError> {
    let known = subagent_known(event, rows, place)?;
    let (model_name, subagent_type) = match known {
        Some(known) => (known.model_name, known.subagent_type),
        None => (answered_by(reply), UNKNOWN.to_owned()),
    };
    Ok(Call { caller: format!("{SUBAGENT_PREFIX}{subagent_type}"), model_name })
}

fn subagent_caller(event: &Logged, rows: &mut Rows<'_>, place: &Place) -> Result<String, FoldError> {
    let known = subagent_known(event, rows, place)?;
    let subagent_type = known.map_or_else(|| UNKNOWN.to_owned(), |known| known.subagent_type);
    Ok(format!("{SUBAGENT_PREFIX}{subagent_type}"))
}

fn subagent_known(
    event: &Logged,
    rows: &mut Rows<'_>,
    place: &Place,
) -> Result<Option<SubagentModel>, FoldError> {
    match event.scope.delegation_id {
        Some(delegation_id) => Ok(rows.get(&place.key_of(delegation_id))?.cloned()),
        None => Ok(None),
    }
}

/// The model that answered, as the provider names it (facts §5).
fn answered_by(reply: &AssistantMessage) -> String {
    let named = reply.response_metadata.model_name.as_deref().filter(|name| !name.is_empty());
    named.unwrap_or(UNKNOWN).to_owned()
}

fn add(
    event: &Logged,
    rows: &mut Rows<'_>,
    Place { thread_id, run }: Place,
    Call { caller, model_name }: Call,
    report: Option<Usage>,
) -> Result<(), FoldError> {
    let day = TimeZone::UTC.to_datetime(event.recorded_at).date();
    let cell = NameHash::of_words(&[&day.to_string(), &model_name, &caller]);
    rows.update(&UsageCellKey { thread_id, run, cell }, |known| {
        let mut cell = known.unwrap_or_else(|| UsageCell {
            run_id: event.scope.run_id.clone(),
            day,
            model_name,
            caller,
            calls: 0,
            calls_without_usage: 0,
            usage: None,
        });
        cell.calls += 1;
        cell.calls_without_usage += u64::from(report.is_none());
        Usage::add_to(&mut cell.usage, report);
        Some(cell)
    })?;
    Ok(())
}
