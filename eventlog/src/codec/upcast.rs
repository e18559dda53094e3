//! Old content into today's shape.
//!
//! An upcaster takes the content of one event type from one schema version to the next; content
//! that is two versions old goes through two. Content in the log is never rewritten. A type without
//! an upcaster from some version has the same shape in the next.

use std::borrow::Cow;

use serde_json::Value;

/// One step of one event type.
#[derive(Clone, Copy)]
pub(super) struct Upcaster {
    pub(super) event_type: &'static str,
    /// The version that it reads; it writes the next.
    pub(super) from: u16,
    pub(super) upcast: fn(Value) -> Value,
}

/// Every step there ever was, in any order. Empty while all content has its first shape.
pub(super) const UPCASTERS: [Upcaster; 0] = [];

/// The content in the shape of the `current` version.
pub(super) fn upcast<'a>(
    table: &[Upcaster],
    event_type: &str,
    versions: std::ops::Range<u16>,
    content: &'a str,
) -> Result<Cow<'a, str>, serde_json::Error> {
    let mut content = Cow::Borrowed(content);
    for version in versions {
        let is_next = |step: &&Upcaster| step.event_type == event_type && step.from == version;
        if let Some(step) = table.iter().find(is_next) {
            let value = serde_json::from_str(&content)?;
            content = Cow::Owned(serde_json::to_string(&(step.upcast)(value))?);
        }
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TABLE: [Upcaster; 3] = [
        Upcaster { event_type: "a", from: 1, upcast: |old| json!({ "title": old }) },
        Upcaster { event_type: "a", from: 3, upcast: |old| json!({ "titles": [old["title"]] }) },
        Upcaster { event_type: "b", from: 2, upcast: |_| json!("b") },
    ];

    #[track_caller]
    fn check(event_type: &str, versions: std::ops::Range<u16>, content: &str, expected: &str) {
        assert_eq!(upcast(&TABLE, event_type, versions, content).unwrap(), expected);
    }

    #[test]
    fn each_version_goes_through_the_steps_that_are_left() {
        check("a", 1..4, "\"x\"", r#"{"titles":["x"]}"#);
        check("a", 1..3, "\"x\"", r#"{"title":"x"}"#);
        check("a", 2..4, r#"{"title":"x"}"#, r#"{"titles":["x"]}"#);
        check("a", 4..4, r#"{ "titles" : [] }"#, r#"{ "titles" : [] }"#);
        check("b", 1..4, "1", "\"b\"");
        check("c", 1..4, "[1.0e2]", "[1.0e2]");
    }

    #[test]
    fn a_step_is_in_the_table_once() {
        let steps: std::collections::HashSet<_> =
            UPCASTERS.iter().map(|step| (step.event_type, step.from)).collect();
        assert_eq!(steps.len(), UPCASTERS.len());
        assert!(upcast(&TABLE, "a", 1..2, "no json").is_err());
    }
}
