//! Writes facts that stand beside the threads.

use domain::{
    event::{Event, RegistryEvent, Scope},
    ids::UserId,
};
use eventlog::{Append, EventLog, Expected, NewEvent, StreamId};

use crate::{clock::Clock, id_source::IdSource, journal::JournalError};

/// Writes to the registry.
pub(crate) struct Registrar<'a> {
    pub(crate) log: &'a EventLog,
    pub(crate) ids: &'a dyn IdSource,
    pub(crate) clock: &'a dyn Clock,
}

impl Registrar<'_> {
    /// Records a fact, if the registry is where the writer believes.
    pub(crate) async fn record(&self, expected: Expected, event: RegistryEvent) -> Result<(), JournalError> {
        let event_type = event.event_type();
        let encoded = eventlog::encode(&Event::Registry(event)).map_err(|error| JournalError::Encode {
            event_type: event_type.to_owned(),
            problem: error.to_string().into(),
        })?;
        let event = NewEvent {
            event_id: self.ids.event_id(),
            event_type: encoded.event_type,
            schema_version: encoded.schema_version,
            category: encoded.category,
            scope: Scope::default(),
            owner: UserId::unowned(),
            causation_id: None,
            correlation_id: None,
            created_at: self.clock.now(),
            content: encoded.content,
            metadata: encoded.metadata,
        };
        let append =
            Append { stream: StreamId::Registry, expected, idempotency_key: None, events: vec![event] };
        self.log.append(append).await.map(drop).map_err(JournalError::Registry)
    }
}
