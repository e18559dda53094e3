//! The whole log in order, from memory: with and without checking the chains, and verified.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot run has nothing to say")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use domain::ids::{EventId, RunId, ThreadId, ToolCallId, UserId};
use eventlog::{
    Append, EventLog, Expected, Json, NewEvent, Options, Position, Scope, StreamId, VerifyRequest,
};
use jiff::Timestamp;
use uuid::Uuid;

/// As in the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn log(events: u64) -> EventLog {
    let log = EventLog::in_memory(Options::default());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for number in 0..events / 100 {
        let event = |index: u64| NewEvent {
            event_id: EventId::from_uuid(Uuid::from_u128(7)),
            event_type: "subagent.step".to_owned(),
            schema_version: 1,
            category: "subagent".to_owned(),
            scope: Scope {
                run_id: Some(RunId::new("run-1").unwrap()),
                task_id: Some(ToolCallId::new(format!("call_{}", index % 10)).unwrap()),
                delegation_id: None,
            },
            owner: UserId::unowned(),
            causation_id: None,
            correlation_id: None,
            created_at: Timestamp::UNIX_EPOCH,
            content: Json::from_serialize(&"x".repeat(1_000)).unwrap(),
            metadata: Json::empty_object(),
        };
        let append = Append {
            stream: StreamId::Thread(ThreadId::new(format!("t{}", number % 10)).unwrap()),
            expected: Expected::Any,
            idempotency_key: None,
            events: (0..100).map(event).collect(),
        };
        runtime.block_on(log.append(append)).unwrap();
    }
    log
}

fn replay(criterion: &mut Criterion) {
    const EVENTS: u64 = 20_000;
    let log = log(EVENTS);
    let mut group = criterion.benchmark_group("whole log from memory");
    group.sample_size(20).throughput(Throughput::Elements(EVENTS));
    group.bench_function("read", |bencher| {
        bencher.iter(|| {
            let mut after = Position::ZERO;
            while let Some(last) = log.read_all(after, 1_000).unwrap().last() {
                after = last.position;
            }
        });
    });
    group.bench_function("replay, checked", |bencher| {
        bencher.iter(|| {
            let mut replay = log.replay(Position::ZERO).unwrap();
            while !replay.next_page(256).unwrap().is_empty() {}
        });
    });
    group.bench_function("verify", |bencher| {
        bencher.iter(|| assert!(log.verify(VerifyRequest::default()).unwrap().is_whole()));
    });
    group.finish();
}

criterion_group!(benches, replay);
criterion_main!(benches);
