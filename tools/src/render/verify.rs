//! What verifying found.

use std::time::Duration;

use contracts::wire::upkeep::{DamageFound, VerificationReport};
use eventlog::Report;

use super::{
    printable,
    tone::{Tone, paint},
    units,
};
use crate::screen::Screen;

/// A report with the time that it took.
pub(crate) struct Verified {
    /// What was found.
    pub(crate) report: Report,
    /// How long it took.
    pub(crate) took: Duration,
}

impl Verified {
    /// For a program, here and from a server.
    pub(crate) fn record(&self) -> VerificationReport {
        let report = &self.report;
        let damage = report.damage.as_ref();
        VerificationReport {
            whole: report.is_whole(),
            position: report.head.position.get(),
            chain: hex(&report.head.chain),
            events: report.events,
            streams: report.streams,
            commits: report.commits,
            record_bytes: report.record_bytes,
            blobs: report.blobs,
            seconds: self.took.as_secs_f64(),
            events_per_second: self.events_per_second(),
            damage: damage.map(|damage| DamageFound {
                position: damage.position.get(),
                problem: damage.kind.to_string(),
            }),
        }
    }

    fn events_per_second(&self) -> f64 {
        self.report.events as f64 / self.took.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// The table of a log that is whole.
pub(crate) fn verified(screen: Screen, report: &VerificationReport) -> String {
    let speed = format!("{} events/s", units::grouped(report.events_per_second as u64));
    let took = (report.seconds * 1e3) as u64;
    let rows = [
        ("LOG", "whole".to_owned()),
        ("EVENTS", units::grouped(report.events)),
        ("STREAMS", units::grouped(report.streams)),
        ("COMMITS", units::grouped(report.commits)),
        ("RECORDS", units::bytes(report.record_bytes)),
        ("BLOBS", units::grouped(report.blobs)),
        ("HEAD", units::grouped(report.position)),
        ("CHAIN", report.chain.clone()),
        ("TIME", units::duration(took)),
        ("SPEED", speed),
    ];
    named(screen, &rows)
}

/// One line for each name and value. Nothing is cut: a hash of which a part is missing is none.
pub(crate) fn named(screen: Screen, rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let lines = rows.iter().map(|(name, value)| {
        let name = paint(&format!("{name:<width$}"), Tone::Dim, screen.colours);
        format!("{name}  {}", printable::line(value))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use eventlog::{Damage, DamageKind, ExportedHead, Position};

    use super::*;

    fn sample(damage: Option<Damage>) -> Verified {
        let head = ExportedHead { position: Position::new(1_234_567), chain: [0xab; 32] };
        let report = Report {
            head,
            events: 1_234_567,
            commits: 98_765,
            streams: 321,
            record_bytes: 1_500_000_000,
            blobs: 12,
            damage,
        };
        Verified { report, took: Duration::from_millis(2_500) }
    }

    #[test]
    fn a_whole_log_is_described() {
        insta::assert_snapshot!(verified(Screen::plain(Some(100)), &sample(None).record()));
    }

    #[test]
    fn a_program_gets_the_first_bad_position() {
        let damage = Damage { position: Position::new(17), kind: DamageKind::HashDiffers };
        insta::assert_json_snapshot!(sample(Some(damage)).record());
    }
}
