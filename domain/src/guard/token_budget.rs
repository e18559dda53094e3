//! The token budget of one run or delegation (chain facts §1.5).
//!
//! Counted are the tokens that providers reported with the replies of this run or delegation, and
//! for a lead those that its delegations brought back with their results. What a provider did not
//! report is unknown, is never estimated, and does not count. Input and output are summed here; a
//! provider's own total is not looked at. A reply counts whether or not the provider named it: each
//! is recorded once.

use crate::{definition::TokenBudget, guard::Finding, usage::Usage};

/// What was used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenCount {
    input: u64,
    output: u64,
    is_warned: bool,
}

/// What a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// Input and output together.
    Total,
    /// Input alone.
    Input,
    /// Output alone.
    Output,
}

/// How much of the tightest limit is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// Which limit.
    pub dimension: Dimension,
    /// Tokens that were used.
    pub used: u64,
    /// Tokens that are allowed.
    pub budget: u64,
}

impl Dimension {
    /// The name in notes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

impl Spent {
    /// The used share in whole percent, rounded down.
    pub fn percent(&self) -> u64 {
        self.used.saturating_mul(100) / self.budget.max(1)
    }

    #[expect(clippy::cast_precision_loss, reason = "a share of token counts needs no more than 53 bits")]
    fn share(&self) -> f64 {
        self.used as f64 / self.budget.max(1) as f64
    }
}

impl TokenCount {
    /// Adds what a provider reported.
    pub fn add(&mut self, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.input = self.input.saturating_add(usage.input_tokens);
            self.output = self.output.saturating_add(usage.output_tokens);
        }
    }

    /// Holds the count against the budget. The model is warned once.
    pub fn judge(&mut self, budget: &TokenBudget) -> Finding<Spent> {
        let spent = self.spent(budget);
        if spent.used > 0 && spent.share() >= budget.hard_stop_threshold {
            return Finding::Stop(spent);
        }
        if spent.used > 0 && spent.share() >= budget.warn_threshold && !self.is_warned {
            self.is_warned = true;
            return Finding::Warn(spent);
        }
        Finding::Fine
    }

    /// The dimension with the largest share; of equal ones the first.
    fn spent(&self, budget: &TokenBudget) -> Spent {
        let used = self.input.saturating_add(self.output);
        let total = Spent { dimension: Dimension::Total, used, budget: budget.max_tokens };
        let of = |dimension, used, limit: Option<u64>| limit.map(|budget| Spent { dimension, used, budget });
        let single = [
            of(Dimension::Input, self.input, budget.max_input_tokens),
            of(Dimension::Output, self.output, budget.max_output_tokens),
        ];
        let larger = |most: Spent, next: Spent| if next.share() > most.share() { next } else { most };
        single.into_iter().flatten().fold(total, larger)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: TokenBudget = TokenBudget { enabled: true, max_tokens: 1_000, ..TokenBudget::BARE };

    /// The replies' input and output tokens, and what the last one gives.
    #[track_caller]
    fn check(budget: TokenBudget, replies: &[(u64, u64)], expected: Finding<Spent>) {
        let mut count = TokenCount::default();
        let mut last = Finding::Fine;
        for (input, output) in replies {
            count.add(Some(Usage::new(*input, *output)));
            last = count.judge(&budget);
        }
        assert_eq!(last, expected, "{replies:?}");
    }

    const fn spent(dimension: Dimension, used: u64, budget: u64) -> Spent {
        Spent { dimension, used, budget }
    }

    // Chain facts (f) line 54, second half: this run's own 799 tokens are nothing to speak of. That
    // earlier runs do not count is in the tests of the chain.
    #[test]
    fn below_the_warning_nothing_is_said() {
        check(BUDGET, &[(799, 0)], Finding::Fine);
        check(BUDGET, &[], Finding::Fine);
    }

    // Chain facts (f) lines 55 and 56.
    #[test]
    fn the_warning_comes_once_and_the_stop_at_the_limit() {
        let at = |used| spent(Dimension::Total, used, 1_000);
        check(BUDGET, &[(400, 400)], Finding::Warn(at(800)));
        check(BUDGET, &[(400, 400), (50, 0)], Finding::Fine);
        check(BUDGET, &[(400, 400), (150, 50)], Finding::Stop(at(1_000)));
        check(BUDGET, &[(400, 400), (150, 50), (1, 0)], Finding::Stop(at(1_001)));
        check(BUDGET, &[(2_000, 0)], Finding::Stop(at(2_000)));
        assert_eq!(at(800).percent(), 80);
    }

    // Chain facts (f) line 61.
    #[test]
    fn the_largest_share_decides_and_the_earlier_of_equal_ones() {
        let budget = TokenBudget { max_input_tokens: Some(100), max_output_tokens: Some(200), ..BUDGET };
        check(budget, &[(120, 0)], Finding::Stop(spent(Dimension::Input, 120, 100)));
        check(budget, &[(90, 190)], Finding::Warn(spent(Dimension::Output, 190, 200)));
        check(budget, &[(100, 200)], Finding::Stop(spent(Dimension::Input, 100, 100)));
        let equal = TokenBudget { max_input_tokens: Some(1_000), ..BUDGET };
        check(equal, &[(1_000, 0)], Finding::Stop(spent(Dimension::Total, 1_000, 1_000)));
    }

    // Chain facts (f) line 62: usage that becomes known later adds only what is new. Ours arrives as
    // reports of its own, each of which counts once.
    #[test]
    fn each_report_counts_once_and_an_unknown_one_not_at_all() {
        let mut count = TokenCount::default();
        count.add(Some(Usage::new(100, 0)));
        count.add(None);
        count.add(Some(Usage::new(600, 0)));
        assert_eq!(count.spent(&BUDGET), spent(Dimension::Total, 700, 1_000));
    }
}
