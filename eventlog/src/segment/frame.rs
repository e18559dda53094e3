//! One commit as bytes.
//!
//! ```text
//! header    8 "RMTFRAME" · u16 version · u16 zero · u32 length of the payload · u64 address
//!           u64 first position · u32 events · u32 idempotency keys · i64 seconds, i32 nanoseconds
//!           of the commit · 32 chain of the log after it · u64 checksum
//! payload   events: u32 length · record, hash included
//!           keys: 32 hash of the key · 32 digest · u64 first position · u32 events · u8 keyed
//! ```
//!
//! The checksum (XXH3) covers everything else: it finds what was torn or changed by accident. What
//! was changed on purpose is found by the chains. The address is the frame's own, so that one that
//! was left or copied elsewhere is no frame there. Integers are big endian.

use jiff::Timestamp;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::Flaw;
use crate::{
    chain::{self, Hash},
    codec::{
        DecodeError,
        bytes::{Reader, put_timestamp},
        record::HASH_BYTES,
    },
    keys,
    position::Position,
    store::{Commit, CommitGroup, KeyUse},
};

pub(crate) const MAGIC: &[u8; 8] = b"RMTFRAME";
/// The version that this program writes, and the last that it reads.
const VERSION: u16 = 1;
pub(crate) const HEADER_BYTES: usize = 92;
/// The checksum, at the end of the header.
const CHECKSUM_BYTES: usize = 8;
const KEY_BYTES: usize = 32 + 32 + 8 + 4 + 1;

/// What a frame says before its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) payload_bytes: u32,
    pub(crate) address: u64,
    pub(crate) first: Position,
    pub(crate) count: u32,
    pub(crate) keys: u32,
    pub(crate) committed_at: Timestamp,
    pub(crate) chain: Hash,
    checksum: u64,
}

/// An idempotency key as a frame holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameKey {
    pub(crate) hash: [u8; 32],
    pub(crate) key_use: KeyUse,
}

/// Begins a frame: room for the header.
pub(crate) fn begin(out: &mut Vec<u8>) {
    out.clear();
    out.resize(HEADER_BYTES, 0);
}

/// Adds a record.
pub(crate) fn put_record(out: &mut Vec<u8>, record: &[u8]) {
    // A record is far below 4 GiB: its parts have limits.
    out.extend_from_slice(&u32::try_from(record.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(record);
}

/// Adds an idempotency key, behind all records.
pub(crate) fn put_key(out: &mut Vec<u8>, key: &FrameKey) {
    out.extend_from_slice(&key.hash);
    out.extend_from_slice(&key.key_use.digest);
    out.extend_from_slice(&key.key_use.first.get().to_be_bytes());
    out.extend_from_slice(&key.key_use.count.to_be_bytes());
    out.push(u8::from(key.key_use.is_keyed));
}

/// Everything of a group but its place.
pub(crate) fn encode(out: &mut Vec<u8>, group: &CommitGroup) {
    begin(out);
    for stored in &group.events {
        put_record(out, &stored.record);
    }
    for (stream, key, key_use) in &group.keys {
        put_key(out, &FrameKey { hash: keys::idempotency::hash(stream, key), key_use: *key_use });
    }
}

/// Fills in the header, when the address is known. False if the frame is too large to be one.
#[must_use]
pub(crate) fn finish(out: &mut [u8], address: u64, commit: &Commit, keys: usize) -> bool {
    let Some((header, payload)) = out.split_at_mut_checked(HEADER_BYTES) else { return false };
    let (Ok(payload_bytes), Ok(keys)) = (u32::try_from(payload.len()), u32::try_from(keys)) else {
        return false;
    };
    let count = commit.last.get() + 1 - commit.first.get();
    let Ok(count) = u32::try_from(count) else { return false };
    let mut fields = Vec::with_capacity(HEADER_BYTES);
    fields.extend_from_slice(MAGIC);
    fields.extend_from_slice(&VERSION.to_be_bytes());
    fields.extend_from_slice(&[0; 2]);
    fields.extend_from_slice(&payload_bytes.to_be_bytes());
    fields.extend_from_slice(&address.to_be_bytes());
    fields.extend_from_slice(&commit.first.get().to_be_bytes());
    fields.extend_from_slice(&count.to_be_bytes());
    fields.extend_from_slice(&keys.to_be_bytes());
    put_timestamp(&mut fields, commit.committed_at);
    fields.extend_from_slice(&commit.chain);
    let checksum = checksum(&fields, payload);
    fields.extend_from_slice(&checksum.to_be_bytes());
    header.copy_from_slice(&fields);
    true
}

fn checksum(fields: &[u8], payload: &[u8]) -> u64 {
    xxh3_64_with_seed(payload, xxh3_64(fields))
}

/// Makes the checksum of a frame right again after it was changed.
#[cfg(test)]
pub(crate) fn reseal(frame: &mut [u8]) {
    let (fields, payload) = (&frame[..HEADER_BYTES - CHECKSUM_BYTES], &frame[HEADER_BYTES..]);
    let checksum = checksum(fields, payload).to_be_bytes();
    frame[HEADER_BYTES - CHECKSUM_BYTES..HEADER_BYTES].copy_from_slice(&checksum);
}

impl Header {
    /// Reads the header of a frame at this address. The checksum is not looked at.
    pub(crate) fn decode(bytes: &[u8], address: u64) -> Result<Self, Flaw> {
        let mut reader = Reader::new(bytes);
        if reader.array("magic").ok().as_ref() != Some(MAGIC) {
            return Err(Flaw::NoFrame);
        }
        let version = reader.u16("version").map_err(|_| Flaw::NoFrame)?;
        let header = Self::fields(&mut reader).map_err(|_| Flaw::NoFrame)?;
        if header.address != address {
            return Err(Flaw::NoFrame);
        }
        match version {
            VERSION => {}
            // A header that was cut off by a crash.
            0 => return Err(Flaw::NoFrame),
            later => return Err(Flaw::Version(later)),
        }
        Ok(header)
    }

    fn fields(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.u16("zero")?;
        Ok(Self {
            payload_bytes: reader.u32("payload")?,
            address: reader.u64("address")?,
            first: Position::new(reader.u64("position")?),
            count: reader.u32("count")?,
            keys: reader.u32("keys")?,
            committed_at: reader.timestamp("committed_at")?,
            chain: reader.array("chain")?,
            checksum: reader.u64("checksum")?,
        })
    }

    /// Header and payload.
    pub(crate) fn frame_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.payload_bytes)
    }

    /// The commit that the frame is.
    pub(crate) fn commit(&self) -> Commit {
        let last = self.first.get() + u64::from(self.count.saturating_sub(1));
        Commit {
            first: self.first,
            last: Position::new(last),
            chain: self.chain,
            committed_at: self.committed_at,
        }
    }
}

