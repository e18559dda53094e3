//! Takes `auth_token` out of a copy of an event's metadata (facts §8). What is stored keeps it, and
//! everything else keeps its exact text.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serializer as _,
    de::{MapAccess, Visitor},
    ser::SerializeMap as _,
};
use serde_json::value::RawValue;

/// The key that nobody gets to see.
const SECRET_KEY: &str = "auth_token";

/// The metadata without the key; the very same text where it is not there.
pub(super) fn without_auth_token(metadata: &str) -> String {
    let may_have_it = metadata.contains(SECRET_KEY) || metadata.contains('\\');
    if !may_have_it {
        return metadata.to_owned();
    }
    match serde_json::from_str::<Members<'_>>(metadata) {
        Ok(members) if members.0.iter().any(|(key, _)| key == SECRET_KEY) => {
            // What cannot be written without the key is not shown at all.
            members.write_without(SECRET_KEY).unwrap_or_else(|_| "{}".to_owned())
        }
        Ok(_) | Err(_) => metadata.to_owned(),
    }
}

/// The members of an object, in order and with their values as text. Names may repeat.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl Members<'_> {
    fn write_without(&self, key: &str) -> serde_json::Result<String> {
        let mut bytes = Vec::new();
        let mut serializer = serde_json::Serializer::new(&mut bytes);
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.0.iter().filter(|(name, _)| name != key) {
            map.serialize_entry(name, value)?;
        }
        map.end()?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(metadata: &str, expected: &str) {
        assert_eq!(without_auth_token(metadata), expected);
    }

    // Facts §12 line 111.
    #[test]
    fn only_the_token_goes() {
        check("{}", "{}");
        check(r#"{ "a" : 1.0 }"#, r#"{ "a" : 1.0 }"#);
        check(r#"{"auth_token":"s3cret"}"#, "{}");
        check(
            r#"{"b":18446744073709551617,"auth_token":{"x":1},"a":1e2}"#,
            r#"{"b":18446744073709551617,"a":1e2}"#,
        );
        check(r#"{"auth_token":1,"k":2,"auth_token":3}"#, r#"{"k":2}"#);
        check(r#"{"auth\u005ftoken":"s3cret","k":"\u00e9"}"#, r#"{"k":"\u00e9"}"#);
    }

    #[test]
    fn the_words_elsewhere_stay() {
        check(r#"{"note":"auth_token", "n" : 1}"#, r#"{"note":"auth_token", "n" : 1}"#);
        check(r#"{"inner":{"auth_token":1}}"#, r#"{"inner":{"auth_token":1}}"#);
    }
}
