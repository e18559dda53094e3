//! Which events an export has.

use domain::ids::{RunId, ThreadId, UserId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    codec::record::{self, HASH_BYTES},
    keyring::ScopeId,
    keys,
    recorded::RecordedEvent,
    seal::Seal,
    stream_id::StreamId,
};

/// Which events are wanted. The default wants all of them.
///
/// Erased events have kept their thread, their run and their times, and nothing else: no filter by
/// owner or type admits them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// Only those of this thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<ThreadId>,
    /// Only those of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Only those of threads of this owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<UserId>,
    /// Only those that the log took at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// Only those that the log took before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// Only these types. An empty list matches nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_types: Option<Vec<String>>,
}

impl Filter {
    /// Whether it wants everything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it wants this event.
    pub fn admits(&self, event: &RecordedEvent) -> bool {
        let is_thread = self.thread_id.as_ref().is_none_or(|wanted| event.stream.thread_id() == Some(wanted));
        let is_time = self.from.is_none_or(|from| event.recorded_at >= from)
            && self.to.is_none_or(|to| event.recorded_at < to);
        is_thread
            && is_time
            && self.run_id.as_ref().is_none_or(|wanted| is_of_run(event, wanted))
            && self.owner.as_ref().is_none_or(|wanted| !event.is_erased() && event.owner == *wanted)
            && self.event_types.as_ref().is_none_or(|wanted| wanted.contains(&event.event_type))
    }
}

/// An erased event has kept the hash of its run.
fn is_of_run(event: &RecordedEvent, wanted: &RunId) -> bool {
    let Seal::Erased(erased) = &event.seal else {
        return event.scope.run_id.as_ref() == Some(wanted);
    };
    let Some(run) = erased_run(&erased.0) else { return false };
    run == hash_of_run(&event.stream, wanted)
}

fn erased_run(record: &[u8]) -> Option<ScopeId> {
    record::outline(&[record, &[0; HASH_BYTES]].concat()).ok().and_then(|outline| outline.run)
}

fn hash_of_run(stream: &StreamId, run_id: &RunId) -> ScopeId {
    ScopeId(keys::run_entry::hash(stream, run_id))
}
