//! One tool among the last calls, whatever it was given.

use std::collections::{BTreeSet, VecDeque};

use super::{LoopLimits, Repeat, Repeated, ToolFrequency};
use crate::{guard::Finding, message::ToolCall, tool_spec::TASK_TOOL};

/// The tools that were called last, oldest first, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Frequency {
    names: VecDeque<String>,
    /// Tools that the model was warned of, until they are called less.
    warned: BTreeSet<String>,
}

impl Frequency {
    /// Takes the calls of one reply, up to the first that is too many. A call without a name is no
    /// tool's. Delegations have a limit of their own, which may be as high as this one: they count
    /// here only where an override says so.
    pub(super) fn judge(&mut self, calls: &[ToolCall], limits: &LoopLimits) -> Finding<Repeat> {
        for call in calls.iter().filter(|call| limits.counts(&call.name)) {
            match self.take(&call.name, limits) {
                Finding::Fine => {}
                found @ (Finding::Warn(_) | Finding::Stop(_)) => return found,
            }
        }
        Finding::Fine
    }

    fn take(&mut self, name: &str, limits: &LoopLimits) -> Finding<Repeat> {
        self.names.push_back(name.to_owned());
        while self.names.len() > limits.calls_looked_back_at() {
            self.names.pop_front();
        }
        let names = &self.names;
        let count_of = |name: &str| names.iter().filter(|known| *known == name).count();
        self.warned.retain(|warned| is_at_least(count_of(warned), limits.frequency(warned).warn));
        let count = count_of(name);
        let ToolFrequency { warn, hard_limit } = limits.frequency(name);
        let repeat = || Repeat {
            what: Repeated::Tool(name.to_owned()),
            count: u32::try_from(count).unwrap_or(u32::MAX),
            hard_limit,
        };
        if is_at_least(count, hard_limit) {
            return Finding::Stop(repeat());
        }
        if is_at_least(count, warn) && self.warned.insert(name.to_owned()) {
            return Finding::Warn(repeat());
        }
        Finding::Fine
    }
}

fn is_at_least(count: usize, limit: u32) -> bool {
    usize::try_from(limit).is_ok_and(|limit| count >= limit)
}

impl LoopLimits {
    fn counts(&self, name: &str) -> bool {
        !name.is_empty() && (name != TASK_TOOL || self.tool_freq_overrides.contains_key(name))
    }

    /// What one tool is held to.
    fn frequency(&self, name: &str) -> ToolFrequency {
        let usual = ToolFrequency { warn: self.tool_freq_warn, hard_limit: self.tool_freq_hard_limit };
        self.tool_freq_overrides.get(name).copied().unwrap_or(usual)
    }

    /// Enough calls for every limit to be reached.
    fn calls_looked_back_at(&self) -> usize {
        let overrides = self.tool_freq_overrides.values().map(|frequency| frequency.hard_limit);
        let most = overrides.fold(self.window_size.max(self.tool_freq_hard_limit), u32::max);
        usize::try_from(most).unwrap_or(usize::MAX)
    }
}
