//! Events that somebody else made. Content and metadata are kept as the text that they are.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

/// The body of `POST /threads/{t}/events`.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Ingest {
    /// One event.
    One(Box<IngestEvent>),
    /// Several, stored all or none.
    Many(Vec<IngestEvent>),
}

impl Ingest {
    /// The events.
    pub fn events(&self) -> &[IngestEvent] {
        match self {
            Self::One(event) => std::slice::from_ref(&**event),
            Self::Many(events) => events,
        }
    }
}

/// An event that somebody else made.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IngestEvent {
    /// The run; absent for what belongs to the thread alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// What happened.
    pub event_type: String,
    /// What kind of reader it is for.
    pub category: String,
    /// The fact: any JSON value; absent means empty text.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "raw")]
    pub content: Option<Box<RawValue>>,
    /// What readers filter by: an object; absent means an empty one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "raw")]
    pub metadata: Option<Box<RawValue>>,
    /// When it happened; absent means now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// The `task` call that it belongs to; absent means the text under `task_id` in the metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Store it only if its thread, run and type have no record yet.
    #[serde(default, skip_serializing_if = "is_false")]
    pub if_absent: bool,
    /// Makes a repeat of the same request harmless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A value that is there, null too.
fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// By hand, because what serde buffers to find out which of the two it is loses its text.
impl<'de> Deserialize<'de> for Ingest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IngestVisitor)
    }
}

struct IngestVisitor;

impl<'de> Visitor<'de> for IngestVisitor {
    type Value = Ingest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event or a list of events")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Ingest, A::Error> {
        let event = IngestEvent::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Ingest::One(Box::new(event)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Ingest, A::Error> {
        let mut events = Vec::new();
        while let Some(Element(event)) = seq.next_element()? {
            events.push(event);
        }
        Ok(Ingest::Many(events))
    }
}

/// An event as an object: a list of its fields in order is not one.
struct Element(IngestEvent);

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ElementVisitor)
    }
}

struct ElementVisitor;

impl<'de> Visitor<'de> for ElementVisitor {
    type Value = Element;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Element, A::Error> {
        IngestEvent::deserialize(MapAccessDeserializer::new(map)).map(Element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_one_event_or_several() {
        let one = r#"{"run_id":"r","event_type":"x","category":"y"}"#;
        let Ingest::One(event) = serde_json::from_str(one).unwrap() else { panic!("not one event") };
        assert!(event.content.is_none());
        let several: Ingest = serde_json::from_str(&format!("[{one},{one}]")).unwrap();
        assert_eq!((matches!(several, Ingest::Many(_)), several.events().len()), (true, 2));
        for bad in [
            r#"{"event_type":"x","category":"y","seq":1}"#,
            r#"[["r","x","y"]]"#,
            r#"{"category":"y"}"#,
            r#""text""#,
            "null",
        ] {
            assert!(serde_json::from_str::<Ingest>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn content_and_metadata_keep_their_text() {
        let content = r#"{"b":1.0,"a" : 1e2,"n":9007199254740993,"b":"\u2028\ud800"}"#;
        let body = format!(r#"[{{"event_type":"x","category":"y","content":{content},"metadata":{{ }}}}]"#);
        let ingest: Ingest = serde_json::from_str(&body).unwrap();
        let event = &ingest.events()[0];
        assert_eq!(event.content.as_ref().unwrap().get(), content);
        assert_eq!(serde_json::to_string(&ingest).unwrap(), body);
        let null: Ingest =
            serde_json::from_str(r#"{"event_type":"x","category":"y","content":null}"#).unwrap();
        assert_eq!(null.events()[0].content.as_ref().unwrap().get(), "null");
    }
}
