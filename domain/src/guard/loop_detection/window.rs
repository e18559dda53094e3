//! The same set of calls among the last replies.

use std::collections::{BTreeSet, VecDeque};

use super::{LoopLimits, Repeat, Repeated};
use crate::guard::Finding;

/// The last sets of calls, oldest first, by their hash.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Window {
    hashes: VecDeque<String>,
    /// Sets that the model was warned of, as long as the window has them.
    warned: BTreeSet<String>,
}

impl Window {
    /// Takes the next set. They need not follow each other to count.
    pub(super) fn judge(&mut self, hash: String, limits: &LoopLimits) -> Finding<Repeat> {
        self.hashes.push_back(hash.clone());
        while self.hashes.len() > usize::try_from(limits.window_size).unwrap_or(usize::MAX) {
            self.hashes.pop_front();
        }
        self.warned.retain(|warned| self.hashes.contains(warned));
        let count = self.hashes.iter().filter(|known| **known == hash).count();
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let repeat = Repeat { what: Repeated::Calls, count, hard_limit: limits.hard_limit };
        if count >= limits.hard_limit {
            return Finding::Stop(repeat);
        }
        if count >= limits.warn_threshold && self.warned.insert(hash) {
            return Finding::Warn(repeat);
        }
        Finding::Fine
    }
}
