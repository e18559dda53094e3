//! The two integrity chains, as pure functions.
//!
//! - The chain of a stream: each event's hash covers the hash before it in the stream and the
//!   event's own stored bytes. The first event follows [`START`].
//! - The chain of the log: a fold over the hashes of all events in position order, so that it does
//!   not depend on which appends shared a commit. Each commit stores its value after the commit's
//!   last event.

/// A BLAKE3 hash.
pub type Hash = [u8; 32];

/// What stands before the first event of a stream and of the log.
pub const START: Hash = [0; 32];

/// The hash of an event from the hash before it in the stream and its record without the hash.
pub fn event_hash(previous: &Hash, record: &[u8]) -> Hash {
    *blake3::Hasher::new().update(previous).update(record).finalize().as_bytes()
}

/// The chain of the log after one more event.
pub fn log_chain(previous: &Hash, event: &Hash) -> Hash {
    let mut both = [0; 64];
    for (to, from) in both.iter_mut().zip(previous.iter().chain(event)) {
        *to = *from;
    }
    *blake3::hash(&both).as_bytes()
}
