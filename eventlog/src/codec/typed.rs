//! Typed facts in and out of records. Upcasters of old content have their place here, and nowhere
//! else: after [`decode`] there is only today's shape.

use domain::event::{CALLER_KEY, Event, ForeignEvent, Labels, Logged, UnreadableContent};
use serde_json::{Map, Value};

use super::upcast::{self, UPCASTERS, Upcaster};
use crate::{json::Json, position::Position, recorded::RecordedEvent, stream_id::StreamId};

/// The schema version of events that somebody else made: their content promises nothing.
pub const FOREIGN_SCHEMA_VERSION: u16 = 0;

/// A typed fact as the log takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// What happened.
    pub event_type: String,
    /// The version of the content's shape.
    pub schema_version: u16,
    /// Which feed it belongs to.
    pub category: String,
    /// The payload.
    pub content: Json,
    /// Facts about the payload.
    pub metadata: Json,
}

/// A record whose content is not what its type and version promise.
#[derive(Debug, thiserror::Error)]
pub enum UndecodableEvent {
    /// The record belongs to no thread.
    #[error("position {position} is in stream {stream}, which holds no thread's events")]
    NotOfAThread {
        /// Where it is.
        position: u64,
        /// The stream.
        stream: StreamId,
    },
    /// The content was written by a later version of this program.
    #[error(
        "position {position} has a {event_type} of schema version {found}; this program reads up to version {}",
        Event::SCHEMA_VERSION
    )]
    SchemaVersion {
        /// Where it is.
        position: u64,
        /// What the record names.
        event_type: String,
        /// The version of its content.
        found: u16,
    },
    /// The content is of an earlier version and could not be brought into today's shape.
    #[error("the content of position {position} could not be read to bring it up to date")]
    Upcast {
        /// Where it is.
        position: u64,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// The content has another shape.
    #[error("position {position} cannot be decoded")]
    Content {
        /// Where it is.
        position: u64,
        /// What is wrong with it.
        #[source]
        source: UnreadableContent,
    },
}

/// Writes a fact's type, category, content and metadata.
pub fn encode(event: &Event) -> Result<Encoded, serde_json::Error> {
    let schema_version = match event {
        Event::Foreign(_) => FOREIGN_SCHEMA_VERSION,
        Event::Thread(_)
        | Event::Run(_)
        | Event::Model(_)
        | Event::Tool(_)
        | Event::Delegation(_)
        | Event::Subagent(_)
        | Event::Registry(_) => Event::SCHEMA_VERSION,
    };
    Ok(Encoded {
        event_type: event.event_type().to_owned(),
        schema_version,
        category: event.category().to_owned(),
        content: Json::from_serialize(&event.content()?)?,
        metadata: Json::from_serialize(&event.metadata())?,
    })
}

/// Reads a record of a thread as a fact. What somebody else recorded is read as far as it can be
/// and carried as it is otherwise; what Remit recorded must have its shape. An event that was erased
/// is a foreign one without type, category and content: it says that something was here.
pub fn decode(recorded: &RecordedEvent) -> Result<Logged, UndecodableEvent> {
    let position = recorded.position.get();
    let Some(thread_id) = recorded.stream.thread_id() else {
        return Err(UndecodableEvent::NotOfAThread { position, stream: recorded.stream.clone() });
    };
    let event = decode_event(recorded)?;
    Ok(Logged {
        position,
        seq: recorded.seq.get(),
        thread_id: thread_id.clone(),
        owner: recorded.owner.clone(),
        scope: recorded.scope.clone(),
        recorded_at: recorded.recorded_at,
        labels: labels(&Texts::of(recorded), &event),
        event,
    })
}

/// What an event is read from.
pub(super) struct Texts<'a> {
    pub(super) position: Position,
    pub(super) event_type: &'a str,
    pub(super) schema_version: u16,
    pub(super) category: &'a str,
    pub(super) content: &'a str,
    pub(super) metadata: &'a str,
}

impl<'a> Texts<'a> {
    fn of(recorded: &'a RecordedEvent) -> Self {
        Self {
            position: recorded.position,
            event_type: &recorded.event_type,
            schema_version: recorded.schema_version,
            category: &recorded.category,
            content: recorded.content.get(),
            metadata: recorded.metadata.get(),
        }
    }

