//! Ways in which a store can be broken so that nobody is told.

use crate::segment::frame::{self, Frame, Header};

/// What is wrong with a store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Defect {
    /// A commit is answered before it is durable: the last one is lost in a crash.
    AcknowledgesBeforeWriting,
    /// Some commits are answered and never written.
    ForgetsCommits,
    /// Idempotency keys are not written.
    ForgetsIdempotencyKeys,
    /// A commit in the middle of which the process died is there by half, and passes for whole.
    KeepsHalves,
    /// A destroyed key is there again after a crash.
    UndoesErasures,
    /// The last event of some commits is changed.
    ChangesEvents,
}

impl Defect {
    pub(super) const ALL: [Self; 6] = [
        Self::AcknowledgesBeforeWriting,
        Self::ForgetsCommits,
        Self::ForgetsIdempotencyKeys,
        Self::KeepsHalves,
        Self::UndoesErasures,
        Self::ChangesEvents,
    ];

    /// Changes a frame that is about to be written. Its checksum is right afterwards.
    pub(super) fn change(self, address: u64, bytes: &mut Vec<u8>, is_half: bool) {
        let header = Header::decode(bytes, address).unwrap();
        let count = header.count;
        match self {
            Self::ForgetsCommits if count.is_multiple_of(3) => bytes.fill(0),
            Self::ForgetsIdempotencyKeys if header.keys > 0 => *bytes = rewritten(&header, bytes, count),
            Self::KeepsHalves if is_half => *bytes = rewritten(&header, bytes, count.div_ceil(2)),
            Self::ChangesEvents if count.is_multiple_of(2) => {
                let frame = Frame { header, bytes };
                let (offset, record) = frame.records().last().unwrap();
                let last = offset as usize + record.len() - 1;
                bytes[last] ^= 1;
                frame::reseal(bytes);
            }
            Self::AcknowledgesBeforeWriting
            | Self::ForgetsCommits
            | Self::ForgetsIdempotencyKeys
            | Self::KeepsHalves
            | Self::UndoesErasures
            | Self::ChangesEvents => {}
        }
    }
}

/// A frame with the first events of another, and without its keys.
fn rewritten(header: &Header, bytes: &[u8], count: u32) -> Vec<u8> {
    let mut out = Vec::new();
    frame::begin(&mut out);
    let frame = Frame { header: *header, bytes };
    frame.records().take(count as usize).for_each(|(_, record)| frame::put_record(&mut out, record));
    let mut commit = header.commit();
    commit.last = crate::Position::new(commit.first.get() + u64::from(count) - 1);
    assert!(frame::finish(&mut out, header.address, &commit, 0));
    out
}
