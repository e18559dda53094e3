//! Sealing: what a body looks like to whoever has no key.
//!
//! Each body has a key of its own, made from its scope's key and a nonce that is used once:
//! `BLAKE3(scope's key, purpose · nonce)`. It is sealed with ChaCha20-Poly1305 under that key and
//! bound to what stands before it, so that it cannot be moved. Whoever is given an event may be
//! given its body's key with it, and can then check the event's hash, which covers the sealed
//! bytes; that key opens nothing else.

use std::{fmt, sync::Arc};

use aws_lc_rs::aead::{self, Aad, CHACHA20_POLY1305, LessSafeKey, UnboundKey};
use serde::{Deserialize, Serialize};

use crate::{
    keyring::Nonce,
    secret::{KEY_BYTES, SecretKey},
};

/// Added to a sealed text to tell whether it was changed.
pub(crate) const TAG_BYTES: usize = 16;

/// Stands for an event type in an index, for whoever has the scope's key.
pub(crate) type TypeTag = [u8; 8];

/// What a key is made for. Stored: never renumber.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(crate) enum Purpose {
    /// The body of an event.
    Body = 1,
    /// A tag that stands for an event type.
    TypeTag = 2,
    /// The digest of what was appended under an idempotency key.
    Digest = 3,
    /// A row of a view.
    Row = 4,
    /// Another key, in the key file.
    Key = 5,
    /// What opens a blob, in its header.
    Blob = 6,
    /// The name of a blob's file.
    BlobName = 7,
    /// A chunk of a blob.
    BlobChunk = 8,
}

/// How an event was stored, which is what its hash can be checked with.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Wire", into = "Wire")]
pub enum Seal {
    /// In plain: the registry, and threads of the first format.
    #[default]
    None,
    /// Sealed, and opened for the reader.
    Opened(Opened),
    /// Sealed with a key that was destroyed.
    Erased(ErasedRecord),
}

/// What sealed an event that could be opened. It opens that event's body and no other.
#[derive(Clone, PartialEq, Eq)]
pub struct Opened {
    pub(crate) nonce: Nonce,
    pub(crate) type_tag: TypeTag,
    pub(crate) key: SecretKey,
}

/// The stored bytes of an event that nobody can open, without its hash.
#[derive(Clone, PartialEq, Eq)]
pub struct ErasedRecord(pub(crate) Arc<[u8]>);

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Opened(_) => "Opened",
            Self::Erased(_) => "Erased",
        })
    }
}

/// What a key is usually made of fits in here: a purpose, and a nonce or a name.
const DERIVED_BYTES: usize = 64;

/// Makes a key for one purpose and one nonce, or one name.
pub(crate) fn derive(scope_key: &SecretKey, purpose: Purpose, of: &[u8]) -> [u8; KEY_BYTES] {
    let mut input = [0; DERIVED_BYTES];
    if let Some((first, rest)) = input.split_first_mut()
        && let Some(to) = rest.get_mut(..of.len())
    {
        *first = purpose as u8;
        to.copy_from_slice(of);
        let input = input.get(..=of.len()).unwrap_or_default();
        return *blake3::keyed_hash(scope_key.bytes(), input).as_bytes();
    }
    let input = [&[purpose as u8], of].concat();
    *blake3::keyed_hash(scope_key.bytes(), &input).as_bytes()
}

/// The key of one body.
pub(crate) fn body_key(scope_key: &SecretKey, nonce: &Nonce) -> SecretKey {
    SecretKey::new(derive(scope_key, Purpose::Body, nonce))
}

/// The tag of an event type.
pub(crate) fn type_tag(scope_key: &SecretKey, event_type: &str) -> TypeTag {
    let [a, b, c, d, e, f, g, h, ..] = derive(scope_key, Purpose::TypeTag, event_type.as_bytes());
    [a, b, c, d, e, f, g, h]
}

/// Seals bytes where they stand, bound to `associated`, and gives the tag that belongs behind them.
/// The key must be used once.
pub(crate) fn seal(key: &SecretKey, associated: &[u8], bytes: &mut [u8]) -> [u8; TAG_BYTES] {
    #[expect(clippy::expect_used, reason = "the cipher takes 256 GiB, and a body has at most a few MiB")]
    let tag = cipher(key)
        .seal_in_place_separate_tag(nonce(), Aad::from(associated), bytes)
        .expect("a body fits into the cipher's counter");
    let mut copied = [0; TAG_BYTES];
    for (to, from) in copied.iter_mut().zip(tag.as_ref()) {
        *to = *from;
    }
    copied
}

/// Opens what [`seal`] sealed, with its tag behind it. None if it was changed, moved, or sealed
/// with another key.
pub(crate) fn open(key: &SecretKey, associated: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    open_into(key, associated, sealed, &mut plain)?;
    Some(plain)
}

/// The same, into memory that is used again: what was opened is its beginning.
pub(crate) fn open_into<'a>(
    key: &SecretKey,
    associated: &[u8],
    sealed: &[u8],
    memory: &'a mut Vec<u8>,
) -> Option<&'a [u8]> {
    let (sealed, tag) = sealed.split_last_chunk::<TAG_BYTES>()?;
    if memory.len() < sealed.len() {
        memory.resize(sealed.len(), 0);
    }
    let plain = memory.get_mut(..sealed.len())?;
    cipher(key).open_separate_gather(nonce(), Aad::from(associated), sealed, tag, plain).ok()?;
    Some(plain)
}

/// Every key seals one text, so the cipher's own nonce may stand still.
fn nonce() -> aead::Nonce {
    aead::Nonce::assume_unique_for_key([0; aead::NONCE_LEN])
}

fn cipher(key: &SecretKey) -> LessSafeKey {
    #[expect(clippy::expect_used, reason = "the cipher takes any 32 bytes")]
    let key = UnboundKey::new(&CHACHA20_POLY1305, key.bytes()).expect("a key has the cipher's length");
    LessSafeKey::new(key)
}

/// The seal in an event's JSON: absent, or hexadecimal digits.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Wire {
    None(()),
    Opened { opened_with: HexBytes },
    Erased { erased: HexBytes },
}

struct HexBytes(Vec<u8>);

impl Serialize for HexBytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        hex::encode(&self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for HexBytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        hex::decode(String::deserialize(deserializer)?).map(Self).map_err(serde::de::Error::custom)
    }
}

impl From<Seal> for Wire {
    fn from(seal: Seal) -> Self {
        match seal {
            Seal::None => Self::None(()),
            Seal::Opened(Opened { nonce, type_tag, key }) => {
                Self::Opened { opened_with: HexBytes([&nonce[..], &type_tag, key.bytes()].concat()) }
            }
            Seal::Erased(ErasedRecord(record)) => Self::Erased { erased: HexBytes(record.to_vec()) },
        }
    }
}

/// A seal of another shape opens nothing: the event's hash then does not match.
impl From<Wire> for Seal {
    fn from(wire: Wire) -> Self {
        match wire {
            Wire::None(()) => Self::None,
            Wire::Opened { opened_with: HexBytes(bytes) } => {
                let mut reader = crate::codec::bytes::Reader::new(&bytes);
                match (reader.array("nonce"), reader.array("tag"), reader.array("key")) {
                    (Ok(nonce), Ok(type_tag), Ok(key)) => {
                        Self::Opened(Opened { nonce, type_tag, key: SecretKey::new(key) })
                    }
                    _ => Self::None,
                }
            }
            Wire::Erased { erased: HexBytes(record) } => Self::Erased(ErasedRecord(record.into())),
        }
    }
}

#[cfg(test)]
mod tests;