    fn metadata(&self) -> Map<String, Value> {
        serde_json::from_str(self.metadata).unwrap_or_default()
    }

    /// The event.
    pub(super) fn read(&self) -> Result<Event, UndecodableEvent> {
        self.read_upcast(&UPCASTERS, Event::SCHEMA_VERSION)
    }

    /// The same, with the steps up to a version.
    fn read_upcast(&self, upcasters: &[Upcaster], current: u16) -> Result<Event, UndecodableEvent> {
        let (position, event_type) = (self.position.get(), self.event_type);
        if self.schema_version > current {
            let (event_type, found) = (event_type.to_owned(), self.schema_version);
            return Err(UndecodableEvent::SchemaVersion { position, event_type, found });
        }
        let versions = match self.schema_version {
            FOREIGN_SCHEMA_VERSION => current..current,
            ours => ours..current,
        };
        let content = upcast::upcast(upcasters, event_type, versions, self.content)
            .map_err(|source| UndecodableEvent::Upcast { position, source })?;
        match Event::parse(event_type, &content) {
            Some(Ok(event)) => Ok(event),
            Some(Err(source)) if self.schema_version != FOREIGN_SCHEMA_VERSION => {
                Err(UndecodableEvent::Content { position, source })
            }
            Some(Err(_)) | None => Ok(Event::Foreign(self.foreign())),
        }
    }

    /// Numbers that the tree cannot hold make the payload null here; the record keeps their text.
    fn foreign(&self) -> ForeignEvent {
        ForeignEvent {
            event_type: self.event_type.to_owned(),
            category: self.category.to_owned(),
            content: serde_json::from_str(self.content).unwrap_or(Value::Null),
            metadata: self.metadata(),
        }
    }
}

/// Whoever ingests a fact of one of our types still chooses its category and metadata.
pub(super) fn labels(texts: &Texts<'_>, event: &Event) -> Option<Box<Labels>> {
    if texts.schema_version != FOREIGN_SCHEMA_VERSION || matches!(event, Event::Foreign(_)) {
        return None;
    }
    let caller = texts.metadata().get(CALLER_KEY).and_then(Value::as_str).map(str::to_owned);
    Some(Box::new(Labels { category: texts.category.to_owned(), caller }))
}

impl RecordedEvent {
    /// Reads the record as a fact, in whichever stream it is: the registry has facts too, which
    /// belong to no thread.
    pub fn fact(&self) -> Result<Event, UndecodableEvent> {
        decode_event(self)
    }
}

fn decode_event(recorded: &RecordedEvent) -> Result<Event, UndecodableEvent> {
    let texts = Texts::of(recorded);
    if recorded.is_erased() { Ok(Event::Foreign(texts.foreign())) } else { texts.read() }
}

#[cfg(test)]
mod tests {
    use domain::{
        event::{ThreadCreated, ThreadEvent},
        ids::{EventId, ThreadId, UserId},
    };
    use jiff::Timestamp;

    use serde_json::json;

    use super::*;
    use crate::{
        position::Seq,
        seal::{ErasedRecord, Seal},
    };

    fn recorded(event_type: &str, schema_version: u16, content: &str) -> RecordedEvent {
        RecordedEvent {
            position: Position::new(7),
            stream: StreamId::Thread(ThreadId::new("t").unwrap()),
            seq: Seq::new(3),
            event_id: EventId::from_uuid(uuid::Uuid::nil()),
            event_type: event_type.into(),
            schema_version,
            category: "thread".into(),
            scope: Default::default(),
            owner: UserId::unowned(),
            causation_id: None,
            correlation_id: None,
            created_at: Timestamp::UNIX_EPOCH,
            recorded_at: Timestamp::UNIX_EPOCH,
            content: Json::parse(content).unwrap(),
            metadata: Json::empty_object(),
            hash: [0; 32],
            seal: Default::default(),
        }
    }

