//! Appends to the log and to a raw file, in turn.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use domain::limits::{EVENT_BODY_BYTES_MAX, EVENTS_PER_APPEND_MAX};

use super::{
    AppendLoad, AppendReport, BenchError, Rate, io_error,
    load::{Cast, Numbers, latency},
    machine,
    raw::RawFile,
};
use crate::{EventLog, Options};

const WRITERS_MAX: usize = 4_096;
/// The log and the raw file take turns this often, so that both see the same disk.
const SLICES: u32 = 10;
/// Smaller events would be all frame.
const EVENT_BYTES_MIN: usize = 128;

/// What was measured of one side.
#[derive(Default)]
pub(super) struct Slice {
    pub(super) times: Vec<Duration>,
    pub(super) syncs: u64,
    elapsed: Duration,
    cpu: Duration,
}

impl Slice {
    fn rate(self, batch: usize) -> Rate {
        let seconds = self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let events_per_second = (self.times.len() * batch) as f64 / seconds;
        let syncs_per_second = self.syncs as f64 / seconds;
        let latency = latency(self.times);
        Rate { events_per_second, p50_us: latency.p50_us, p99_us: latency.p99_us, syncs_per_second }
    }
}

/// Measures appends in a folder of their own. Blocks for the time of the load; call it outside of
/// async code.
pub fn append(folder: &Path, load: AppendLoad) -> Result<AppendReport, BenchError> {
    check(&load)?;
    super::new_folder(folder)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(io_error("start the writers"))?;
    let log = EventLog::open(&folder.join("log"), Options::default())?;
    let mut raw = RawFile::create(&folder.join("raw")).map_err(io_error("create the raw file"))?;
    let cast = Arc::new(Cast::new(load.event_bytes)?);
    let (mut of_log, mut of_raw) = (Slice::default(), Slice::default());
    let slice_time = load.time / SLICES / 2;
    // The first turns make keys and files, and are not counted.
    for turn in 0..=SLICES {
        if turn == 1 {
            (of_log, of_raw) = (Slice::default(), Slice::default());
        }
        raw =
            raw_slice(&runtime, raw, &load, &mut of_raw, slice_time).map_err(io_error("write a raw file"))?;
        runtime.block_on(log_slice(&log, &cast, &load, &mut of_log, slice_time))?;
    }
    let events = of_log.times.len() * load.batch;
    let cpu_us_per_event = of_log.cpu.as_secs_f64() * 1e6 / events.max(1) as f64;
    let stats = log.stats();
    let disk_bytes = log.disk_bytes()?;
    runtime.block_on(log.close());
    let (log, raw) = (of_log.rate(load.batch), of_raw.rate(load.batch));
    Ok(AppendReport {
        log,
        raw,
        load,
        throughput_ratio: log.events_per_second / raw.events_per_second,
        p50_ratio: log.p50_us / raw.p50_us,
        cpu_us_per_event,
        bytes_per_event: disk_bytes as f64 / stats.events.max(1) as f64,
    })
}

fn check(load: &AppendLoad) -> Result<(), BenchError> {
    let is_one_of = |count, max| (1..=max).contains(&count);
    let what = if !is_one_of(load.writers, WRITERS_MAX) {
        "with this many writers: 1 to 4,096 are possible"
    } else if !is_one_of(load.batch, EVENTS_PER_APPEND_MAX) {
        "with appends of this many events"
    } else if !(EVENT_BYTES_MIN..=EVENT_BODY_BYTES_MAX).contains(&load.event_bytes) {
        "with events of this size: at least 128 bytes, and no more than an event may have"
    } else if load.time.is_zero() {
        "in no time"
    } else {
        return Ok(());
    };
    Err(BenchError::Load { what })
}

fn raw_slice(
    runtime: &tokio::runtime::Runtime,
    mut raw: RawFile,
    load: &AppendLoad,
    slice: &mut Slice,
    time: Duration,
) -> std::io::Result<RawFile> {
    let (started, bytes) = (Instant::now(), load.event_bytes * load.batch);
    let until = started + time;
    if load.writers == 1 {
        raw.write_alone(bytes, slice, until)?;
    } else {
        raw = runtime.block_on(raw.write_together(load.writers, bytes, slice, until))?;
    }
    slice.elapsed += started.elapsed();
    Ok(raw)
}

async fn log_slice(
    log: &EventLog,
    cast: &Arc<Cast>,
    load: &AppendLoad,
    slice: &mut Slice,
    time: Duration,
) -> Result<(), BenchError> {
    let (started, cpu, commits) = (Instant::now(), machine::cpu_time(), log.stats().commits);
    let until = started + time;
    let writers: Vec<_> = (0..load.writers as u64)
        .map(|seed| {
            let (log, cast, load) = (log.clone(), Arc::clone(cast), *load);
            let seed = seed + commits;
            tokio::spawn(async move { write(&log, &cast, &load, seed, until).await })
        })
        .collect();
    for writer in writers {
        let times = writer.await.map_err(|error| io_error("wait for a writer")(error.into()))??;
        slice.times.extend(times);
    }
    slice.elapsed += started.elapsed();
    slice.cpu += machine::cpu_time().saturating_sub(cpu);
    slice.syncs += log.stats().commits - commits;
    Ok(())
}

async fn write(
    log: &EventLog,
    cast: &Cast,
    load: &AppendLoad,
    seed: u64,
    until: Instant,
) -> Result<Vec<Duration>, BenchError> {
    let mut numbers = Numbers::new(seed);
    let mut times = Vec::new();
    while Instant::now() < until {
        let append = cast.append(&mut numbers, load.batch, load.event_bytes);
        let append = append.ok_or(BenchError::Load { what: "with events of this size" })?;
        let started = Instant::now();
        log.append(append).await?;
        times.push(started.elapsed());
    }
    Ok(times)
}
