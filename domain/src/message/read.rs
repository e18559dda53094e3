//! Reading messages without holding them back until their type is known.
//!
//! What we write begins with the type, so that the rest is read straight into its place. Folding a log
//! reads more messages than anything else does.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value};

use super::{Message, ToolArgs};

/// The key of the type.
const TYPE: &str = "type";

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Type {
    System,
    Human,
    Ai,
    Tool,
}

impl Type {
    fn read<'de, D: Deserializer<'de>>(self, fields: D) -> Result<Message, D::Error> {
        match self {
            Self::System => Deserialize::deserialize(fields).map(Message::System),
            Self::Human => Deserialize::deserialize(fields).map(Message::Human),
            Self::Ai => Deserialize::deserialize(fields).map(Message::Assistant),
            Self::Tool => Deserialize::deserialize(fields).map(Message::Tool),
        }
    }
}

/// A key, kept only where it is not the one that should come first.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum FirstKey {
    Type,
    Other(String),
}

struct MessageVisitor;

impl<'de> Visitor<'de> for MessageVisitor {
    type Value = Message;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a message with its type")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Message, A::Error> {
        match fields.next_key()? {
            Some(FirstKey::Type) => {
                let of_type: Type = fields.next_value()?;
                of_type.read(MapAccessDeserializer::new(fields))
            }
            Some(FirstKey::Other(key)) => read_in_any_order(key, fields),
            None => Err(de::Error::missing_field(TYPE)),
        }
    }
}

fn read_in_any_order<'de, A: MapAccess<'de>>(first: String, mut fields: A) -> Result<Message, A::Error> {
    let mut all = Map::new();
    all.insert(first, fields.next_value()?);
    while let Some((key, value)) = fields.next_entry()? {
        all.insert(key, value);
    }
    let of_type = all.remove(TYPE).ok_or_else(|| de::Error::missing_field(TYPE))?;
    let of_type = Type::deserialize(of_type).map_err(de::Error::custom)?;
    of_type.read(Value::Object(all)).map_err(de::Error::custom)
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MessageVisitor)
    }
}

struct ArgsVisitor;

impl<'de> Visitor<'de> for ArgsVisitor {
    type Value = ToolArgs;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("arguments: an object, or text that is none")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<ToolArgs, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(fields)).map(ToolArgs::Object)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ToolArgs, E> {
        Ok(ToolArgs::Invalid(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<ToolArgs, E> {
        Ok(ToolArgs::Invalid(text))
    }
}

impl<'de> Deserialize<'de> for ToolArgs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ArgsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::{AssistantMessage, ToolCall};

    fn reply() -> Message {
        let object = ToolArgs::Object(Map::from_iter([("path".to_owned(), json!({ "a": [1, null] }))]));
        let call = |args| ToolCall { id: "call_1".to_owned(), name: "read_file".to_owned(), args };
        Message::Assistant(AssistantMessage {
            content: "one".to_owned(),
            tool_calls: vec![call(object), call(ToolArgs::Invalid("{\"path".to_owned()))],
            ..AssistantMessage::default()
        })
    }

    #[test]
    fn a_message_is_read_wherever_its_type_stands() {
        let Ok(Value::Object(first)) = serde_json::to_value(reply()) else { panic!("an object") };
        let mut last = first.clone();
        let of_type = last.shift_remove("type").unwrap();
        last.insert("type".to_owned(), of_type);
        for fields in [first, last] {
            let text = serde_json::to_string(&fields).unwrap();
            assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), reply(), "{text}");
            assert_eq!(serde_json::from_value::<Message>(Value::Object(fields)).unwrap(), reply());
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for text in [
            "{}",
            "[]",
            "null",
            r#"{"content":"x"}"#,
            r#"{"type":"robot","content":"x"}"#,
            r#"{"content":"x","type":"robot"}"#,
            r#"{"type":"system"}"#,
            r#"{"type":"ai","tool_calls":[{"id":"1","name":"x","args":null}]}"#,
            r#"{"type":"ai","tool_calls":[{"id":"1","name":"x","args":[1]}]}"#,
            r#"{"tool_calls":[{"id":"1","name":"x","args":7}],"type":"ai"}"#,
        ] {
            assert!(serde_json::from_str::<Message>(text).is_err(), "{text}");
        }
    }
}
