//! Every key that is stored in the index, one file per kind. This is the schema on disk, for ever.
//!
//! | kind | keyspace | key | value | changes |
//! |------|----------|-----|-------|---------|
//! | 3 stream        | `index` | stream name                   | last seq, its hash, its position               | with each append |
//! | 5 task event    | `tasks` | (stream, run, task) hash, seq | record                                         | never |
//! | 6 idempotency   | `index` | (stream, idempotency key) hash | keyed digest of content, first position, count | never |
//! | 8 meta          | `index` | what: 2 is the checkpoint     | position, chain, address behind its frame      | with each load |
//! | 9 stream place  | `index` | stream hash, seq              | address and length of the record               | never |
//! | 10 run place    | `index` | (stream, run) hash, seq       | address and length, delegation id or nil, tag of type | never |
//! | 11 commit place | `index` | last position                 | address of the frame, first position, chain of the log, time | never |
//!
//! Everything in the index follows from the frames of the record (`segment::frame`), and is made of
//! them again when it is lost. Before version 3 the engine had the record as well; those kinds are
//! read once, when such a log is opened (`migrate`):
//!
//! | kind | keyspace | key | value |
//! |------|----------|-----|-------|
//! | 1 event        | `events` | position                  | record |
//! | 2 stream entry | `index`  | stream hash, seq          | position |
//! | 4 run entry    | `index`  | (stream, run) hash, seq   | position, delegation id or nil, type or its tag |
//! | 7 commit       | `index`  | last position             | first position, chain of the log, time |
//! | 8 meta         | `index`  | what: 1 is the format version | u32 |
//!
//! The first byte of each key is its kind; numbers are big endian, so that byte order is their
//! order. Names of any length become BLAKE3 hashes, cut to 16 bytes (32 for idempotency keys), so
//! that keys have a fixed width and no table of numbers is needed; records carry the full names
//! and reads compare them. Only kind 3 keeps its name in the key, for lists of streams in order.
//!
//! Of a thread's own words only its id is here in plain. An event type is a tag that its run's key
//! makes, a digest is made with the thread's key, and records are sealed (`codec::sealed`). Events
//! of the first format have types by name and plain digests; both are read.
//!
//! A replay is one sequential read of the segments. A task's events are stored a second time beside
//! each other, since a page of one task is the read that happens most: 0.08 ms instead of 0.4 ms
//! warm, 0.4 instead of 6 ms cold.

use crate::{
    codec::{DecodeError, bytes::Reader},
    engine::{Access, Keyspace},
    position::{Position, Seq},
    stream_id::StreamId,
};

pub(crate) mod commit;
pub(crate) mod commit_place;
pub(crate) mod event;
pub(crate) mod idempotency;
pub(crate) mod location;
pub(crate) mod meta;
pub(crate) mod run_entry;
pub(crate) mod run_place;
pub(crate) mod stream;
pub(crate) mod stream_entry;
pub(crate) mod stream_place;
pub(crate) mod task_event;

/// First byte of every key. Stored: never renumber, never reuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum KeyKind {
    Event = 1,
    #[expect(dead_code, reason = "of logs before version 3; nothing reads it")]
    StreamEntry = 2,
    Stream = 3,
    #[expect(dead_code, reason = "of logs before version 3; nothing reads it")]
    RunEntry = 4,
    TaskEvent = 5,
    Idempotency = 6,
    Commit = 7,
    Meta = 8,
    StreamPlace = 9,
    RunPlace = 10,
    CommitPlace = 11,
}

/// Follows each name that is hashed.
const BETWEEN_NAMES: u8 = 0xff;

/// Records in position order.
pub(crate) const EVENTS: Keyspace = Keyspace { name: "events", access: Access::Scanned };
/// Records of tasks, beside each other.
pub(crate) const TASKS: Keyspace = Keyspace { name: "tasks", access: Access::Scanned };
/// Everything small.
pub(crate) const INDEX: Keyspace = Keyspace { name: "index", access: Access::Pointed };
/// The keyspaces of the index.
pub(crate) const INDEX_KEYSPACES: [Keyspace; 2] = [TASKS, INDEX];
/// The keyspaces of a log of version 1 or 2.
pub(crate) const KEYSPACES: [Keyspace; 3] = [EVENTS, TASKS, INDEX];

/// A key from its kind and its parts.
fn key(kind: KeyKind, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + parts.iter().map(|part| part.len()).sum::<usize>());
    key.push(kind as u8);
    for part in parts {
        key.extend_from_slice(part);
    }
    key
}

/// What follows the kind byte of a key.
fn after_kind(key: &[u8], kind: KeyKind) -> Result<Reader<'_>, DecodeError> {
    let mut reader = Reader::new(key);
    match reader.u8("key kind")? {
        found if found == kind as u8 => Ok(reader),
        found => Err(DecodeError::KeyKind { found, expected: kind as u8 }),
    }
}

/// Hashes a stream's name and names within it into a fixed width, at most 32 bytes. The byte
/// between names occurs in no UTF-8 text.
fn name_hash<const N: usize>(stream: &StreamId, names: &[&str]) -> [u8; N] {
    let (front, id) = stream.parts();
    let mut bytes = Vec::with_capacity(160);
    bytes.extend_from_slice(front.as_bytes());
    bytes.extend_from_slice(id.as_bytes());
    bytes.push(BETWEEN_NAMES);
    for name in names {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(BETWEEN_NAMES);
    }
    let mut hash = [0; N];
    for (to, from) in hash.iter_mut().zip(blake3::hash(&bytes).as_bytes()) {
        *to = *from;
    }
    hash
}

fn position_bytes(position: Position) -> [u8; 8] {
    position.get().to_be_bytes()
}

fn seq_bytes(seq: Seq) -> [u8; 8] {
    seq.get().to_be_bytes()
}

#[cfg(test)]
mod tests;
