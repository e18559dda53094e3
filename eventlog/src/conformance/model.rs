//! The log against the obvious log: a list of events.

use std::collections::HashMap;

use domain::ids::ThreadId;
use proptest::prelude::*;

use crate::{
    Append, AppendError, EventFilter, EventLog, Expected, NewEvent, Position, Scope, Seq, StreamId, sample,
};

/// What is compared of an event: position, seq and the number in its content.
type Row = (u64, u64, u64);

/// Number, type, run, task and delegation.
type StepEvent = (u64, usize, Option<usize>, Option<usize>, Option<u128>);

#[derive(Debug, Clone)]
struct Step {
    stream: usize,
    expected: Expected,
    key: Option<u8>,
    events: Vec<StepEvent>,
}

#[derive(Debug, Clone)]
struct Probe {
    stream: usize,
    run: usize,
    task: Option<usize>,
    delegation: Option<u128>,
    types: Option<Vec<usize>>,
    after: u64,
    limit: usize,
}

const THREADS: [&str; 3] = ["a", "b", "ab"];
const RUNS: [&str; 2] = ["r1", "r2"];
const TASKS: [&str; 2] = ["call_1", "call_2"];
const TYPES: [&str; 3] = ["start", "step", "end"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let expected = prop_oneof![
        3 => Just(Expected::Any),
        1 => Just(Expected::NoStream),
        2 => (0_u64..8).prop_map(|seq| Expected::Exact(Seq::new(seq))),
    ];
    let event = (
        0_u64..3,
        0..TYPES.len(),
        prop::option::of(0..RUNS.len()),
        prop::option::of(0..TASKS.len()),
        prop::option::of(1_u128..3),
    );
    let events = prop::collection::vec(event, 1..5);
    let step = (0..THREADS.len(), expected, prop::option::weighted(0.3, 0_u8..3), events)
        .prop_map(|(stream, expected, key, events)| Step { stream, expected, key, events });
    prop::collection::vec(step, 1..25)
}

fn probes() -> impl Strategy<Value = Vec<Probe>> {
    let probe = (
        (0..THREADS.len(), 0..RUNS.len(), prop::option::of(0..TASKS.len()), prop::option::of(1_u128..3)),
        (prop::option::of(prop::collection::vec(0..TYPES.len(), 0..3)), 0_u64..20, 0_usize..12),
    );
    let probe = probe.prop_map(|((stream, run, task, delegation), (types, after, limit))| Probe {
        stream,
        run,
        task,
        delegation,
        types,
        after,
        limit,
    });
    prop::collection::vec(probe, 1..12)
}

impl Step {
    fn append(&self) -> Append {
        let events = self.events.iter().map(|(number, event_type, run, task, delegation)| NewEvent {
            event_type: TYPES[*event_type].to_owned(),
            scope: Scope {
                run_id: run.map(|run| sample::run_id(RUNS[run])),
                task_id: task.map(|task| sample::task_id(TASKS[task])),
                delegation_id: delegation.map(sample::delegation_id),
            },
            ..sample::note(*number)
        });
        Append {
            stream: sample::thread(THREADS[self.stream]),
            expected: self.expected,
            idempotency_key: self.key.and_then(|key| sample::key(&key.to_string())),
            events: events.collect(),
        }
    }
}

struct ModelEvent {
    stream: StreamId,
    seq: u64,
    event: NewEvent,
}

#[derive(Debug, PartialEq)]
enum Answer {
    Appended(Vec<Row>, bool),
    Conflict(Option<u64>),
    KeyReused(u64),
}

/// The rules, as plainly as possible.
#[derive(Default)]
struct Model {
    events: Vec<ModelEvent>,
    keys: HashMap<(StreamId, String), (Vec<NewEvent>, Vec<Row>)>,
}

