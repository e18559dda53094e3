//! The definitions that administrators keep, as the log tells of them.

use std::sync::{Mutex, PoisonError};

use domain::{
    event::{Event, RegistryEvent},
    ids::SubagentType,
    managed::{self, ManagedDefinitions, Version},
};
use eventlog::{EventLog, Expected, Position, RecordedEvent, Seq, StreamId};
use jiff::Timestamp;

use crate::request::HistoryError;

/// Events of the registry that are read at once; one with a definition has some tens of kilobytes.
const PAGE: usize = 64;

/// A fold of the registry that is kept, and brought up to the log's end whenever it is asked. There are
/// few definitions, and their texts are bounded.
#[derive(Default)]
pub(crate) struct ManagedRegistry {
    folded: Mutex<(ManagedDefinitions, Seq)>,
}

impl ManagedRegistry {
    /// The definitions now, and what a change of them expects of the registry.
    pub(crate) fn now(&self, log: &EventLog) -> Result<(ManagedDefinitions, Expected), HistoryError> {
        let mut folded = self.folded.lock().unwrap_or_else(PoisonError::into_inner);
        let (definitions, after) = &mut *folded;
        each_after(log, *after, |recorded| {
            if let Some((event, at)) = registry_event(recorded)? {
                definitions.evolve(&event, at);
            }
            *after = recorded.seq;
            Ok(())
        })?;
        let expected = if *after == Seq::ZERO { Expected::NoStream } else { Expected::Exact(*after) };
        Ok((definitions.clone(), expected))
    }
}

/// The definitions as the registry told of them up to a position.
pub(crate) fn then(log: &EventLog, last: Position) -> Result<ManagedDefinitions, HistoryError> {
    let mut definitions = ManagedDefinitions::default();
    each_after(log, Seq::ZERO, |recorded| {
        let event = if recorded.position <= last { registry_event(recorded)? } else { None };
        event.iter().for_each(|(event, at)| definitions.evolve(event, *at));
        Ok(())
    })?;
    Ok(definitions)
}

/// The versions of what has or had this name up to a position, the first one first.
pub(crate) fn history(
    log: &EventLog,
    name: &SubagentType,
    last: Position,
) -> Result<Vec<Version>, HistoryError> {
    let mut events = Vec::new();
    each_after(log, Seq::ZERO, |recorded| {
        events.extend(if recorded.position <= last { registry_event(recorded)? } else { None });
        Ok(())
    })?;
    Ok(managed::history(events.iter().map(|(event, at)| (event, *at)), name))
}

fn each_after(
    log: &EventLog,
    mut after: Seq,
    mut take: impl FnMut(&RecordedEvent) -> Result<(), HistoryError>,
) -> Result<(), HistoryError> {
    loop {
        let page = log.read_stream(&StreamId::Registry, after, PAGE)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        page.iter().try_for_each(&mut take)?;
    }
}

fn registry_event(recorded: &RecordedEvent) -> Result<Option<(RegistryEvent, Timestamp)>, HistoryError> {
    Ok(match recorded.fact()? {
        Event::Registry(event) => Some((event, recorded.recorded_at)),
        Event::Thread(_)
        | Event::Run(_)
        | Event::Model(_)
        | Event::Tool(_)
        | Event::Delegation(_)
        | Event::Subagent(_)
        | Event::Foreign(_) => None,
    })
}
