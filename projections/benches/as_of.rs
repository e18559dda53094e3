//! A card with 10,000 steps at any moment: `cargo bench -p projections --bench as_of`.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot run has nothing to say")]

/// As in the `remit` command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use criterion::{Criterion, criterion_group, criterion_main};
use domain::ids::ThreadId;
use eventlog::{EventLog, Options, Seq};
use projections::{
    Projections, TaskRef, as_of,
    bench::{BenchHistory, DelegationSize},
};

fn card(criterion: &mut Criterion) {
    let folder = tempfile::tempdir_in(".").unwrap();
    let log = EventLog::open(&folder.path().join("log"), Options::default()).unwrap();
    let size = DelegationSize { turns: 5_000, ..DelegationSize::default() };
    let thread_id = ThreadId::new("t").unwrap();
    let (run_id, delegation_id) = BenchHistory::new(size).record_delegation(&log, &thread_id).unwrap();
    let views = Projections::open(&folder.path().join("views"), log.clone()).unwrap();
    views.catch_up().unwrap();
    let task = TaskRef::DelegationId(delegation_id);
    let last = log.stream_tail(&thread_id.clone().into()).unwrap().unwrap();
    let mut group = criterion.benchmark_group("a card with 10,000 steps");
    group.sample_size(20);
    group.bench_function("now", |bencher| {
        bencher.iter(|| views.card(&thread_id, &run_id, &task).unwrap().unwrap());
    });
    for part in 1..=4 {
        let seq = Seq::new(last.get() * part / 4);
        group.bench_function(format!("as of {part}/4"), |bencher| {
            bencher.iter(|| as_of::card_as_of(&views, &thread_id, &run_id, &task, seq).unwrap().unwrap());
        });
    }
    group.finish();
}

criterion_group!(benches, card);
criterion_main!(benches);
