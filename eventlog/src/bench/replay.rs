//! The whole log in order.

use std::{path::Path, time::Instant};

use super::{BenchError, ReplayReport, load::Cast, machine, read::fill};
use crate::{EventLog, Options, Position, VerifyRequest};

/// So few that what was read of them is still in the processor's caches when they are looked at.
const PAGE: usize = 256;

/// Fills a folder of its own with events, and measures reading them all. Call it outside of async
/// code.
pub fn replay(folder: &Path, events: u64) -> Result<ReplayReport, BenchError> {
    super::new_folder(folder)?;
    fill(folder, &Cast::new(1_024)?, events)?;
    let log = EventLog::open(folder, Options::default())?;
    let (started, cpu) = (Instant::now(), machine::cpu_time());
    let mut replay = log.replay(Position::ZERO)?;
    let mut count = 0;
    loop {
        let page = replay.next_page(PAGE)?;
        if page.is_empty() {
            break;
        }
        count += page.len() as u64;
    }
    let events_per_second = count as f64 / started.elapsed().as_secs_f64();
    let cpu = machine::cpu_time().saturating_sub(cpu);
    let events_per_cpu_second = count as f64 / cpu.as_secs_f64();
    let started = Instant::now();
    let report = log.verify(VerifyRequest::default())?;
    let verified_per_second = report.events as f64 / started.elapsed().as_secs_f64();
    if let Some(damage) = report.damage {
        return Err(damage.into());
    }
    let peak_rss_mib = machine::peak_rss_mib();
    Ok(ReplayReport {
        log_events: count,
        events_per_second,
        events_per_cpu_second,
        verified_per_second,
        peak_rss_mib,
    })
}