/// A whole frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub(crate) header: Header,
    /// Header and payload.
    pub(crate) bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Checks that the bytes are a whole frame. They are as many as its header says.
    pub(crate) fn check(header: Header, bytes: &'a [u8]) -> Result<Self, Flaw> {
        let (fields, payload) = bytes.split_at_checked(HEADER_BYTES).ok_or(Flaw::Beyond)?;
        let fields = fields.get(..HEADER_BYTES - CHECKSUM_BYTES).unwrap_or_default();
        if checksum(fields, payload) != header.checksum {
            return Err(Flaw::Checksum);
        }
        let frame = Self { header, bytes };
        frame.check_shape().ok_or(Flaw::Shape)?;
        Ok(frame)
    }

    fn check_shape(&self) -> Option<()> {
        let mut records = self.records();
        let counted = records.by_ref().count();
        let keys = self.bytes.get(records.at..)?;
        let is_whole = self.header.count > 0
            && counted == self.header.count as usize
            && keys.len() == self.header.keys as usize * KEY_BYTES;
        is_whole.then_some(())
    }

    /// Its records, each with the place of its first byte within the frame.
    pub(crate) fn records(&self) -> Records<'a> {
        Records { bytes: self.bytes, at: HEADER_BYTES, left: self.header.count }
    }

    /// The chain of the log after it, given the one before it. None if a record has no hash.
    pub(crate) fn fold_chain(&self, before: Hash) -> Option<Hash> {
        self.records().try_fold(before, |chain, (_, record)| {
            record.last_chunk::<HASH_BYTES>().map(|hash| chain::log_chain(&chain, hash))
        })
    }

    /// Its idempotency keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = FrameKey> + use<'a> {
        let mut records = self.records();
        records.by_ref().for_each(drop);
        let keys = self.bytes.get(records.at..).unwrap_or_default();
        keys.chunks_exact(KEY_BYTES).filter_map(|bytes| decode_key(bytes).ok())
    }
}

fn decode_key(bytes: &[u8]) -> Result<FrameKey, DecodeError> {
    let mut reader = Reader::new(bytes);
    let hash = reader.array("key")?;
    let (digest, first, count) = (reader.array("digest")?, reader.u64("position")?, reader.u32("count")?);
    let is_keyed = reader.u8("keyed")? != 0;
    Ok(FrameKey { hash, key_use: KeyUse { digest, is_keyed, first: Position::new(first), count } })
}

/// Goes over the records of a frame.
pub(crate) struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    left: u32,
}

impl<'a> Iterator for Records<'a> {
    type Item = (u32, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let rest = self.bytes.get(self.at..)?;
        let (length, rest) = rest.split_first_chunk()?;
        let length = u32::from_be_bytes(*length) as usize;
        let record = rest.get(..length)?;
        let offset = self.at + size_of::<u32>();
        (self.at, self.left) = (offset + length, self.left - 1);
        Some((u32::try_from(offset).ok()?, record))
    }
}
