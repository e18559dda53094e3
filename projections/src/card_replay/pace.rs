//! How fast a replay goes.

use std::{str::FromStr, time::Duration};

use jiff::Timestamp;

/// The slowest: a second takes 100.
const SPEED_MIN: f64 = 0.01;
/// The fastest that has any pauses.
const SPEED_MAX: f64 = 1_000_000.0;
/// No pause is longer.
const PAUSE_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

/// How fast a replay goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// This many times as fast as it was.
    Times(f64),
    /// Without pauses.
    AtOnce,
}

/// Text that names no pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", InvalidPace::RULE)]
pub struct InvalidPace;

impl InvalidPace {
    /// What is taken.
    pub const RULE: &'static str =
        "a number from 0.01 to 1000000 (1 is as it was, 10 is ten times as fast), or max";
}

/// As it was.
impl Default for Pace {
    fn default() -> Self {
        Self::Times(1.0)
    }
}

impl FromStr for Pace {
    type Err = InvalidPace;

    fn from_str(text: &str) -> Result<Self, InvalidPace> {
        if matches!(text, "max" | "0") {
            return Ok(Self::AtOnce);
        }
        let speed = text.parse().ok().filter(|speed| (SPEED_MIN..=SPEED_MAX).contains(speed));
        speed.map(Self::Times).ok_or(InvalidPace)
    }
}

impl Pace {
    /// How long after the one moment the other comes. A clock that went back makes no pause.
    pub fn between(self, from: Timestamp, to: Timestamp) -> Duration {
        match self {
            Self::AtOnce => Duration::ZERO,
            Self::Times(speed) => {
                let seconds = to.duration_since(from).as_secs_f64() / speed;
                Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO).min(PAUSE_MAX)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_a_number_or_max() {
        for (text, expected) in [
            ("1", Some(Pace::Times(1.0))),
            ("0.5", Some(Pace::Times(0.5))),
            ("10", Some(Pace::Times(10.0))),
            ("max", Some(Pace::AtOnce)),
            ("0", Some(Pace::AtOnce)),
            ("", None),
            ("-1", None),
            ("nan", None),
            ("inf", None),
            ("0.001", None),
            ("1e9", None),
            ("fast", None),
        ] {
            assert_eq!(text.parse().ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn pauses_are_as_long_as_the_pace_says() {
        let at = |ms: i64| Timestamp::from_millisecond(ms).unwrap();
        assert_eq!(Pace::default().between(at(1_000), at(3_500)), Duration::from_millis(2_500));
        assert_eq!(Pace::Times(10.0).between(at(0), at(2_500)), Duration::from_millis(250));
        assert_eq!(Pace::AtOnce.between(at(0), at(2_500)), Duration::ZERO);
        assert_eq!(Pace::Times(1.0).between(at(5), at(0)), Duration::ZERO);
        assert_eq!(Pace::Times(0.01).between(Timestamp::MIN, Timestamp::MAX), PAUSE_MAX);
    }
}
