//! Numbers as people read them.

use jiff::Timestamp;

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// From here tokens are shown in thousands (facts §11.3).
const TOKENS_SHORT_MIN: u64 = 10_000;
/// From here a count of thousands would be rounded to 1000.0.
const TOKENS_MILLIONS_MIN: u64 = 999_950;

/// A duration: `340ms`, `1.2s`, `2m 05s`, `1h 02m`.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        ..SECOND_MS => format!("{ms}ms"),
        SECOND_MS..MINUTE_MS => format!("{}.{}s", ms / SECOND_MS, ms % SECOND_MS / 100),
        MINUTE_MS..HOUR_MS => format!("{}m {:02}s", ms / MINUTE_MS, ms % MINUTE_MS / SECOND_MS),
        _ => format!("{}h {:02}m", ms / HOUR_MS, ms % HOUR_MS / MINUTE_MS),
    }
}

/// The milliseconds between two instants; 0 when the clock went back.
pub(crate) fn elapsed_ms(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_millisecond() - from.as_millisecond()).unwrap_or(0)
}

/// The milliseconds between two instants of the wire, where both are there and readable.
pub(crate) fn between_ms(from: Option<&str>, to: Option<&str>) -> Option<u64> {
    Some(elapsed_ms(from?.parse().ok()?, to?.parse().ok()?))
}

/// A count of tokens: `9,999`, then `12.3K`, then `1.2M` (facts §11.3).
pub(crate) fn tokens(count: u64) -> String {
    let tenths = |unit: u64| {
        let tenths = count.saturating_add(unit / 20) / (unit / 10);
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    match count {
        ..TOKENS_SHORT_MIN => grouped(count),
        TOKENS_SHORT_MIN..TOKENS_MILLIONS_MIN => format!("{}K", tenths(1_000)),
        _ => format!("{}M", tenths(1_000_000)),
    }
}

/// A whole number with its digits in groups of three.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let first = digits.len() % 3;
    let mut shown = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && index % 3 == first {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// A size: `812 B`, `1.2 KiB`, `3.4 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1_024 {
        return format!("{count} B");
    }
    let mut tenths = count.saturating_mul(10) / 1_024;
    let mut unit = "KiB";
    for next in UNITS.iter().skip(1) {
        if tenths < 10_240 {
            break;
        }
        tenths /= 1_024;
        unit = next;
    }
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// An instant of the wire, to the second, in universal time; as it came when it is not readable.
pub(crate) fn instant(text: &str) -> String {
    match text.parse::<Timestamp>() {
        Ok(at) => at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => super::printable::line(text),
    }
}

/// The time of day of an instant of the wire, to the millisecond.
pub(crate) fn time_of_day(text: &str) -> String {
    match text.parse::<Timestamp>() {
        Ok(at) => at.strftime("%H:%M:%S%.3f").to_string(),
        Err(_) => super::printable::line(text),
    }
}

/// `1 event`, `2 events`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units_at_most() {
        for (ms, expected) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_000, "1.0s"),
            (1_299, "1.2s"),
            (59_999, "59.9s"),
            (60_000, "1m 00s"),
            (125_000, "2m 05s"),
            (3_600_000, "1h 00m"),
            (90_061_000, "25h 01m"),
        ] {
            assert_eq!(duration(ms), expected);
        }
    }

    // Facts §12 line 125.
    #[test]
    fn tokens_are_short_from_ten_thousand_on() {
        for (count, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (9_999, "9,999"),
            (10_000, "10.0K"),
            (12_345, "12.3K"),
            (12_350, "12.4K"),
            (999_949, "999.9K"),
            (999_950, "1.0M"),
            (12_345_678, "12.3M"),
        ] {
            assert_eq!(tokens(count), expected);
        }
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(tokens(u64::MAX), "18446744073709.5M");
    }

    #[test]
    fn sizes_are_binary() {
        for (count, expected) in
            [(0, "0 B"), (1_023, "1023 B"), (1_024, "1.0 KiB"), (1_300, "1.2 KiB"), (3_600_000, "3.4 MiB")]
        {
            assert_eq!(bytes(count), expected);
        }
    }

    #[test]
    fn instants_are_shown_to_the_second() {
        assert_eq!(instant("2026-11-30T18:45:02.123456Z"), "2026-11-30 18:45:02");
        assert_eq!(time_of_day("2026-11-30T18:45:02.123456Z"), "18:45:02.123");
        assert_eq!(instant("soon\u{1b}"), "soon\\u{1b}");
    }

    #[test]
    fn a_clock_that_went_back_costs_no_time() {
        let (early, late) = ("2026-11-30T18:45:02Z", "2026-11-30T18:45:03.5Z");
        assert_eq!(between_ms(Some(early), Some(late)), Some(1_500));
        assert_eq!(between_ms(Some(late), Some(early)), Some(0));
        assert_eq!(between_ms(None, Some(early)), None);
        assert_eq!(between_ms(Some("x"), Some(early)), None);
    }
}
