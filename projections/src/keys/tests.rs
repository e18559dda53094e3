use std::fmt::Debug;

use domain::ids::{DelegationId, ThreadId};
use proptest::prelude::*;
use uuid::Uuid;

use super::{
    NameHash, RowKey,
    cap::CapKey,
    card::{CardHeadKey, CardOfTaskKey, CardPartsKey},
    checkpoint::{CheckpointKey, ParkedKey},
    ledger::{LedgerEntryKey, LedgerOfRunKey, LedgerOrderKey},
    message::{HiddenMessageKey, MessageOfRunKey, RunMessagesKey, VisibleMessageKey},
    receipt::{ReceiptsKey, ReceiptsOfRunKey},
    run::{RunKey, RunOrderKey},
    thread::{ThreadKey, ThreadRunKey},
    usage::{LeadModelKey, SubagentModelKey, UsageCellKey},
};

/// The parts that keys are made of, from few letters so that one name often begins another.
#[derive(Debug, Clone)]
struct Parts {
    name: String,
    run: String,
    number: u64,
    uuid: u128,
    task: String,
}

fn parts() -> impl Strategy<Value = Parts> {
    let number = prop_oneof![0..4_u64, any::<u64>()];
    let uuid = prop_oneof![0..4_u128, any::<u128>()];
    ("[-_aZ0]{1,4}", "[-_aZ0]{1,4}", number, uuid, "[0-9a-f]{1,3}")
        .prop_map(|(name, run, number, uuid, task)| Parts { name, run, number, uuid, task })
}

impl Parts {
    fn thread(&self) -> ThreadId {
        ThreadId::new(self.name.clone()).unwrap()
    }
    fn run(&self) -> NameHash {
        NameHash::from_text(&self.run)
    }
    fn delegation(&self) -> DelegationId {
        DelegationId::from_uuid(Uuid::from_u128(self.uuid))
    }
}

/// Both come back as they were, and the order of the bytes is the order of the parts.
fn check<K: RowKey + Ord + Debug>(make: impl Fn(&Parts) -> K, one: &Parts, other: &Parts) {
    let (one, other) = (make(one), make(other));
    for key in [&one, &other] {
        let bytes = key.encode();
        assert_eq!(bytes[0], K::KIND as u8);
        assert_eq!(K::decode(&bytes).as_ref(), Some(key));
        assert_eq!(K::decode(&bytes[1..]).as_ref(), None, "another kind, or nothing");
    }
    assert_eq!(one.encode().cmp(&other.encode()), one.cmp(&other), "{one:?} against {other:?}");
}

proptest! {
    #[test]
    fn keys_come_back_and_keep_their_order(a in parts(), b in parts()) {
        check(|p| CheckpointKey { view: p.name.clone() }, &a, &b);
        check(|p| ParkedKey { view: p.name.clone(), position: p.number, thread_id: p.thread() }, &a, &b);
        check(|p| ThreadKey { thread_id: p.thread() }, &a, &b);
        check(|p| ThreadRunKey { thread_id: p.thread(), run: p.run() }, &a, &b);
        check(|p| RunKey { thread_id: p.thread(), run: p.run() }, &a, &b);
        check(|p| RunOrderKey { thread_id: p.thread(), first_seq: p.number }, &a, &b);
        check(|p| LedgerEntryKey { thread_id: p.thread(), delegation_id: p.delegation() }, &a, &b);
        check(|p| LedgerOrderKey { thread_id: p.thread(), first_seq: p.number }, &a, &b);
        check(|p| LedgerOfRunKey { thread_id: p.thread(), run: p.run(), first_seq: p.number }, &a, &b);
        check(|p| CardHeadKey { thread_id: p.thread(), delegation_id: p.delegation() }, &a, &b);
        check(
            |p| CardPartsKey {
                thread_id: p.thread(),
                delegation_id: p.delegation(),
                chunk: p.number,
                run: p.run(),
            },
            &a,
            &b,
        );
        check(|p| VisibleMessageKey { thread_id: p.thread(), seq: p.number }, &a, &b);
        check(|p| HiddenMessageKey { thread_id: p.thread(), seq: p.number }, &a, &b);
        check(|p| MessageOfRunKey { thread_id: p.thread(), run: p.run(), seq: p.number }, &a, &b);
        check(|p| RunMessagesKey { thread_id: p.thread(), run: p.run() }, &a, &b);
        check(|p| LeadModelKey { thread_id: p.thread(), run: p.run() }, &a, &b);
        check(
            |p| SubagentModelKey { thread_id: p.thread(), run: p.run(), delegation_id: p.delegation() },
            &a,
            &b,
        );
        check(
            |p| UsageCellKey { thread_id: p.thread(), run: p.run(), cell: NameHash::from_text(&p.task) },
            &a,
            &b,
        );
        check(|p| CapKey { thread_id: p.thread(), seq: p.number }, &a, &b);
        check(|p| ReceiptsKey { thread_id: p.thread(), chunk: p.number, run: p.run() }, &a, &b);
        check(|p| ReceiptsOfRunKey { thread_id: p.thread(), run: p.run(), chunk: p.number }, &a, &b);
        check(
            |p| {
                CardOfTaskKey { thread_id: p.thread(), task: NameHash::from_text(&p.task) }
            },
            &a,
            &b,
        );
    }
}

#[test]
fn a_key_that_is_cut_or_too_long_is_no_key() {
    let key = RunOrderKey { thread_id: ThreadId::new("t").unwrap(), first_seq: 7 }.encode();
    for length in 0..key.len() {
        assert_eq!(RunOrderKey::decode(&key[..length]), None, "{length} bytes");
    }
    assert_eq!(RunOrderKey::decode(&[key.as_slice(), &[0]].concat()), None);
}