impl Model {
    fn append(&mut self, append: Append) -> Answer {
        let Append { stream, expected, idempotency_key, events } = append;
        let key = idempotency_key.map(|key| (stream.clone(), key.as_str().to_owned()));
        if let Some((first, rows)) = key.as_ref().and_then(|key| self.keys.get(key)) {
            return if *first == events {
                Answer::Appended(rows.clone(), true)
            } else {
                Answer::KeyReused(rows[0].0)
            };
        }
        let length = self.events.iter().filter(|one| one.stream == stream).count() as u64;
        let holds = match expected {
            Expected::Any => true,
            Expected::NoStream => length == 0,
            Expected::Exact(seq) => length == seq.get(),
        };
        if !holds {
            return Answer::Conflict((length > 0).then_some(length));
        }
        let start = self.events.len();
        for (seq, event) in (length + 1..).zip(events.clone()) {
            self.events.push(ModelEvent { stream: stream.clone(), seq, event });
        }
        let rows: Vec<Row> = (start..self.events.len()).map(|index| self.row(index)).collect();
        if let Some(key) = key {
            self.keys.insert(key, (events, rows.clone()));
        }
        Answer::Appended(rows, false)
    }

    fn row(&self, index: usize) -> Row {
        let one = &self.events[index];
        (index as u64 + 1, one.seq, one.event.content.get().parse().unwrap())
    }

    fn rows(&self, limit: usize, is_wanted: impl Fn(u64, &ModelEvent) -> bool) -> Vec<Row> {
        let indexes =
            (0..self.events.len()).filter(|index| is_wanted(*index as u64 + 1, &self.events[*index]));
        indexes.take(limit).map(|index| self.row(index)).collect()
    }
}

fn rows<'a>(events: impl IntoIterator<Item = &'a crate::RecordedEvent>) -> Vec<Row> {
    let row = |event: &crate::RecordedEvent| {
        (event.position.get(), event.seq.get(), event.content.get().parse().unwrap())
    };
    events.into_iter().map(row).collect()
}

async fn answer(log: &EventLog, append: Append) -> Answer {
    match log.append(append).await {
        Ok(appended) => {
            Answer::Appended(rows(appended.events.iter().map(|event| &**event)), appended.is_repeat)
        }
        Err(AppendError::Conflict { actual, .. }) => Answer::Conflict(actual.map(Seq::get)),
        Err(AppendError::KeyReused { first, .. }) => Answer::KeyReused(first.get()),
        Err(other) => panic!("{other}"),
    }
}

fn check_reads(log: &EventLog, model: &Model, probe: &Probe) {
    let (after, limit) = (probe.after, probe.limit);
    let thread_id = ThreadId::new(THREADS[probe.stream]).unwrap();
    let stream = StreamId::Thread(thread_id.clone());
    let all = log.read_all(Position::new(after), limit).unwrap();
    assert_eq!(rows(&all), model.rows(limit, |position, _| position > after));
    let own = log.read_stream(&stream, Seq::new(after), limit).unwrap();
    assert_eq!(rows(&own), model.rows(limit, |_, one| one.stream == stream && one.seq > after));
    let run_id = sample::run_id(RUNS[probe.run]);
    let filter = EventFilter {
        event_types: probe
            .types
            .as_ref()
            .map(|types| types.iter().map(|index| TYPES[*index].to_owned()).collect()),
        task_id: probe.task.map(|task| sample::task_id(TASKS[task])),
        delegation_id: probe.delegation.map(sample::delegation_id),
    };
    let run = log.read_run(&thread_id, &run_id, &filter, Seq::new(after), limit).unwrap();
    let expected = model.rows(limit, |_, one| {
        let scope = &one.event.scope;
        one.stream == stream
            && one.seq > after
            && scope.run_id.as_ref() == Some(&run_id)
            && filter.event_types.as_ref().is_none_or(|types| types.contains(&one.event.event_type))
            && filter.task_id.as_ref().is_none_or(|task| scope.task_id.as_ref() == Some(task))
            && filter.delegation_id.is_none_or(|id| scope.delegation_id == Some(id))
    });
    assert_eq!(rows(&run), expected, "{probe:?}");
}

fn check(log: EventLog, steps: &[Step], probes: &[Probe]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut model = Model::default();
        for step in steps {
            let expected = model.append(step.append());
            assert_eq!(answer(&log, step.append()).await, expected, "{step:?}");
        }
        assert_eq!(log.head().get(), model.events.len() as u64);
        for probe in probes {
            check_reads(&log, &model, probe);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_log_in_memory_is_a_list(steps in steps(), probes in probes()) {
        check(sample::memory_log(), &steps, &probes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_log_on_disk_is_a_list(steps in steps(), probes in probes()) {
        let folder = tempfile::tempdir().unwrap();
        check(EventLog::open(folder.path(), sample::options()).unwrap(), &steps, &probes);
    }
}
