//! The form of the lines.

use proptest::prelude::*;

use super::*;
use crate::{
    export::line::{Entry, Line, compose, parse},
    new_event::NewEvent,
    position::Seq,
    recorded::Place,
};

fn recorded(content: &str, metadata: &str) -> RecordedEvent {
    let event = NewEvent {
        content: Json::parse(content).unwrap(),
        metadata: Json::parse(metadata).unwrap(),
        ..sample::note(1)
    };
    let place = Place {
        position: Position::new(9_007_199_254_740_993),
        stream: sample::thread("t"),
        seq: Seq::new(3),
        recorded_at: sample::time(),
    };
    RecordedEvent { hash: [7; 32], ..RecordedEvent::new(event, place) }
}

#[track_caller]
fn check(content: &str, metadata: &str) {
    let event = recorded(content, metadata);
    let text = compose(&event, &[3; 32]).unwrap();
    assert_eq!(text.matches(['\n', '\r']).count(), 1, "{text:?}");
    assert_eq!(parse(text.as_bytes()), Ok(Line { event, previous_hash: [3; 32] }));
    // The value can be read without knowing of the exact text.
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["content"], serde_json::from_str::<serde_json::Value>(content).unwrap());
}

#[test]
fn any_text_has_one_line_and_comes_back_exactly() {
    check("1", "{}");
    check("{\"a\":\n 1,\r\n\"b\":[\n]}", "{\"m\":\r1}");
    check("18446744073709551617", "{ \"x\" : 1.0e+2 }");
    check("\"\\u0000 \u{2028}\u{2029}\u{85}\u{1F600} \\n \\ud83d\\ude00\"", "{}");
    check("{\"previous_hash\":\"x\",\"content_text\":\"y\"}", "{\"a\":1,\"a\":2}");
}

#[test]
fn another_form_of_the_same_is_refused() {
    let text = compose(&recorded("{\"a\":\n1}", "{}"), &[0xab; 32]).unwrap();
    parse(text.as_bytes()).unwrap();
    for (from, to) in [
        ("\n", ""),
        ("{\"position\"", "{ \"position\""),
        ("abab", "ABab"),
        ("content_text", "content_tex"),
        ("{\"a\": 1}", "{\"a\": 2}"),
        ("\"seq\":3", "\"seq\":3,\"more\":1"),
    ] {
        assert!(text.contains(from), "{from}");
        assert!(parse(text.replacen(from, to, 1).as_bytes()).is_err(), "{from} {to}");
    }
}

proptest! {
    #[test]
    fn any_content_survives(text in any::<String>(), breaks in "[ \n\r]{0,3}") {
        let content = format!("{{{breaks}\"k\":{breaks}{}}}", serde_json::to_string(&text).unwrap());
        check(&content, "{}");
    }

    #[test]
    fn entries_have_one_form(is_here: bool, hash: [u8; 32], other in any::<[u8; 66]>()) {
        let entry = Entry { is_here, hash };
        prop_assert_eq!(Entry::parse(entry.compose().as_bytes()), Some(entry));
        if let Some(read) = Entry::parse(&other) {
            prop_assert_eq!(read.compose().into_bytes(), other.to_vec());
        }
    }
}
