//! Usage: which models were called, by whom, on which day, and what they used.
//!
//! Every model call is counted once, where it is recorded: a lead's with its reply, a subagent's with
//! its own. What a subagent brings back to its lead and what a run sums up at its end are the same
//! tokens again, and are not counted. A call whose provider reported nothing is counted as a call, and
//! makes every total that it is in one of "at least".

mod as_of;
mod report;

use std::cell::RefCell;

use domain::{
    event::{
        DelegationEvent, DelegationRequested, Event, LEAD_CALLER, Logged, ModelEvent, RunEvent, RunSettings,
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

pub use self::{
    as_of::{usage_as_of, usage_at},
    report::{UsageAxis, UsageFigures, UsageGroup, UsageQuery, UsageReport},
};

/// Stands for a model or a type of subagent that nobody named (facts §5).
pub const UNKNOWN: &str = "unknown";

/// What one caller used of one model in one run on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UsageCell {
    /// The seqs of its first and its newest call.
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    pub(crate) run_id: Option<RunId>,
    pub(crate) day: Date,
    pub(crate) model_name: String,
    pub(crate) caller: String,
    pub(crate) calls: u64,
    pub(crate) calls_without_usage: u64,
    pub(crate) usage: Option<Usage>,
}

impl UsageCell {
    /// Counts a call.
    fn count(&mut self, seq: u64, report: Option<Usage>) {
        self.last_seq = seq;
        self.calls += 1;
        self.calls_without_usage += u64::from(report.is_none());
        Usage::add_to(&mut self.usage, report);
    }
}

/// What a lead's model is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeadModel {
    /// The seq of the event that first said it. Calls before it did not know it.
    pub(crate) since: u64,
    pub(crate) model_name: String,
}

/// Whom a delegation went to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SubagentModel {
    /// As of a lead's.
    pub(crate) since: u64,
    pub(crate) model_name: String,
    pub(crate) subagent_type: String,
}

/// The view of all usage.
pub(crate) struct UsageView;

impl View for UsageView {
    const NAME: &'static str = "usage";
    const VERSION: u32 = 2;
    const KINDS: &'static [KeyKind] =
        &[KeyKind::LeadModel, KeyKind::SubagentModel, KeyKind::UsageCell, KeyKind::UsageCellThen];

    fn apply(&self, event: &Logged, rows: &mut Rows<'_>) -> Result<(), FoldError> {
        match &event.event {
            Event::Run(RunEvent::Started(settings)) if started_run(event).is_some() => {
                note_lead(event, rows, settings)?;
            }
            Event::Delegation(DelegationEvent::Requested(request)) => note_subagent(event, rows, request)?,
            Event::Run(_)
            | Event::Delegation(_)
            | Event::Model(_)
            | Event::Subagent(_)
            | Event::Thread(_)
            | Event::Tool(_)
            | Event::Registry(_)
            | Event::Foreign(_) => {
                let mut calls = Counted::of(event, rows)?;
                while let Some(first) = calls.pop() {
                    let key = first.key();
                    let (same, others): (Vec<_>, _) = calls.into_iter().partition(|call| call.key() == key);
                    calls = others;
                    // In one go, because a state that is kept is that after the whole event.
                    rows.update(&key, |known| Some(first.counted_in(known, same, event.seq)))?;
                }
            }
        }
        Ok(())
    }
}

/// A model call, and where it is counted.
struct Counted {
    place: Place,
    call: Call,
    run_id: Option<RunId>,
    day: Date,
    report: Option<Usage>,
}

impl Counted {
    /// The model calls that an event tells of. Rows say which models they were.
    fn of(event: &Logged, rows: &mut Rows<'_>) -> Result<Vec<Self>, FoldError> {
        let (place, mut calls) = (Place::of(event), Vec::new());
        match &event.event {
            Event::Run(RunEvent::Compacted(compaction)) => {
                for (model_name, usage) in compaction.calls() {
                    let call = Call { caller: SUMMARY_CALLER.to_owned(), model_name: model_name.to_owned() };
                    calls.push(Self::new(event, &place, call, usage));
                }
            }
            Event::Subagent(SubagentEvent::Compacted(compacted)) => {
                for (model_name, usage) in compacted.compaction.calls() {
                    let caller = subagent_caller(event, rows, &place)?;
                    let call = Call { caller, model_name: model_name.to_owned() };
                    calls.push(Self::new(event, &place, call, usage));
                }
            }
            Event::Model(ModelEvent::AiResponse(Message::Assistant(reply))) => {
                let call = lead_call(event, rows, &place, reply)?;
                calls.push(Self::new(event, &place, call, reply.usage));
            }
            Event::Subagent(SubagentEvent::Message(captured)) => {
                if let Some(reply) = captured.message.as_assistant() {
                    let call = subagent_call(event, rows, &place, reply)?;
                    calls.push(Self::new(event, &place, call, reply.usage));
                }
            }
            Event::Model(_)
            | Event::Subagent(_)
            | Event::Run(_)
            | Event::Delegation(_)
            | Event::Thread(_)
            | Event::Tool(_)
            | Event::Registry(_)
            | Event::Foreign(_) => {}
        }
        Ok(calls)
    }

