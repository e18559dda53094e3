//! Records: golden bytes, round trips, and damage.

use proptest::prelude::*;
use uuid::Uuid;

use domain::ids::{EventId, RunId, ToolCallId, UserId};

use super::*;
use crate::{
    chain,
    json::Json,
    keys,
    new_event::Scope,
    recorded::Place,
    sample,
    seal::{self, Opened},
    secret::SecretKey,
};

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

/// The keys of thread `t` and of run `run-1` on it.
fn keyring() -> Keyring {
    let stream = sample::thread("t");
    let thread = ScopeId(keys::stream_entry::hash(&stream));
    let run = ScopeId(keys::run_entry::hash(&stream, &sample::run_id("run-1")));
    let keyring = Keyring::in_memory().unwrap();
    keyring.insert(thread, thread, SecretKey::new([1; 32]));
    keyring.insert(thread, run, SecretKey::new([2; 32]));
    keyring
}

/// Seals the event as the log would, with the key of its run or thread.
fn sealed(mut event: RecordedEvent) -> RecordedEvent {
    let scope_key = SecretKey::new([if event.scope.run_id.is_some() { 2 } else { 1 }; 32]);
    let nonce = [9; 24];
    let key = seal::body_key(&scope_key, &nonce);
    let type_tag = seal::type_tag(&scope_key, &event.event_type);
    event.seal = Seal::Opened(Opened { nonce, type_tag, key });
    event.hash = chain::event_hash(&chain::START, &encode(&event).unwrap());
    event
}

fn read(bytes: &[u8]) -> Result<RecordedEvent, DecodeError> {
    decode(bytes, &keyring())
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
    assert_eq!(read(&hex::decode(golden).unwrap()).unwrap(), full());
}

/// The same of version 2.
#[test]
fn golden_record_of_version_2() {
    let golden = concat!(
        "02010000007d",                                     // prefix
        "00000000000001020000000000000003",                 // position, seq
        "00087468726561642f74",                             // stream
        "00000000000000000000000000000007",                 // event_id
        "000107",                                           // schema_version, which follow
        "cde642c2be4248649d625bd35d4de8c0",                 // run
        "234e32bcfede08c13a7fe7d58d231155",                 // task
        "0000000000000000000000000000000d",                 // delegation_id
        "04e55823a8d12235",                                 // tag of the event type
        "00000000695735a500000006",                         // created_at
        "00000000695735a500000006",                         // recorded_at
        "090909090909090909090909090909090909090909090909", // nonce
        "c76da422dd766088201d08833c8580a38426439ae501ce2891a3e884c8baf6d7",
        "8e8f445f05e43cb766af616e95ce1af33b3e75466117bba8a0919076a308e0ff",
        "653f24de321cabe6f5768910459f1b928f1e2a67408f2bb9251cbb0ebe4f0a5f",
        "dba51dac628d2b",                                                   // sealed
        "2ef284dd7409e58dbb4a7941991b6ffb",                                 // tag
        "eeba69c68c0044595b2009f1c14586880650fb6329bec9b17a123d7d4d781d1c", // hash
    );
    let event = sealed(full());
    assert_eq!(hex::encode(with_hash(&event)), golden);
    assert_eq!(read(&hex::decode(golden).unwrap()).unwrap(), event);
}

#[test]
fn a_sealed_record_shows_no_text_but_the_id_of_its_thread() {
    let bytes = with_hash(&sealed(full()));
    for text in ["note", "trace", "run-1", "call_1", "default", "9007199254740993", "u0000"] {
        assert!(!bytes.windows(text.len()).any(|window| window == text.as_bytes()), "{text}");
    }
    let outline = outline(&bytes).unwrap();
    assert_eq!((outline.position, outline.seq), (Position::new(258), Seq::new(3)));
    let plain = super::outline(&with_hash(&full())).unwrap();
    assert_eq!((outline.run, outline.task, outline.stream), (plain.run, plain.task, plain.stream));
}

