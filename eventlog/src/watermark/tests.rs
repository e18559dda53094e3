//! The head file: what is noted is read back, and damage is noticed.

use proptest::prelude::*;

use super::*;
use crate::position::Position;

fn head(position: u64) -> Head {
    Head { position: Position::new(position), chain: [position as u8; 32] }
}

fn noted(path: &Path) -> Noted {
    Watermark::open(path).unwrap().1
}

#[test]
fn the_last_note_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("head");
    let (mut watermark, before) = Watermark::open(&path).unwrap();
    assert_eq!(before, Noted::Nothing);
    for position in 1..=5 {
        watermark.note(head(position)).unwrap();
        assert_eq!(noted(&path), Noted::Head(head(position)));
    }
    drop(watermark);
    let (mut watermark, before) = Watermark::open(&path).unwrap();
    assert_eq!(before, Noted::Head(head(5)));
    watermark.note(head(6)).unwrap();
    assert_eq!(noted(&path), Noted::Head(head(6)));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 1_024);
}

#[test]
fn a_torn_write_leaves_the_note_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("head");
    let (mut watermark, _) = Watermark::open(&path).unwrap();
    watermark.note(head(1)).unwrap();
    watermark.note(head(2)).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[SLOT_BYTES + 20] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(noted(&path), Noted::Head(head(1)));
    // The torn slot is the next to be written.
    Watermark::open(&path).unwrap().0.note(head(3)).unwrap();
    assert_eq!(noted(&path), Noted::Head(head(3)));
    bytes[20] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(noted(&path), Noted::Damaged);
}

/// A file is made whole, so that one that is empty, or shorter than it was, has lost what it said.
#[test]
fn a_new_file_says_nothing_and_one_that_was_cut_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("head");
    assert_eq!(noted(&path), Noted::Nothing);
    assert_eq!(noted(&path), Noted::Nothing);
    for bytes in [0, 1, SLOT_BYTES, EMPTY.len() - 1] {
        std::fs::write(&path, &EMPTY[..bytes]).unwrap();
        assert_eq!((noted(&path), Watermark::peek(&path).unwrap()), (Noted::Damaged, Noted::Damaged));
    }
}

// A refusal must not destroy what it refused over: the next look has to refuse, too.
#[test]
fn a_damaged_file_stays_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("head");
    std::fs::write(&path, "PWNED").unwrap();
    for _ in 0..2 {
        let (_, noted) = Watermark::open(&path).unwrap();
        assert_eq!(noted, Noted::Damaged);
        assert_eq!(std::fs::read(&path).unwrap(), b"PWNED");
    }
}

proptest! {
    #[test]
    fn any_head_is_read_back_and_no_changed_byte_passes(
        position: u64, chain: [u8; 32], at in 0..80_usize, bit in 0..8_u32,
    ) {
        let head = Head { position: Position::new(position), chain };
        let mut slot = encode_slot(head);
        prop_assert_eq!(read_slots(&slot).0, Noted::Head(head));
        slot[at] ^= 1 << bit;
        prop_assert_eq!(read_slots(&slot).0, Noted::Damaged);
    }
}
