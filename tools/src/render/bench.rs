//! What measuring found.

use eventlog::bench::{AppendReport, Latency, Rate, ReadReport, ReplayReport};
use projections::bench::{RebuildReport, Speed};
use runtime::bench::AgentsReport;
use serde::Serialize;

use super::{
    table::{Cell, Column, table},
    units,
    verify::named,
};
use crate::screen::Screen;

const APPEND_COLUMNS: [Column; 5] = [
    Column::text(""),
    Column::number("EVENTS/S"),
    Column::number("P50"),
    Column::number("P99"),
    Column::number("SYNCS/S"),
];
const READ_COLUMNS: [Column; 3] = [Column::text("QUERY"), Column::number("P50"), Column::number("P99")];

/// What a program reads of a measurement of reads: one object for each kind of query.
#[derive(Debug, Serialize)]
pub(crate) struct ReadRecord {
    log_events: u64,
    open_ms: f64,
    rss_mib: f64,
    task_page_warm: QueryRecord,
    task_page_cold: QueryRecord,
}

#[derive(Debug, Serialize)]
struct QueryRecord {
    log_events: u64,
    p50_us: f64,
    p99_us: f64,
}

impl ReadRecord {
    pub(crate) fn new(report: &ReadReport) -> Self {
        let query =
            |Latency { p50_us, p99_us }| QueryRecord { log_events: report.log_events, p50_us, p99_us };
        Self {
            log_events: report.log_events,
            open_ms: report.open_ms,
            rss_mib: report.rss_mib,
            task_page_warm: query(report.task_page_warm),
            task_page_cold: query(report.task_page_cold),
        }
    }
}

/// The log beside the raw file.
pub(crate) fn append(screen: Screen, report: &AppendReport) -> String {
    let row = |name: &str, rate: &Rate| {
        vec![
            Cell::new(name),
            Cell::new(whole(rate.events_per_second)),
            Cell::new(micros(rate.p50_us)),
            Cell::new(micros(rate.p99_us)),
            Cell::new(whole(rate.syncs_per_second)),
        ]
    };
    let rows = vec![row("log", &report.log), row("raw file", &report.raw)];
    let load = &report.load;
    let more = [
        ("THROUGHPUT", format!("{:.2} of the raw file's", report.throughput_ratio)),
        ("P50", format!("{:.2} times the raw file's", report.p50_ratio)),
        ("PROCESSOR", format!("{:.1} µs per event", report.cpu_us_per_event)),
        ("DISK", format!("{} per event", units::bytes(report.bytes_per_event as u64))),
        (
            "LOAD",
            format!(
                "{}, {}, {} each",
                units::counted(load.writers as u64, "writer", "writers"),
                units::counted(load.batch as u64, "event per append", "events per append"),
                units::bytes(load.event_bytes as u64)
            ),
        ),
    ];
    format!("{}\n\n{}", table(screen, &APPEND_COLUMNS, rows), named(screen, &more))
}

/// Queries in a log.
pub(crate) fn read(screen: Screen, report: &ReadReport) -> String {
    let row = |name: &str, latency: Latency| {
        vec![Cell::new(name), Cell::new(micros(latency.p50_us)), Cell::new(micros(latency.p99_us))]
    };
    let rows = vec![
        row("a task's page of 100, warm", report.task_page_warm),
        row("a task's page of 100, cold", report.task_page_cold),
    ];
    let more = [
        ("EVENTS", units::grouped(report.log_events)),
        ("OPENING", micros(report.open_ms * 1e3)),
        ("MEMORY", format!("{:.0} MiB", report.rss_mib)),
    ];
    format!("{}\n\n{}", table(screen, &READ_COLUMNS, rows), named(screen, &more))
}

/// A whole log in order.
pub(crate) fn replay(screen: Screen, report: &ReplayReport) -> String {
    let rows = [
        ("EVENTS", units::grouped(report.log_events)),
        ("REPLAY", format!("{} events/s, on one thread", whole(report.events_per_second))),
        ("VERIFY", format!("{} events/s, on all", whole(report.verified_per_second))),
        ("MEMORY", format!("{:.0} MiB at most", report.peak_rss_mib)),
    ];
    named(screen, &rows)
}

