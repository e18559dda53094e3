//! How often a figure was within which bound, since the log was opened.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a commit takes, in microseconds: from a fast disk to one that hangs.
pub(super) const COMMIT_MICROS: [u64; 12] =
    [250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000];
/// Events of one commit: how many writers share one sync.
pub(super) const COMMIT_EVENTS: [u64; 10] = [1, 2, 5, 10, 25, 50, 100, 250, 1_000, 5_000];

/// A distribution as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    /// Each bound with how many values were at most that, ascending.
    pub at_most: Vec<(u64, u64)>,
    /// How many values there were.
    pub count: u64,
    /// All of them together.
    pub sum: u64,
    /// The largest.
    pub max: u64,
}

/// Counts values. Written by one thread, read by any.
#[derive(Debug)]
pub(super) struct Counting<const N: usize> {
    bounds: &'static [u64; N],
    within: [AtomicU64; N],
    count: AtomicU64,
    sum: AtomicU64,
    max: AtomicU64,
}

impl<const N: usize> Counting<N> {
    pub(super) fn new(bounds: &'static [u64; N]) -> Self {
        let zero = || AtomicU64::new(0);
        Self { bounds, within: std::array::from_fn(|_| zero()), count: zero(), sum: zero(), max: zero() }
    }

    pub(super) fn count(&self, value: u64) {
        let bucket = self.bounds.iter().position(|bound| value <= *bound);
        if let Some(counter) = bucket.and_then(|bucket| self.within.get(bucket)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
        self.max.fetch_max(value, Ordering::Relaxed);
    }

    /// The last bound has no more than the count, whatever is counted meanwhile.
    pub(super) fn now(&self) -> Histogram {
        let mut below = 0;
        let at_most = self.bounds.iter().zip(&self.within).map(|(bound, counter)| {
            below += counter.load(Ordering::Relaxed);
            (*bound, below)
        });
        let at_most: Vec<_> = at_most.collect();
        Histogram {
            count: self.count.load(Ordering::Relaxed).max(below),
            sum: self.sum.load(Ordering::Relaxed),
            max: self.max.load(Ordering::Relaxed),
            at_most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_under_every_bound_that_they_keep() {
        let counting = Counting::new(&COMMIT_EVENTS);
        for value in [0, 1, 2, 3, 25, 26, 5_000, 9_999] {
            counting.count(value);
        }
        let expected =
            [(1, 2), (2, 3), (5, 4), (10, 4), (25, 5), (50, 6), (100, 6), (250, 6), (1_000, 6), (5_000, 7)];
        let now = counting.now();
        assert_eq!(now.at_most, expected);
        assert_eq!((now.count, now.sum, now.max), (8, 15_056, 9_999));
        assert!(COMMIT_MICROS.is_sorted() && COMMIT_EVENTS.is_sorted());
    }
}
