//! Writes the facts of one run to its thread's stream.

use std::sync::Arc;

use domain::{
    event::{Event, Scope},
    ids::{ThreadId, UserId},
};
use eventlog::{Append, AppendError, EventLog, Expected, NewEvent, StreamId};

use crate::{clock::Clock, id_source::IdSource};

/// A fact and what it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fact {
    pub(crate) scope: Scope,
    pub(crate) event: Event,
}

/// Why facts were not recorded.
#[derive(Debug, Clone, thiserror::Error)]
pub enum JournalError {
    /// The log refused or failed.
    #[error("recording events on thread {thread_id}")]
    Log {
        /// The thread.
        thread_id: ThreadId,
        /// What the log said.
        #[source]
        source: AppendError,
    },
    /// The log refused or failed a fact that stands beside the threads.
    #[error("recording an event in the registry")]
    Registry(#[source] AppendError),
    /// A fact could not be written as JSON.
    #[error("writing a {event_type} event as JSON ({problem})")]
    Encode {
        /// The fact's type.
        event_type: String,
        /// What went wrong.
        problem: Arc<str>,
    },
}

/// Writes facts of one thread.
#[derive(Clone)]
pub(crate) struct Journal {
    pub(crate) log: EventLog,
    pub(crate) thread_id: ThreadId,
    pub(crate) owner: UserId,
    /// The trace that the events belong to: the run.
    pub(crate) correlation_id: Option<String>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
}

impl Journal {
    /// Records the facts together or not at all. Answers when they are durable.
    pub(crate) async fn append(&self, facts: &[Fact], expected: Expected) -> Result<(), JournalError> {
        let events = facts.iter().map(|fact| self.new_event(fact)).collect::<Result<_, _>>()?;
        let stream = StreamId::Thread(self.thread_id.clone());
        let append = Append { stream, expected, idempotency_key: None, events };
        let failed = |source| JournalError::Log { thread_id: self.thread_id.clone(), source };
        self.log.append(append).await.map(drop).map_err(failed)
    }

    fn new_event(&self, fact: &Fact) -> Result<NewEvent, JournalError> {
        let encoded = eventlog::encode(&fact.event).map_err(|error| JournalError::Encode {
            event_type: fact.event.event_type().to_owned(),
            problem: error.to_string().into(),
        })?;
        Ok(NewEvent {
            event_id: self.ids.event_id(),
            event_type: encoded.event_type,
            schema_version: encoded.schema_version,
            category: encoded.category,
            scope: fact.scope.clone(),
            owner: self.owner.clone(),
            causation_id: None,
            correlation_id: self.correlation_id.clone(),
            created_at: self.clock.now(),
            content: encoded.content,
            metadata: encoded.metadata,
        })
    }
}