    #[track_caller]
    fn check(event_type: &str, schema_version: u16, content: &str, expected: Result<&str, &str>) {
        let decoded = decode(&recorded(event_type, schema_version, content));
        let decoded = decoded.map(|logged| {
            let is_foreign = matches!(logged.event, Event::Foreign(_));
            if is_foreign { "foreign".to_owned() } else { logged.event.event_type().to_owned() }
        });
        let decoded = decoded.map_err(|error| error.to_string());
        assert_eq!(decoded.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn our_own_content_must_have_its_shape_and_others_may_have_any() {
        check("thread.created", 1, "{}", Ok("thread.created"));
        check("thread.created", 1, "\"text\"", Err("position 7 cannot be decoded"));
        check("thread.created", 0, "{}", Ok("thread.created"));
        check("thread.created", 0, "\"free text\"", Ok("foreign"));
        check("somebody.elses", 0, "[1]", Ok("foreign"));
        check("somebody.elses", 1, "[1]", Ok("foreign"));
        let newer = "position 7 has a thread.created of schema version 9; this program reads up to version 1";
        check("thread.created", 9, "{}", Err(newer));
    }

    #[test]
    fn old_content_is_brought_up_to_date_before_it_is_read() {
        let table = [
            Upcaster { event_type: "thread.created", from: 1, upcast: |old| json!({ "facts": old["old"] }) },
            Upcaster {
                event_type: "thread.created",
                from: 2,
                upcast: |old| json!({ "metadata": old["facts"] }),
            },
        ];
        let decode = |version, content| {
            let recorded = recorded("thread.created", version, content);
            Texts::of(&recorded).read_upcast(&table, 3).map_err(|error| error.to_string())
        };
        let facts = Map::from_iter([("a".to_owned(), json!(1))]);
        let expected =
            Event::Thread(ThreadEvent::Created(ThreadCreated { metadata: facts, ..Default::default() }));
        assert_eq!(decode(1, r#"{"old":{"a":1}}"#), Ok(expected.clone()));
        assert_eq!(decode(2, r#"{"facts":{"a":1}}"#), Ok(expected.clone()));
        assert_eq!(decode(3, r#"{"metadata":{"a":1}}"#), Ok(expected));
        // What somebody else made has no versions of ours.
        let foreign = decode(FOREIGN_SCHEMA_VERSION, r#"{"old":{"a":1}}"#).unwrap();
        assert_eq!(foreign, Event::Thread(ThreadEvent::Created(ThreadCreated::default())));
        assert!(decode(4, "{}").is_err());
    }

    #[test]
    fn what_others_record_keeps_its_own_category_and_caller() {
        let metadata = Json::parse(r#"{"caller":"middleware:title"}"#).unwrap();
        let labelled = |schema_version, event_type: &str, content: &str| {
            let record = RecordedEvent {
                category: "message".into(),
                metadata: metadata.clone(),
                ..recorded(event_type, schema_version, content)
            };
            let logged = decode(&record).unwrap();
            (logged.category().to_owned(), logged.caller().map(str::to_owned))
        };
        let theirs = ("message".to_owned(), Some("middleware:title".to_owned()));
        assert_eq!(labelled(0, "llm.ai.response", r#"{"type":"ai"}"#), theirs);
        assert_eq!(labelled(0, "thread.created", "{}"), theirs);
        assert_eq!(labelled(0, "ai_message", "[]"), theirs);
        let ours = |category: &str, caller: Option<&str>| (category.to_owned(), caller.map(str::to_owned));
        assert_eq!(labelled(1, "llm.ai.response", r#"{"type":"ai"}"#), ours("message", Some("lead_agent")));
        assert_eq!(labelled(1, "thread.created", "{}"), ours("thread", None));
    }

    #[test]
    fn an_erased_event_is_foreign_and_empty() {
        let erased = RecordedEvent {
            seal: Seal::Erased(ErasedRecord([1].into())),
            ..recorded("thread.created", 1, "null")
        };
        assert!(matches!(decode(&erased).unwrap().event, Event::Foreign(_)));
    }

    #[test]
    fn a_fact_survives_the_round_trip() {
        let event = Event::Thread(ThreadEvent::Created(ThreadCreated::default()));
        let encoded = encode(&event).unwrap();
        assert_eq!((encoded.schema_version, encoded.category.as_str()), (1, "thread"));
        let logged = decode(&recorded(&encoded.event_type, 1, encoded.content.get())).unwrap();
        assert_eq!((logged.event, logged.position, logged.seq), (event, 7, 3));
    }
}
