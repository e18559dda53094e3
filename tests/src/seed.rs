//! Random choices that can be repeated: the seed is printed.

use std::{fmt, time::SystemTime};

/// Names a seed to repeat a test with.
const VARIABLE: &str = "REMIT_TEST_SEED";

/// A small random number generator (splitmix64).
#[derive(Debug, Clone)]
pub struct Seed {
    start: u64,
    state: u64,
}

impl Seed {
    /// Begins with the seed that the environment names, else with the time.
    pub fn from_time() -> Self {
        let named = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
        let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let start = named.unwrap_or_else(|| u64::from(now().subsec_nanos()) ^ now().as_secs());
        Self { start, state: start }
    }

    /// A number below this one.
    pub fn below(&mut self, end: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "repeat with {VARIABLE}={}", self.start)
    }
}
