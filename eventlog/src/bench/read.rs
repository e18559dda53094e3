//! Pages of one task in a large log.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use domain::{ids::ThreadId, limits::EVENTS_PER_APPEND_MAX};

use super::{
    BenchError, Latency, ReadReport, io_error,
    load::{Cast, Numbers, latency},
    machine,
};
use crate::{EventFilter, EventLog, Options, Seq, StreamId};

/// Events of a page.
const PAGE: usize = 100;
/// Pages that are read in each way.
const PAGES: u64 = 500;
/// Content and metadata of an event.
const EVENT_BYTES: usize = 1_024;
/// Reads of the same pages, of which the last counts as warm.
const WARM_PASSES: usize = 3;

/// Fills a folder of its own with events and measures reads. Call it outside of async code.
pub fn read(folder: &Path, events: u64) -> Result<ReadReport, BenchError> {
    super::new_folder(folder)?;
    let cast = Cast::new(EVENT_BYTES)?;
    fill(folder, &cast, events)?;
    machine::drop_page_cache(folder).map_err(io_error("drop cached pages"))?;
    let started = Instant::now();
    let log = EventLog::open(folder, Options::default())?;
    let open_ms = started.elapsed().as_secs_f64() * 1e3;
    let task_page_cold = pages(&log, &cast, 11, Some(folder))?;
    let mut task_page_warm = Latency::default();
    for _ in 0..WARM_PASSES {
        task_page_warm = pages(&log, &cast, 12, None)?;
    }
    let rss_mib = machine::rss_mib();
    Ok(ReadReport { log_events: log.head().get(), task_page_warm, task_page_cold, open_ms, rss_mib })
}

/// Appends events of all runs and tasks, interleaved.
pub(super) fn fill(folder: &Path, cast: &Cast, events: u64) -> Result<(), BenchError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(io_error("start the writers"))?;
    runtime.block_on(async {
        let log = EventLog::open(folder, Options::default())?;
        let mut numbers = Numbers::new(events);
        let mut waiting = std::collections::VecDeque::new();
        let (mut left, batch) = (events, 20_usize.min(EVENTS_PER_APPEND_MAX));
        while left > 0 {
            let count = batch.min(usize::try_from(left).unwrap_or(batch));
            let append = cast.append(&mut numbers, count, EVENT_BYTES);
            let append = append.ok_or(BenchError::Load { what: "with events of this size" })?;
            let log = log.clone();
            waiting.push_back(tokio::spawn(async move { log.append(append).await.map(drop) }));
            left -= count as u64;
            if waiting.len() >= 64
                && let Some(first) = waiting.pop_front()
            {
                first.await.map_err(|error| io_error("wait for a writer")(error.into()))??;
            }
        }
        for one in waiting {
            one.await.map_err(|error| io_error("wait for a writer")(error.into()))??;
        }
        log.close().await;
        Ok(())
    })
}

/// Reads pages of random tasks behind random cursors.
fn pages(log: &EventLog, cast: &Cast, seed: u64, cold: Option<&Path>) -> Result<Latency, BenchError> {
    let mut numbers = Numbers::new(seed);
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..PAGES {
        let Some((StreamId::Thread(thread_id), run_id, task_id)) =
            cast.member(numbers.next(), numbers.next())
        else {
            continue;
        };
        let thread_id: &ThreadId = thread_id;
        let filter = EventFilter { task_id: Some(task_id.clone()), ..EventFilter::default() };
        let tail = log.stream_tail(&StreamId::Thread(thread_id.clone()))?.unwrap_or(Seq::ZERO);
        let after = Seq::new(numbers.next() % tail.get().max(1) * 8 / 10);
        if let Some(folder) = cold {
            machine::drop_page_cache(folder).map_err(io_error("drop cached pages"))?;
        }
        let started = Instant::now();
        drop(log.read_run(thread_id, run_id, &filter, after, PAGE)?);
        times.push(started.elapsed());
    }
    Ok(latency(times))
}
