use domain::{
    ids::ToolCallId,
    receipt::{Receipt, ReceiptId, ReceiptOutcome},
};
use proptest::prelude::*;

use super::*;

fn packed(pack: impl FnOnce(&mut Packer<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    pack(&mut Packer(&mut bytes));
    bytes
}

/// It comes back whole, leaves what follows, and no beginning of it is taken for it.
#[track_caller]
fn check<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    unpack: impl Fn(&mut Unpacker<'_>) -> Option<T>,
    expected: &T,
) {
    let followed = [bytes, b"more"].concat();
    let mut unpacker = Unpacker(&followed);
    assert_eq!(unpack(&mut unpacker).as_ref(), Some(expected));
    assert_eq!(unpacker.0, b"more");
    for length in 0..bytes.len() {
        assert_eq!(unpack(&mut Unpacker(&bytes[..length])), None, "{length} bytes of {bytes:?}");
    }
}

fn receipts() -> impl Strategy<Value = Receipt> {
    let digest = prop_oneof!["[0-9a-f]{64}", "[0-9A-Fg]{64}", ".{0,70}"];
    let outcome = prop_oneof![
        Just(ReceiptOutcome::Ok),
        Just(ReceiptOutcome::Error),
        Just(ReceiptOutcome::Denied),
        Just(ReceiptOutcome::Unknown)
    ];
    let texts = (".{1,8}", ".{0,8}", ".{0,8}", digest.clone(), digest);
    let numbers = (any::<u32>(), any::<u64>(), any::<u64>(), any::<i32>(), 0..1_000_000_000_i32);
    (texts, numbers, outcome).prop_map(
        |(texts, (number, output_bytes, duration_ms, second, nano), outcome)| {
            let (task_id, tool_name, tool_call_id, args_sha256, output_sha256) = texts;
            Receipt {
                task_id: ToolCallId::new(task_id).unwrap(),
                id: ReceiptId::numbered(number),
                tool_name,
                tool_call_id,
                args_sha256,
                output_sha256,
                output_bytes,
                outcome,
                started_at: Timestamp::new(second.into(), nano).unwrap(),
                duration_ms,
            }
        },
    )
}

proptest! {
    #[test]
    fn receipts_come_back(receipt in receipts()) {
        check(&packed(|packer| packer.receipt(&receipt)), |unpacker| unpacker.receipt(), &receipt);
    }

    #[test]
    fn numbers_and_texts_come_back(number in any::<u64>(), text in ".{0,200}") {
        check(&packed(|packer| packer.number(number)), |unpacker| unpacker.number(), &number);
        let unpack = |unpacker: &mut Unpacker<'_>| unpacker.text().map(str::to_owned);
        check(&packed(|packer| packer.text(&text)), unpack, &text);
    }

    #[test]
    fn any_bytes_are_something_or_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = Unpacker(&bytes).receipt();
        let _ = Unpacker(&bytes).time();
    }
}

#[test]
fn the_ends_of_their_ranges_come_back() {
    for number in [0, 1, 127, 128, 16_383, 16_384, u64::MAX] {
        check(&packed(|packer| packer.number(number)), |unpacker| unpacker.number(), &number);
    }
    for time in [Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX, Timestamp::new(-2, -7).unwrap()] {
        check(&packed(|packer| packer.time(time)), |unpacker| unpacker.time(), &time);
    }
    assert_eq!(Unpacker(&[0xff; 12]).number(), None);
    assert_eq!(Unpacker(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).number(), None);
}

#[test]
fn a_digest_takes_half_of_its_digits() {
    let digest = "0123456789abcdef".repeat(4);
    let bytes = packed(|packer| packer.digest(&digest));
    assert_eq!(bytes.len(), 33);
    check(&bytes, |unpacker| unpacker.digest(), &digest);
}
