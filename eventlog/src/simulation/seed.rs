//! Random choices that can be repeated.

/// Names the seed of one history, to repeat it alone.
const VARIABLE: &str = "REMIT_TEST_SEED";

/// A small random number generator (splitmix64).
#[derive(Debug, Clone)]
pub(super) struct Seed {
    pub(super) start: u64,
    state: u64,
}

impl Seed {
    pub(super) fn new(start: u64) -> Self {
        Self { start, state: start }
    }

    /// The seed that the environment names.
    pub(super) fn named() -> Option<u64> {
        std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok())
    }

    /// Any seed, by the time.
    pub(super) fn any() -> u64 {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        (u64::from(now.subsec_nanos()) << 20) ^ now.as_secs()
    }

    /// What to do to see it again.
    pub(super) fn hint(&self) -> String {
        format!("repeat it alone with {VARIABLE}={}", self.start)
    }

    /// A generator of its own, made from this one.
    pub(super) fn fork(&mut self) -> Self {
        Self::new(self.next())
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    /// Whether a thing happens that happens so many times in a hundred.
    pub(super) fn happens(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
