//! Finds an agent that goes round in circles (chain facts §1.6), in two ways: the same set of
//! calls again and again among the last replies, and one tool again and again whatever it is given.
//!
//! Only the calls of this run or delegation are looked at, and of them only those that were
//! carried out. A reply without calls repeats nothing.

mod frequency;
mod hash;
mod window;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::hash::call_set_hash;
use self::{frequency::Frequency, window::Window};
use crate::{guard::Finding, message::ToolCall};

/// When an agent goes round in circles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopLimits {
    /// The same calls this often within the window: the model is warned.
    pub warn_threshold: u32,
    /// The same calls this often within the window: the work is stopped.
    pub hard_limit: u32,
    /// Replies with calls that are looked back at.
    pub window_size: u32,
    /// One tool this often: the model is warned.
    pub tool_freq_warn: u32,
    /// One tool this often: the work is stopped.
    pub tool_freq_hard_limit: u32,
    /// Tools that may be called more or less often than others, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tool_freq_overrides: BTreeMap<String, ToolFrequency>,
}

/// How often one tool may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFrequency {
    /// This often: the model is warned.
    pub warn: u32,
    /// This often: the work is stopped.
    pub hard_limit: u32,
}

impl Default for LoopLimits {
    fn default() -> Self {
        Self {
            warn_threshold: 3,
            hard_limit: 5,
            window_size: 20,
            tool_freq_warn: 30,
            tool_freq_hard_limit: 50,
            tool_freq_overrides: BTreeMap::new(),
        }
    }
}

/// What repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repeated {
    /// One set of calls.
    Calls,
    /// One tool, by its name.
    Tool(String),
}

/// Something that was done too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    /// What.
    pub what: Repeated,
    /// How often, this time included.
    pub count: u32,
    /// How often ends the work.
    pub hard_limit: u32,
}

/// What an agent has called so far, as far back as the limits look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoopWatch {
    window: Window,
    frequency: Frequency,
}

impl LoopWatch {
    /// Takes the calls of one reply. A warning about the set of calls leaves the tools uncounted
    /// for this reply.
    pub fn judge(&mut self, calls: &[ToolCall], limits: &LoopLimits) -> Finding<Repeat> {
        if calls.is_empty() {
            return Finding::Fine;
        }
        match self.window.judge(call_set_hash(calls), limits) {
            Finding::Fine => self.frequency.judge(calls, limits),
            found @ (Finding::Warn(_) | Finding::Stop(_)) => found,
        }
    }
}

#[cfg(test)]
mod tests;
