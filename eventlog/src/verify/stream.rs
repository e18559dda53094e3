//! Checking events against their own hashes. Pure: it works on what anybody has read or exported.

use crate::{
    chain::{self, Hash},
    codec::{EncodeError, record},
    position::{Position, Seq},
    recorded::RecordedEvent,
};

/// The first event of a stream that does not follow from the one before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the chain of stream {stream} breaks at seq {seq}, position {position}")]
pub struct BrokenLink {
    /// The stream.
    pub stream: String,
    /// The seq that was expected there.
    pub seq: Seq,
    /// The position of the event that was found.
    pub position: Position,
    /// What is wrong with it.
    #[source]
    pub fault: Fault,
}

/// What is wrong with an event in a chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Events are missing before it, or it stands there twice.
    #[error("its seq is {found}")]
    OutOfOrder {
        /// The seq that it has.
        found: Seq,
    },
    /// It or one before it is not what was recorded.
    #[error("its hash does not match")]
    HashDiffers,
    /// It could never have been recorded.
    #[error("it could never have been recorded")]
    Unrecordable(#[source] EncodeError),
}

/// Follows neighbouring events of one stream from the hash before the first of them, which is
/// `chain::START` for seq 1, and gives the hash of the last.
pub fn verify_stream<'a>(
    before: Hash,
    events: impl IntoIterator<Item = &'a RecordedEvent>,
) -> Result<Hash, BrokenLink> {
    let mut hash = before;
    let mut expected = None;
    for event in events {
        let seq = expected.unwrap_or(event.seq);
        hash = verify_event(&hash, seq, event).map_err(|fault| BrokenLink {
            stream: event.stream.to_string(),
            seq,
            position: event.position,
            fault,
        })?;
        expected = Some(seq.next());
    }
    Ok(hash)
}

fn verify_event(before: &Hash, seq: Seq, event: &RecordedEvent) -> Result<Hash, Fault> {
    if event.seq != seq {
        return Err(Fault::OutOfOrder { found: event.seq });
    }
    let bytes = record::encode(event).map_err(Fault::Unrecordable)?;
    if chain::event_hash(before, &bytes) != event.hash {
        return Err(Fault::HashDiffers);
    }
    Ok(event.hash)
}
