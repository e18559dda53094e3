//! Every key: its bytes are those of the table, byte order is the intended order, and what can be
//! read back is read back.

use domain::ids::{RunId, ThreadId, ToolCallId};
use jiff::Timestamp;
use proptest::prelude::*;
use uuid::Uuid;

use super::{task_event::Task, *};
use crate::{
    append::IdempotencyKey,
    index::Checkpoint,
    sample,
    store::{Commit, Head, KeyUse, Tail},
    stream_id::StreamId,
};

#[track_caller]
fn check(key: &[u8], hex: &str) {
    assert_eq!(hex::encode(key), hex.replace(' ', ""));
}

/// The bytes of one key of each kind. A change here is a new format version.
#[test]
fn golden_keys() {
    let stream = sample::thread("t");
    let (run_id, task_id) = (sample::run_id("r"), sample::task_id("call_1"));
    let task = Task { stream: &stream, run_id: &run_id, task_id: &task_id };
    let idempotency_key = IdempotencyKey::new("k").unwrap();
    check(&event::encode(Position::new(258)), "01 0000000000000102");
    check(&stream::encode(&stream), "03 7468726561642f74");
    let (run, task) = (run_entry::hash(&stream, &run_id), task_event::hash(task));
    check(&task_event::encode(task, Seq::new(3)), "05 c647a115c50bfd6a68fd05af20c652fb 0000000000000003");
    check(
        &idempotency::encode_hashed(idempotency::hash(&stream, &idempotency_key)),
        "06 c82dbd8585dea04bdb53e35c3c3b39c3af4a11715d93f8da8c7429542830a4bd",
    );
    check(&commit::encode(Position::new(258)), "07 0000000000000102");
    check(&meta::format_version(), "08 01");
    check(&meta::checkpoint(), "08 02");
    check(
        &stream_place::encode(stream_entry::hash(&stream), Seq::new(3)),
        "09 26a125d194b3eb6a2cda621a41b0133d 0000000000000003",
    );
    check(&run_place::encode(run, Seq::new(3)), "0a 60c77db696625a978c6d6581217c6a7b 0000000000000003");
    check(&commit_place::encode(Position::new(258)), "0b 0000000000000102");
}

#[test]
fn a_key_of_another_kind_is_not_read() {
    assert!(commit::decode(&event::encode(Position::new(1))).is_err());
    assert!(stream::decode(&commit::encode(Position::new(1))).is_err());
    assert!(commit::decode(&[]).is_err());
}

#[test]
fn names_do_not_run_into_each_other() {
    let hash = |stream: &str, names: &[&str]| -> [u8; 16] { name_hash(&sample::thread(stream), names) };
    assert_ne!(hash("t", &["ab", "c"]), hash("t", &["a", "bc"]));
    assert_ne!(hash("t", &["a", ""]), hash("t", &["a"]));
    assert_ne!(hash("ta", &["b"]), hash("t", &["ab"]));
}

fn thread_id() -> impl Strategy<Value = ThreadId> {
    "[A-Za-z0-9_-]{1,64}".prop_map(|text| ThreadId::new(text).unwrap())
}

fn stream_id() -> impl Strategy<Value = StreamId> {
    prop_oneof![Just(StreamId::Registry), thread_id().prop_map(StreamId::Thread)]
}

fn run_id() -> impl Strategy<Value = RunId> {
    "[A-Za-z0-9_-]{1,64}".prop_map(|text| RunId::new(text).unwrap())
}

fn task_id() -> impl Strategy<Value = ToolCallId> {
    "\\PC{1,40}".prop_map(|text| ToolCallId::new(text).unwrap())
}

fn timestamp() -> impl Strategy<Value = Timestamp> {
    (-1_000_000_000_i64..10_000_000_000, 0..1_000_000_000)
        .prop_map(|(seconds, nanoseconds)| Timestamp::new(seconds, nanoseconds).unwrap())
}

