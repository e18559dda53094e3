//! JSON kept as the text that was given: numbers above 2^53, key order and escapes survive.
//!
//! Nothing here knows what the text means.

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned, ser};
use serde_json::value::RawValue;

/// One JSON value as its exact text, without white space around it. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Arc<str>);

impl Json {
    /// Checks that the text is one JSON value, and keeps it as it is.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let raw: &RawValue = serde_json::from_str(text)?;
        Ok(Self(raw.get().into()))
    }

    /// Writes a value as JSON.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        Ok(Self(serde_json::to_string(value)?.into()))
    }

    /// The value `{}`: metadata with nothing to say.
    pub fn empty_object() -> Self {
        static EMPTY: LazyLock<Json> = LazyLock::new(|| Json("{}".into()));
        EMPTY.clone()
    }

    /// The value `null`: content that was erased.
    pub fn null() -> Self {
        static NULL: LazyLock<Json> = LazyLock::new(|| Json("null".into()));
        NULL.clone()
    }

    /// Wraps text that was checked before it was stored; the hash of its record vouches for it.
    pub(crate) fn from_stored(text: &str) -> Self {
        if text == "{}" {
            return Self::empty_object();
        }
        Self(text.into())
    }

    /// The exact text.
    pub fn get(&self) -> &str {
        &self.0
    }

    /// Reads the text into a tree. Numbers above 2^64 lose digits there, so prefer the text for
    /// passing a value on.
    pub fn to_value(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// Reads the text into a type.
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Only out of JSON text directly: a value that was buffered on the way has lost its text.
impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(raw.get().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str) {
        let json = Json::parse(text).unwrap();
        assert_eq!(json.get(), text);
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
        assert_eq!(serde_json::from_str::<Json>(text).unwrap(), json);
    }

    #[test]
    fn text_survives_exactly() {
        check("18446744073709551617");
        check("9007199254740993");
        check("1.0e+2");
        check("{\"b\":1,\"a\":2,\"b\":3}");
        check("\"\\u0000 \u{2028}\u{2029}\u{85}\u{1F600} \\ud83d\\ude00\"");
    }

    #[test]
    fn what_is_not_one_value_is_refused() {
        for text in ["", "{", "1 2", "{\"a\":}", "nul", "\"\u{0}\""] {
            assert!(Json::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn white_space_around_is_left_out() {
        assert_eq!(Json::parse(" \n{ \"a\": 1 }\t").unwrap().get(), "{ \"a\": 1 }");
    }
}