#[test]
fn an_erased_record_keeps_its_bytes_and_loses_its_texts() {
    let (event, keyring) = (sealed(full()), keyring());
    let bytes = with_hash(&event);
    keyring.destroy_thread(ScopeId(keys::stream_entry::hash(&event.stream)), true).unwrap();
    let erased = decode(&bytes, &keyring).unwrap();
    assert!(erased.is_erased());
    assert_eq!(with_hash(&erased), bytes);
    let kept = RecordedEvent {
        event_type: String::new(),
        category: String::new(),
        scope: Scope { delegation_id: event.scope.delegation_id, ..Scope::default() },
        causation_id: None,
        correlation_id: None,
        content: Json::null(),
        metadata: Json::empty_object(),
        seal: erased.seal.clone(),
        ..event
    };
    assert_eq!(erased, kept);
    let text = serde_json::to_string(&erased).unwrap();
    assert_eq!(serde_json::from_str::<RecordedEvent>(&text).unwrap(), erased);
}

#[test]
fn a_body_that_was_moved_or_has_no_key_is_not_opened() {
    let (one, mut other) = (sealed(full()), full());
    other.seq = Seq::new(4);
    let (one, other) = (with_hash(&one), with_hash(&sealed(other)));
    let body = PREFIX_BYTES + u32::from_be_bytes(one[2..6].try_into().unwrap()) as usize;
    let moved = [&other[..body], &one[body..]].concat();
    let error = read(&moved).unwrap_err().to_string();
    assert_eq!(error, "the sealed body of event 4 of stream thread/t cannot be opened: it was changed");
    let error = decode(&one, &Keyring::in_memory().unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("the key of event 3 of stream thread/t is lost"), "{error}");
}

#[test]
fn a_later_version_is_refused_by_its_number() {
    let mut bytes = with_hash(&full());
    bytes[0] = 3;
    let error = read(&bytes).unwrap_err().to_string();
    assert_eq!(error, "record version 3 is not known; this program reads up to version 2");
    bytes[0] = SEALED_VERSION;
    assert_eq!(read(&bytes).unwrap_err().to_string(), "record flags 0x00 are not known");
    bytes[0] = PLAIN_VERSION;
    bytes[1] = 1;
    assert_eq!(read(&bytes).unwrap_err().to_string(), "record flags 0x01 are not known");
    bytes[1] = 0;
    // An optional id that this version does not know.
    assert_eq!(bytes[63], 0x1f);
    bytes[63] |= 1 << 5;
    assert_eq!(read(&bytes).unwrap_err().to_string(), "record flags 0x3f are not known");
}

#[test]
fn a_cut_header_is_an_error_at_every_length() {
    let bytes = with_hash(&full());
    let body = bytes.len() - HASH_BYTES - full().content.get().len() - full().metadata.get().len();
    for length in 0..body + HASH_BYTES {
        assert!(read(&bytes[..length]).is_err(), "cut to {length} of {} bytes", bytes.len());
    }
    let bytes = with_hash(&sealed(full()));
    for length in 0..bytes.len() {
        assert!(read(&bytes[..length]).is_err(), "cut to {length} of {} sealed bytes", bytes.len());
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
    let text = serde_json::to_string(&sealed(full())).unwrap();
    assert_eq!(serde_json::from_str::<RecordedEvent>(&text).unwrap(), sealed(full()));
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
        run in prop::option::of(prop_oneof![Just("run-1".to_owned()), "[A-Za-z0-9_-]{1,64}"]),
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
        prop_assert_eq!(&read(&with_hash(&event)).unwrap(), &event);
        let in_its_run = event.scope.run_id.as_ref().is_none_or(|run_id| run_id.as_str() == "run-1");
        let event = sealed(event);
        let opened = read(&with_hash(&event));
        prop_assert_eq!(opened.ok(), in_its_run.then_some(event));
    }

    #[test]
    fn damage_of_a_sealed_record_is_an_error(at in any::<prop::sample::Index>(), flip in 1_u8..) {
        let mut bytes = with_hash(&sealed(full()));
        let hashed = bytes.len() - HASH_BYTES;
        bytes[at.index(hashed)] ^= flip;
        prop_assert!(read(&bytes).is_err());
    }

    #[test]
    fn damage_is_an_error_or_another_event_but_no_panic(at in 0_usize..300, byte: u8) {
        let mut bytes = with_hash(&full());
        let at = at % bytes.len();
        let is_changed = bytes[at] != byte;
        bytes[at] = byte;
        if let Ok(event) = read(&bytes) {
            prop_assert_eq!(event != full(), is_changed);
        }
    }
}
