//! Reads from memory: what finding, opening and decoding cost without a disk.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot run has nothing to say")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use domain::ids::{EventId, RunId, ThreadId, ToolCallId, UserId};
use eventlog::{Append, EventFilter, EventLog, Expected, Json, NewEvent, Options, Scope, Seq, StreamId};
use jiff::Timestamp;
use uuid::Uuid;

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

fn read(criterion: &mut Criterion) {
    let log = log(20_000);
    let (thread_id, run_id) = (ThreadId::new("t3").unwrap(), RunId::new("run-1").unwrap());
    let mut group = criterion.benchmark_group("read from memory");
    group.throughput(Throughput::Elements(100));
    group.bench_function("100 events of a task", |bencher| {
        let task_id = Some(ToolCallId::new("call_3").unwrap());
        let filter = EventFilter { task_id, ..EventFilter::default() };
        bencher.iter(|| log.read_run(&thread_id, &run_id, &filter, Seq::new(500), 100).unwrap());
    });
    group.bench_function("100 events of a run by type", |bencher| {
        let event_types = Some(vec!["subagent.step".to_owned()]);
        let filter = EventFilter { event_types, ..EventFilter::default() };
        bencher.iter(|| log.read_run(&thread_id, &run_id, &filter, Seq::new(500), 100).unwrap());
    });
    group.bench_function("100 events of a stream", |bencher| {
        let stream = StreamId::Thread(thread_id.clone());
        bencher.iter(|| log.read_stream(&stream, Seq::new(500), 100).unwrap());
    });
    group.finish();
}

criterion_group!(benches, read);
criterion_main!(benches);
