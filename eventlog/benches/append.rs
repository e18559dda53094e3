//! Appends in memory: what planning, sealing, hashing and indexing cost without a disk.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot run has nothing to say")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use domain::ids::{EventId, RunId, ThreadId, ToolCallId, UserId};
use eventlog::{Append, EventLog, Expected, Json, NewEvent, Options, Scope, StreamId};
use jiff::Timestamp;
use uuid::Uuid;

fn event() -> NewEvent {
    NewEvent {
        event_id: EventId::from_uuid(Uuid::from_u128(7)),
        event_type: "subagent.step".to_owned(),
        schema_version: 1,
        category: "subagent".to_owned(),
        scope: Scope {
            run_id: Some(RunId::new("run-1").unwrap()),
            task_id: Some(ToolCallId::new("call_1").unwrap()),
            delegation_id: None,
        },
        owner: UserId::unowned(),
        causation_id: None,
        correlation_id: None,
        created_at: Timestamp::UNIX_EPOCH,
        content: Json::from_serialize(&"x".repeat(1_000)).unwrap(),
        metadata: Json::empty_object(),
    }
}

fn append(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut group = criterion.benchmark_group("append in memory");
    for batch in [1_usize, 25] {
        let log = EventLog::in_memory(Options::default());
        let append = Append {
            stream: StreamId::Thread(ThreadId::new("t").unwrap()),
            expected: Expected::Any,
            idempotency_key: None,
            events: vec![event(); batch],
        };
        group.throughput(Throughput::Elements(batch as u64));
        group.bench_function(format!("{batch} events"), |bencher| {
            bencher.iter(|| runtime.block_on(log.append(append.clone())).unwrap());
        });
    }
    group.finish();
}

criterion_group!(benches, append);
criterion_main!(benches);
