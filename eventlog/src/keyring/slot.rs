//! One slot of the key file.
//!
//! ```text
//! u8 state (1 live, 2 destroyed) · 7 zero · 16 thread · 16 scope · 24 nonce · 32 key, wrapped
//! 16 tag · 16 BLAKE3 of the bytes before, cut
//! ```
//!
//! 128 bytes, and slots begin at multiples of that: a slot never crosses a sector, so a write of it
//! happens or does not. The key is sealed like a body (`seal`), under a key that the master key and
//! a random nonce make, and bound to its thread and scope. A destroyed slot keeps whose key it was, so that the
//! thread stays refused, and has zeros where the key was.

use zeroize::Zeroizing;

use super::ScopeId;
use crate::{
    codec::bytes::Reader,
    seal::{self, Purpose},
    secret::SecretKey,
};

/// The length of a slot.
pub(crate) const SLOT_BYTES: usize = 128;
const CHECKED_BYTES: usize = SLOT_BYTES - 16;
const LIVE: u8 = 1;
const DESTROYED: u8 = 2;

/// A slot's bytes, checked.
pub(crate) struct Slot([u8; SLOT_BYTES]);

/// What is found where a slot should be.
pub(super) enum Read {
    /// Nothing was ever written there.
    Empty,
    /// A whole slot.
    Slot(Slot),
    /// Something else.
    Damaged,
}

impl Slot {
    /// Wraps a key.
    pub(super) fn wrap(
        master: &SecretKey,
        thread: ScopeId,
        scope: ScopeId,
        key: &SecretKey,
    ) -> std::io::Result<Self> {
        let mut nonce = [0; 24];
        crate::secret::fill_random(&mut nonce)?;
        let mut wrapped = Zeroizing::new(*key.bytes());
        let tag =
            seal::seal(&wrapping_key(master, &nonce), &associated(thread, scope), wrapped.as_mut_slice());
        Ok(Self::of(&[&[LIVE, 0, 0, 0, 0, 0, 0, 0], &thread.0, &scope.0, &nonce, &*wrapped, &tag]))
    }

    /// What stands where a key was.
    pub(super) fn destroyed(thread: ScopeId, scope: ScopeId) -> Self {
        Self::of(&[&[DESTROYED, 0, 0, 0, 0, 0, 0, 0], &thread.0, &scope.0])
    }

    /// Joins the parts, fills up with zeros, and adds the checksum.
    fn of(parts: &[&[u8]]) -> Self {
        let mut bytes = [0; SLOT_BYTES];
        for (to, from) in bytes.iter_mut().zip(parts.iter().copied().flatten()) {
            *to = *from;
        }
        let checksum = checksum(&bytes);
        for (to, from) in bytes.iter_mut().skip(CHECKED_BYTES).zip(checksum) {
            *to = from;
        }
        Self(bytes)
    }

    /// Looks at what is on disk.
    pub(super) fn read(bytes: [u8; SLOT_BYTES]) -> Read {
        if bytes.iter().all(|byte| *byte == 0) {
            return Read::Empty;
        }
        let is_known = matches!(bytes.first(), Some(&(LIVE | DESTROYED)));
        if is_known && bytes.ends_with(&checksum(&bytes)) { Read::Slot(Self(bytes)) } else { Read::Damaged }
    }

    pub(super) fn bytes(&self) -> &[u8; SLOT_BYTES] {
        &self.0
    }

    pub(super) fn is_destroyed(&self) -> bool {
        self.0.first() == Some(&DESTROYED)
    }

    /// The thread that the key belongs to.
    pub(super) fn thread(&self) -> ScopeId {
        ScopeId(self.field(8))
    }

    /// What the key seals.
    pub(super) fn scope(&self) -> ScopeId {
        ScopeId(self.field(24))
    }

    /// The key; none if the master key is not the one that wrapped it, or the slot has no key.
    pub(super) fn unwrap(&self, master: &SecretKey) -> Option<SecretKey> {
        if self.is_destroyed() {
            return None;
        }
        let (nonce, wrapped) = (self.field::<24>(40), self.field::<48>(64));
        let associated = associated(self.thread(), self.scope());
        let key = seal::open(&wrapping_key(master, &nonce), &associated, &wrapped).map(Zeroizing::new)?;
        SecretKey::parse(&key).ok()
    }

    /// The slot is longer than each field's end.
    fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut reader = Reader::new(self.0.get(at..).unwrap_or_default());
        reader.array("slot").unwrap_or([0; N])
    }
}

fn wrapping_key(master: &SecretKey, nonce: &[u8; 24]) -> SecretKey {
    SecretKey::new(seal::derive(master, Purpose::Key, nonce))
}

fn associated(thread: ScopeId, scope: ScopeId) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (to, from) in bytes.iter_mut().zip(thread.0.iter().chain(&scope.0)) {
        *to = *from;
    }
    bytes
}

/// Of everything but the checksum itself.
fn checksum(bytes: &[u8; SLOT_BYTES]) -> [u8; 16] {
    let mut checksum = [0; 16];
    let mut hasher = blake3::Hasher::new();
    hasher.update(bytes.get(..CHECKED_BYTES).unwrap_or_default());
    hasher.finalize_xof().fill(&mut checksum);
    checksum
}
