//! Records: golden bytes, round trips, and damage.

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::{chain, recorded::Place, sample};

fn full() -> RecordedEvent {
    let mut event = sample::note(7);
    event.scope = Scope {
        run_id: Some(sample::run_id("run-1")),
        task_id: Some(sample::task_id("call_1")),
        delegation_id: Some(sample::delegation_id(0x0d)),
    };
    event.causation_id = Some(EventId::from_uuid(Uuid::from_u128(0x0c)));
    event.correlation_id = Some("trace-1".to_owned());
    event.content = Json::parse("{\"n\":9007199254740993}").unwrap();
    event.metadata = Json::parse("{\"a\":\"\\u0000\"}").unwrap();
    let place = Place {
        position: Position::new(258),
        stream: sample::thread("t"),
        seq: Seq::new(3),
        recorded_at: sample::time(),
    };
    let mut recorded = RecordedEvent::new(event, place);
    recorded.hash = chain::event_hash(&chain::START, &encode(&recorded).unwrap());
    recorded
}

fn with_hash(event: &RecordedEvent) -> Vec<u8> {
    let mut bytes = encode(event).unwrap();
    bytes.extend_from_slice(&event.hash);
    bytes
}

/// The bytes of a version 1 record, for ever: a change here is a new record version.
#[test]
fn golden_record_of_version_1() {
    let golden = concat!(
        "010000000093",                                                     // prefix
        "00000000000001020000000000000003",                                 // position, seq
        "00087468726561642f74",                                             // stream
        "00000000000000000000000000000007",                                 // event_id
        "00046e6f74650001",                                                 // event_type, schema_version
        "000574726163651f",                                                 // category, optional ids
        "000572756e2d31000663616c6c5f31",                                   // run_id, task_id
        "0000000000000000000000000000000d",                                 // delegation_id
        "0000000000000000000000000000000c",                                 // causation_id
        "000774726163652d31000764656661756c74",                             // correlation_id, owner
        "00000000695735a500000006",                                         // created_at
        "00000000695735a500000006",                                         // recorded_at
        "000000167b226e223a393030373139393235343734303939337d",             // content
        "7b2261223a225c7530303030227d",                                     // metadata
        "46051c923a9d59c9b3da3cf0569eb5f2b909bcb123ffb5c2135d1fa4999b8dca", // hash
    );
    assert_eq!(hex::encode(with_hash(&full())), golden);
    assert_eq!(decode(&hex::decode(golden).unwrap()).unwrap(), full());
}

#[test]
fn a_later_version_is_refused_by_its_number() {
    let mut bytes = with_hash(&full());
    bytes[0] = 2;
    let error = decode(&bytes).unwrap_err().to_string();
    assert_eq!(error, "record version 2 is not known; this program reads up to version 1");
    bytes[0] = VERSION;
    bytes[1] = 1;
    assert_eq!(decode(&bytes).unwrap_err().to_string(), "record flags 0x01 are not known");
    bytes[1] = 0;
    // An optional id that this version does not know.
    assert_eq!(bytes[63], OPTIONAL_IDS);
    bytes[63] |= 1 << 5;
    assert_eq!(decode(&bytes).unwrap_err().to_string(), "record flags 0x3f are not known");
}

#[test]
fn a_cut_header_is_an_error_at_every_length() {
    let bytes = with_hash(&full());
    let body = bytes.len() - HASH_BYTES - full().content.get().len() - full().metadata.get().len();
    for length in 0..body + HASH_BYTES {
        assert!(decode(&bytes[..length]).is_err(), "cut to {length} of {} bytes", bytes.len());
    }
}

#[test]
fn a_text_that_is_too_long_for_its_field_is_named() {
    let mut event = full();
    event.event_type = "x".repeat(70_000);
    let expected = EncodeError { field: "event_type", bytes: 70_000 };
    assert_eq!(encode(&event).unwrap_err(), expected);
}

#[test]
fn json_form_keeps_everything() {
    let text = serde_json::to_string(&full()).unwrap();
    assert!(text.contains("\"content\":{\"n\":9007199254740993},\"metadata\":{\"a\":\"\\u0000\"}"), "{text}");
    assert!(text.contains("\"stream\":\"thread/t\",\"seq\":3,"), "{text}");
    assert_eq!(serde_json::from_str::<RecordedEvent>(&text).unwrap(), full());
    let mut plain = full();
    (plain.scope, plain.causation_id, plain.correlation_id) = (Scope::default(), None, None);
    let text = serde_json::to_string(&plain).unwrap();
    assert!(!text.contains("null"), "{text}");
    assert_eq!(serde_json::from_str::<RecordedEvent>(&text).unwrap(), plain);
}

prop_compose! {
    fn any_event()(
        numbers in any::<(u64, u64, u16, u128)>(),
        texts in ("\\PC{1,32}", "\\PC{1,16}", "\\PC{1,128}", "\\PC{1,64}"),
        ids in any::<(Option<u128>, Option<u128>)>(),
        run in prop::option::of("[A-Za-z0-9_-]{1,64}"),
        task in prop::option::of("\\PC{1,256}"),
        content in "[\u{0}-\u{ff}\u{2028}\u{2029}\u{1F600}]{0,40}",
        times in (any::<i32>(), 0..1_000_000_000),
        hash: [u8; 32],
    ) -> RecordedEvent {
        let mut event = full();
        let (position, seq, schema_version, event_id) = numbers;
        (event.position, event.seq) = (Position::new(position), Seq::new(seq));
        event.schema_version = schema_version;
        event.event_id = EventId::from_uuid(Uuid::from_u128(event_id));
        (event.event_type, event.category) = (texts.0, texts.1);
        event.owner = UserId::new(texts.2).unwrap();
        event.correlation_id = Some(texts.3).filter(|_| ids.0.is_some());
        event.causation_id = ids.0.map(Uuid::from_u128).map(EventId::from_uuid);
        event.scope = Scope {
            run_id: run.map(|text| RunId::new(text).unwrap()),
            task_id: task.map(|text| ToolCallId::new(text).unwrap()),
            delegation_id: ids.1.map(sample::delegation_id),
        };
        event.created_at = jiff::Timestamp::new(i64::from(times.0), times.1).unwrap();
        event.content = Json::from_serialize(&content).unwrap();
        event.hash = hash;
        event
    }
}

proptest! {
    #[test]
    fn a_record_is_read_back(event in any_event()) {
        prop_assert_eq!(decode(&with_hash(&event)).unwrap(), event);
    }

    #[test]
    fn damage_is_an_error_or_another_event_but_no_panic(at in 0_usize..300, byte: u8) {
        let mut bytes = with_hash(&full());
        let at = at % bytes.len();
        let is_changed = bytes[at] != byte;
        bytes[at] = byte;
        if let Ok(event) = decode(&bytes) {
            prop_assert_eq!(event != full(), is_changed);
        }
    }
}
