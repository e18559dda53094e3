//! Events in order, durable, for ever.
//!
//! This crate records what happened and gives it back: appends with expectations, reads in order,
//! subscriptions, and the proofs that nothing was lost or changed. It must not know what an event
//! means: content and metadata are JSON text to it, and event types are names.
//!
//! One thread writes. It takes what is queued, gives each event its position and seq, commits all
//! of it with one sync, and then answers, so that whoever has an answer has it for good and many
//! writers share the cost of one sync. A failed write poisons the log until the process restarts.
//!
//! What a thread says is sealed with keys that can be destroyed (`keyring`, `seal`), so that a thread
//! is forgotten by forgetting its keys, and the chains go on proving the rest.
//!
//! What is on disk is fixed in `segment` (frames and their files), `codec` (records), `keys` (the
//! index), `keyring` (the key file), `blob` (large payloads) and `format` (the version of all).

pub mod append;
pub mod backup;
pub mod bench;
mod blob;
pub mod chain;
mod codec;
mod condition;
#[cfg(test)]
mod conformance;
mod durable;
pub mod engine;
mod erase;
pub mod export;
mod foreign_json;
mod format;
mod index;
mod integrity;
mod json;
mod keyring;
mod keys;
mod lock;
mod log;
mod migrate;
mod new_event;
mod open;
mod options;
mod plan;
mod position;
mod read;
mod recorded;
mod redact;
pub mod repair;
mod replay;
#[cfg(test)]
mod sample;
mod seal;
mod sealer;
mod secret;
mod segment;
#[cfg(test)]
mod simulation;
mod space;
pub mod store;
mod stream_id;
mod subscription;
mod verify;
mod watermark;
mod writer;

pub use append::{
    Append, AppendError, Appended, Expected, IdempotencyKey, InvalidAppend, InvalidIdempotencyKey,
};
pub use blob::{
    BlobDigest, BlobError, BlobFault, BlobInspection, BlobReader, BlobRef, BlobScope, BlobStats, BlobWriter,
    InvalidDigest, Kept, OverMax,
};
pub use codec::{
    DecodeError, EncodeError,
    fact::{ReadFact, Said},
    typed::{Encoded, FOREIGN_SCHEMA_VERSION, UndecodableEvent, decode, encode},
};
pub use condition::{CommitStats, Health, Histogram, Stats};
pub use erase::{EraseError, run_hash, thread_hash};
pub use foreign_json::{NESTING_MAX, TooDeep, with_whole_characters};
pub use integrity::is_damage;
pub use json::Json;
pub use keyring::{KeyState, Keyring, ListedKey, MasterKey, Rewrapped};
pub use lock::Holder;
pub use log::EventLog;
pub use new_event::{NewEvent, Scope};
pub use open::{Inspection, OpenError, free_bytes, inspect, list_keys, peek_registry, rewrap_keys};
pub use options::{Clock, OnMigrating, Options};
pub use position::{Position, Seq};
pub use read::{EventFilter, PAGE_BYTES_MAX, ReadError, RunQuery};
pub use recorded::RecordedEvent;
pub use replay::{Replay, ReplayError};
pub use seal::{ErasedRecord, Opened, Seal};
pub use sealer::{Sealer, Unsealed};
pub use secret::{InvalidKey, SecretKey};
pub use store::{Kept as KeptReading, StreamSummary};
pub use stream_id::{InvalidStreamId, StreamId};
pub use subscription::{SubscribeFrom, Subscription};
pub use verify::{
    BrokenLink, Damage, DamageKind, ExportedHead, Fault, Index, Progress, Report, VerifyError, VerifyRequest,
    verify_folder, verify_stream,
};