    fn new(event: &Logged, place: &Place, call: Call, report: Option<Usage>) -> Self {
        let day = TimeZone::UTC.to_datetime(event.recorded_at).date();
        Self { place: place.clone(), call, run_id: event.scope.run_id.clone(), day, report }
    }

    fn key(&self) -> UsageCellKey {
        let Place { thread_id, run } = self.place.clone();
        UsageCellKey { thread_id, run, cell: cell_of(self.day, &self.call.model_name, &self.call.caller) }
    }

    /// The cell with it, and with other calls of the same event.
    fn counted_in(self, known: Option<UsageCell>, others: Vec<Self>, seq: u64) -> UsageCell {
        let mut cell = known.unwrap_or(UsageCell {
            first_seq: seq,
            last_seq: seq,
            run_id: self.run_id,
            day: self.day,
            model_name: self.call.model_name,
            caller: self.call.caller,
            calls: 0,
            calls_without_usage: 0,
            usage: None,
        });
        cell.count(seq, self.report);
        others.into_iter().for_each(|other| cell.count(seq, other.report));
        cell
    }
}

/// Who called which model.
struct Call {
    caller: String,
    model_name: String,
}

/// Where a call is counted.
#[derive(Clone)]
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

fn note_lead(event: &Logged, rows: &mut Rows<'_>, settings: &RunSettings) -> Result<(), FoldError> {
    let Place { thread_id, run } = Place::of(event);
    rows.update(&LeadModelKey { thread_id, run }, |known| {
        // A run is started once: what others record as its start again changes nothing.
        Some(known.unwrap_or_else(|| LeadModel { since: event.seq, model_name: settings.model_name.clone() }))
    })?;
    Ok(())
}

fn note_subagent(
    event: &Logged,
    rows: &mut Rows<'_>,
    request: &DelegationRequested,
) -> Result<(), FoldError> {
    let Some(delegation_id) = event.scope.delegation_id else { return Ok(()) };
    rows.update(&Place::of(event).key_of(delegation_id), |known| {
        let since = known.map_or(event.seq, |known: SubagentModel| known.since);
        let model_name = request.model_name.clone();
        let subagent_type = request.subagent_type.as_str().to_owned();
        Some(SubagentModel { since, model_name, subagent_type })
    })?;
    Ok(())
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
        LEAD_CALLER => rows.get(&key)?.filter(|model| model.since <= event.seq),
        _ => None,
    };
    let model_name = configured.map_or_else(|| answered_by(reply), |model| model.model_name.clone());
    Ok(Call { caller, model_name })
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
    let Some(delegation_id) = event.scope.delegation_id else { return Ok(None) };
    let known = rows.get(&place.key_of(delegation_id))?;
    Ok(known.filter(|known| known.since <= event.seq).cloned())
}

/// The model that answered, as the provider names it (facts §5).
fn answered_by(reply: &AssistantMessage) -> String {
    let named = reply.response_metadata.model_name.as_deref().filter(|name| !name.is_empty());
    named.unwrap_or(UNKNOWN).to_owned()
}

thread_local! {
    /// The cell that was hashed last: calls of one subagent follow one another.
    static NEWEST_CELL: RefCell<Option<(Date, String, String, NameHash)>> = const { RefCell::new(None) };
}

fn cell_of(day: Date, model_name: &str, caller: &str) -> NameHash {
    NEWEST_CELL.with_borrow_mut(|newest| match newest {
        Some((of_day, model, by, cell)) if (*of_day, &**model, &**by) == (day, model_name, caller) => {
            cell.clone()
        }
        Some(_) | None => {
            let cell = NameHash::of_words(&[&day.to_string(), model_name, caller]);
            *newest = Some((day, model_name.to_owned(), caller.to_owned(), cell.clone()));
            cell
        }
    })
}
