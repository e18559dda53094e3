//! Keys as they are shown: whose they are and how they are, never what they are.

use super::{ScopeId, Slot};
use crate::secret::SecretKey;

/// How a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// It opens what was sealed with it.
    Live,
    /// It was destroyed by an erasure: what was sealed with it can never be opened.
    Destroyed,
    /// Its slot is damaged: what was sealed with it cannot be opened.
    Damaged,
}

/// One key of a data folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedKey {
    /// Its place in the key file, from 1.
    pub slot: u32,
    /// The hash of the thread that it belongs to, in hexadecimal digits; none if it is damaged.
    pub thread_hash: Option<String>,
    /// The hash of the run that it seals, as erasures show it; none for what belongs to no run.
    pub run_hash: Option<String>,
    /// How it is.
    pub state: KeyState,
}

/// What a change of the master key did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rewrapped {
    /// Keys that the new master key wraps.
    pub live: u64,
    /// Destroyed ones, which stay so.
    pub destroyed: u64,
    /// Damaged slots, which stay as they are.
    pub damaged: u64,
}

impl ListedKey {
    /// A key that is in a slot; none is in a damaged one.
    pub(super) fn of(number: u32, slot: Option<&Slot>, master: &SecretKey) -> Self {
        let Some(slot) = slot else {
            return Self { slot: number, thread_hash: None, run_hash: None, state: KeyState::Damaged };
        };
        let state = match slot.is_destroyed() {
            true => KeyState::Destroyed,
            false if slot.unwrap(master).is_some() => KeyState::Live,
            false => KeyState::Damaged,
        };
        let hex = |scope: ScopeId| hex::encode(scope.0);
        let run_hash = (slot.scope() != slot.thread()).then(|| hex(slot.scope()));
        Self { slot: number, thread_hash: Some(hex(slot.thread())), run_hash, state }
    }
}