proptest! {
    #[test]
    fn positions_sort_by_number(one: u64, other: u64) {
        let (one, other) = (Position::new(one), Position::new(other));
        prop_assert_eq!(event::encode(one).cmp(&event::encode(other)), one.cmp(&other));
        prop_assert_eq!(commit::encode(one).cmp(&commit::encode(other)), one.cmp(&other));
        prop_assert_eq!(commit::decode(&commit::encode(one)).unwrap(), one);
        prop_assert_eq!(commit_place::encode(one).cmp(&commit_place::encode(other)), one.cmp(&other));
        prop_assert_eq!(commit_place::decode(&commit_place::encode(one)).unwrap(), one);
    }

    #[test]
    fn seqs_sort_by_number_behind_their_prefix(
        stream in stream_id(), run_id in run_id(), task_id in task_id(), one: u64, other: u64,
    ) {
        let (one, other) = (Seq::new(one), Seq::new(other));
        let task = Task { stream: &stream, run_id: &run_id, task_id: &task_id };
        let (run, task) = (run_entry::hash(&stream, &run_id), task_event::hash(task));
        let keys = |seq| [
            stream_place::encode(stream_entry::hash(&stream), seq),
            run_place::encode(run, seq),
            task_event::encode(task, seq),
        ];
        let prefixes =
            [
            stream_place::prefix(stream_entry::hash(&stream)),
            run_place::prefix(run),
            task_event::prefix(task),
        ];
        for ((left, right), prefix) in keys(one).into_iter().zip(keys(other)).zip(prefixes) {
            prop_assert_eq!(left.cmp(&right), one.cmp(&other));
            prop_assert!(left.starts_with(&prefix) && left.len() == prefix.len() + 8);
        }
    }

    #[test]
    fn streams_sort_by_name_and_are_read_back(one in stream_id(), other in stream_id()) {
        let by_name = one.to_string().cmp(&other.to_string());
        prop_assert_eq!(stream::encode(&one).cmp(&stream::encode(&other)), by_name);
        prop_assert_eq!(stream::decode(&stream::encode(&one)).unwrap(), one);
    }

    #[test]
    fn values_are_read_back(
        seq: u64, first: u64, last: u64, count: u32, hash: [u8; 32], at in timestamp(),
        delegation in prop::option::of(1_u128..), event_type in "\\PC{1,32}", is_keyed: bool, tag: [u8; 8],
        address: u64,
    ) {
        let location = location::Location { address, length: count };
        let (first, last) = (Position::new(first), Position::new(last));
        let tail = Tail { seq: Seq::new(seq), hash, position: last };
        prop_assert_eq!(stream::decode_value(&stream::encode_value(&tail)).unwrap(), tail);
        let commit = Commit { first, last, chain: hash, committed_at: at };
        let value = commit_place::encode_value(&commit, address);
        prop_assert_eq!(commit_place::decode_value(last, &value).unwrap(), (commit, address));
        // Of old logs, without the address.
        prop_assert_eq!(commit::decode_value(last, &value[8..]).unwrap(), commit);
        let key_use = KeyUse { digest: hash, is_keyed, first, count };
        prop_assert_eq!(idempotency::decode_value(&idempotency::encode_value(&key_use)).unwrap(), key_use);
        for event_type in [run_entry::TypeRef::Plain(&event_type), run_entry::TypeRef::Tag(tag)] {
            let entry = run_place::RunPlace {
                location,
                delegation_id: delegation.map(|id| domain::ids::DelegationId::from_uuid(Uuid::from_u128(id))),
                event_type,
            };
            let value = run_place::encode_value(&entry);
            prop_assert_eq!(run_place::decode_value(&value).unwrap(), entry);
        }
        prop_assert_eq!(stream_place::decode_value(&stream_place::encode_value(location)).unwrap(), location);
        let checkpoint = Checkpoint { head: Head { position: first, chain: hash }, end: address };
        let value = meta::encode_checkpoint(&checkpoint);
        prop_assert_eq!(meta::decode_checkpoint(&value).unwrap(), checkpoint);
    }

    #[test]
    fn damaged_values_are_errors(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let is_length = |length: usize| bytes.len() == length;
        prop_assert_eq!(stream::decode_value(&bytes).is_ok(), is_length(48));
        let is_keyed = is_length(45) && bytes.last() == Some(&1);
        prop_assert_eq!(idempotency::decode_value(&bytes).is_ok(), is_length(44) || is_keyed);
        prop_assert_eq!(stream_place::decode_value(&bytes).is_ok(), is_length(12));
        prop_assert_eq!(meta::decode_checkpoint(&bytes).is_ok(), is_length(48));
        prop_assert!(commit::decode_value(Position::ZERO, &bytes).is_err() || is_length(52));
    }
}