/// All views from a log.
pub(crate) fn rebuild(screen: Screen, report: &RebuildReport) -> String {
    let speed = |speed: &Speed| {
        let cpu = speed.cpu_us_per_event;
        format!("{} events/s, {cpu:.2} µs of processor time each", whole(speed.events_per_second))
    };
    let rows = [
        ("EVENTS", units::grouped(report.events)),
        ("VIEWS", report.view_names.join(", ")),
        ("REBUILD", speed(&report.speed)),
        ("READ ALONE", speed(&report.read)),
        ("MEMORY", format!("{:.0} MiB at most", report.peak_rss_mib)),
    ];
    named(screen, &rows)
}

/// Agents at work.
pub(crate) fn agents(screen: Screen, report: &AgentsReport) -> String {
    let AgentsReport { delegations, turns, overhead_per_turn_us: overhead, load, .. } = report;
    let work = format!(
        "{}, {} turns, {} events in {:.1} s",
        units::counted(*delegations, "delegation", "delegations"),
        units::grouped(*turns),
        units::grouped(report.events),
        report.seconds
    );
    let rows = [
        ("WORK", work),
        ("OVERHEAD", format!("{} per turn (p50), {} (p99)", micros(overhead.p50), micros(overhead.p99))),
        ("PROCESSOR", format!("{} per turn, all of it", micros(report.cpu_us_per_turn))),
        ("MEMORY", format!("{:.0} MiB at most", report.peak_rss_mib)),
        (
            "LOAD",
            format!(
                "{}, {} at work at once, a model that takes {} ms",
                units::counted(u64::from(load.runs), "run", "runs"),
                load.max_running,
                load.model_ms
            ),
        ),
    ];
    named(screen, &rows)
}

fn whole(number: f64) -> String {
    units::grouped(number.round() as u64)
}

/// A time in microseconds, in milliseconds from one on.
fn micros(us: f64) -> String {
    if us < 1e3 { format!("{us:.0} µs") } else { format!("{:.2} ms", us / 1e3) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use eventlog::bench::AppendLoad;
    use runtime::bench::{AgentsLoad, Overhead};

    use super::*;

    fn append_report() -> AppendReport {
        let log =
            Rate { events_per_second: 61_234.4, p50_us: 812.3, p99_us: 1_890.6, syncs_per_second: 956.7 };
        let raw =
            Rate { events_per_second: 112_000.0, p50_us: 530.0, p99_us: 890.0, syncs_per_second: 1_750.0 };
        let time = Duration::from_secs(10);
        AppendReport {
            log,
            raw,
            load: AppendLoad { writers: 64, batch: 1, time, event_bytes: 1_024 },
            throughput_ratio: 0.5467,
            p50_ratio: 1.53,
            cpu_us_per_event: 17.66,
            bytes_per_event: 2_345.0,
        }
    }

    fn read_report() -> ReadReport {
        ReadReport {
            log_events: 1_000_000,
            task_page_warm: Latency { p50_us: 83.4, p99_us: 598.0 },
            task_page_cold: Latency { p50_us: 420.0, p99_us: 1_234.5 },
            open_ms: 312.5,
            rss_mib: 141.2,
        }
    }

    #[test]
    fn appends_stand_beside_the_raw_file() {
        insta::assert_snapshot!(append(Screen::plain(Some(100)), &append_report()));
    }

    #[test]
    fn queries_are_listed() {
        insta::assert_snapshot!(read(Screen::plain(Some(100)), &read_report()));
    }

    // The interface's shapes.
    #[test]
    fn programs_get_the_names_that_they_rely_on() {
        insta::assert_json_snapshot!("append_json", append_report());
        insta::assert_json_snapshot!("read_json", ReadRecord::new(&read_report()));
    }

    fn agents_report() -> AgentsReport {
        AgentsReport {
            delegations: 1_000,
            turns: 4_200,
            overhead_per_turn_us: Overhead { p50: 812.4, p99: 4_321.0 },
            peak_rss_mib: 112.5,
            cpu_us_per_turn: 190.4,
            events: 31_700,
            seconds: 3.21,
            load: AgentsLoad {
                runs: 100,
                delegations_per_run: 10,
                turns_per_delegation: 4,
                max_running: 64,
                model_ms: 5,
            },
        }
    }

    #[test]
    fn agents_are_described() {
        insta::assert_snapshot!(agents(Screen::plain(Some(100)), &agents_report()));
        insta::assert_json_snapshot!("agents_json", agents_report());
    }

    #[test]
    fn replays_are_described() {
        let report = ReplayReport {
            log_events: 1_000_000,
            events_per_second: 412_345.6,
            events_per_cpu_second: 400_000.0,
            verified_per_second: 701_234.5,
            peak_rss_mib: 180.4,
        };
        insta::assert_snapshot!(replay(Screen::plain(Some(100)), &report));
    }
}
