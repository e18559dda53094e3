//! The index against a plain list of what was added.

use std::{ops::ControlFlow, sync::Arc};

use domain::ids::DelegationId;
use proptest::prelude::*;

use super::*;
use crate::read::PAGE_BYTES_MAX;
use crate::{
    keys::{INDEX_KEYSPACES, run_entry::TypeRef},
    position::Position,
    sample,
    store::StreamSummary,
};

const STREAMS: u8 = 3;
const LIMIT: usize = 3;

/// An event as the model has it.
#[derive(Debug, Clone)]
struct Known {
    event: Indexed,
    record: Vec<u8>,
    address: u64,
}

/// Everything that was added.
#[derive(Default)]
struct Model {
    events: Vec<Known>,
    commits: Vec<IndexedCommit>,
}

/// What one commit of a history has: a stream and events of a run, a task and a type.
type Step = (u8, Vec<(Option<u8>, Option<u8>, u8)>);

fn hash(kind: u8, number: u8) -> [u8; 16] {
    [kind, number, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]
}

fn delegation(number: u8) -> DelegationId {
    sample::delegation_id(u128::from(number) + 1)
}

impl Model {
    fn end(&self) -> Checkpoint {
        self.commits.last().map_or(Checkpoint::EMPTY, IndexedCommit::checkpoint)
    }

    fn last_seq(&self, stream: u8) -> u64 {
        self.events.iter().filter(|known| known.event.stream == hash(1, stream)).count() as u64
    }

    /// Makes the commit that comes next.
    fn commit(&mut self, (stream, events): &Step) -> IndexedCommit {
        let Checkpoint { head, end: address } = self.end();
        let stream_id = sample::thread(&format!("t{stream}"));
        let (mut frame, mut indexed) = (vec![b'#'; 5], Vec::new());
        for (run, task, event_type) in events {
            let seq = Seq::new(self.last_seq(*stream) + 1);
            let record = format!("{stream}/{}", seq.get()).repeat(1 + usize::from(*event_type)).into_bytes();
            let event = Indexed {
                seq,
                stream: hash(1, *stream),
                run: run.map(|run| hash(2, run + 10 * stream)),
                task: task.map(|task| hash(3, task + 10 * stream)),
                delegation_id: task.map(delegation),
                event_type: Type::Tag([*event_type; 8]),
                offset: u32::try_from(frame.len()).unwrap(),
                length: u32::try_from(record.len()).unwrap(),
            };
            let at = address + u64::from(event.offset);
            frame.extend_from_slice(&record);
            self.events.push(Known { event: event.clone(), record, address: at });
            indexed.push(event);
        }
        let (first, last) = (head.position.next(), Position::new(head.position.get() + events.len() as u64));
        let tail = Tail { seq: Seq::new(self.last_seq(*stream)), hash: [*stream; 32], position: last };
        let number = u8::try_from(self.commits.len() % 256).unwrap();
        let key_use = KeyUse { digest: [number; 32], is_keyed: true, first, count: 1 };
        let commit = IndexedCommit {
            commit: Commit { first, last, chain: [number; 32], committed_at: sample::time() },
            address,
            frame: frame.into(),
            events: indexed,
            tails: vec![(stream_id, tail)],
            keys: vec![([number; 32], key_use)],
        };
        self.commits.push(commit.clone());
        commit
    }

    /// The records of the events that are wanted, after a seq.
    fn wanted(&self, after: Seq, limit: usize, is_wanted: impl Fn(&Indexed) -> bool) -> Vec<Vec<u8>> {
        let wanted = self.events.iter().filter(|known| known.event.seq > after && is_wanted(&known.event));
        wanted.take(limit).map(|known| known.record.clone()).collect()
    }

    /// The records that places stand for, in order.
    fn records(&self, places: &Places) -> Vec<Vec<u8>> {
        let stored = places.stored.iter().map(|location| {
            let known = self.events.iter().find(|known| known.address == location.address).unwrap();
            assert_eq!(known.record.len(), location.length as usize);
            known.record.clone()
        });
        stored.chain(places.recent.iter().map(|record| record.bytes().to_vec())).collect()
    }
}

fn count(places: &Places) -> usize {
    places.stored.len() + places.recent.len()
}

fn index(engine: &Engine, flush_bytes: usize) -> Index {
    Index::with_limit(engine.clone(), flush_bytes).unwrap()
}

fn task_records(index: &Index, task: [u8; 16], after: Seq, limit: usize) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    let mut visit = |record: &[u8]| {
        records.push(record.to_vec());
        Ok(if records.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    };
    index.task_records(task, after, &mut visit).unwrap();
    records
}

/// Asks for every page of every stream, run and task.
fn check_scopes(index: &Index, model: &Model) {
    for stream in 0..STREAMS {
        for after in (0..=model.last_seq(stream) + 1).map(Seq::new) {
            for limit in [LIMIT, usize::MAX] {
                let scope = hash(1, stream);
                let found = model.records(&index.stream_places(scope, after, limit).unwrap());
                assert_eq!(found, model.wanted(after, limit, |event| event.stream == scope));
                check_run(index, model, hash(2, 10 * stream), after, limit);
                let task = hash(3, 10 * stream);
                let found = task_records(index, task, after, limit);
                assert_eq!(found, model.wanted(after, limit, |event| event.task == Some(task)));
            }
        }
    }
}

fn check_run(index: &Index, model: &Model, run: [u8; 16], after: Seq, limit: usize) {
    let find = |is_wanted: &read::IsWanted<'_>| {
        model.records(&index.run_places(run, after, limit, is_wanted).unwrap())
    };
    let all = model.wanted(after, limit, |event| event.run == Some(run));
    let count = model.events.iter().filter(|known| known.event.run == Some(run)).count();
    assert_eq!(index.run_count(run).unwrap(), count as u64);
    assert_eq!(find(&|_, _| true), all);
    let of_type = find(&|_, event_type| event_type == TypeRef::Tag([1; 8]));
    let is_type = |event: &Indexed| event.run == Some(run) && event.event_type == Type::Tag([1; 8]);
    assert_eq!(of_type, model.wanted(after, limit, is_type));
    let of_delegation = find(&|delegation_id, _| delegation_id == Some(delegation(0)));
    let is_delegation =
        |event: &Indexed| event.run == Some(run) && event.delegation_id == Some(delegation(0));
    assert_eq!(of_delegation, model.wanted(after, limit, is_delegation));
}

fn check_rest(index: &Index, model: &Model) {
    assert_eq!(index.end(), model.end());
    for known in &model.commits {
        let Commit { first, last, .. } = known.commit;
        assert_eq!(index.commit_at(last).unwrap(), Some(known.commit));
        for position in first.get()..=last.get() {
            let located = index.locate(Position::new(position)).unwrap().unwrap();
            assert_eq!((located.commit, located.address), (known.commit, known.address));
            assert!(located.frame.is_none_or(|frame| frame == known.frame));
        }
        assert!(first == last || index.commit_at(first).unwrap().is_none());
    }
    assert!(index.locate(Position::ZERO).unwrap().is_none());
    assert!(index.locate(model.end().head.position.next()).unwrap().is_none());
    check_streams(index, model);
}

fn check_streams(index: &Index, model: &Model) {
    let tail_of = |stream: &StreamId| {
        model.commits.iter().rev().find_map(|one| one.tails.iter().find(|(of, _)| of == stream)).cloned()
    };
    let streams: Vec<_> = (0..STREAMS).map(|stream| sample::thread(&format!("t{stream}"))).collect();
    let expected: Vec<_> = streams
        .iter()
        .filter_map(tail_of)
        .map(|(stream, tail)| StreamSummary { stream, seq: tail.seq, position: tail.position })
        .collect();
    for (stream, tail) in streams.iter().map(|stream| (stream, tail_of(stream).map(|(_, tail)| tail))) {
        assert_eq!(index.tail(stream).unwrap(), tail);
        let after: Vec<_> = expected.iter().filter(|one| one.stream > *stream).cloned().collect();
        assert_eq!(
            index.streams(Some(stream), 1).unwrap(),
            after.iter().take(1).cloned().collect::<Vec<_>>()
        );
        assert_eq!(index.streams(Some(stream), 10).unwrap(), after);
    }
    assert_eq!(index.streams(None, 10).unwrap(), expected);
    for (hash, key_use) in model.commits.iter().flat_map(|one| &one.keys) {
        assert_eq!(index.key_use(*hash).unwrap(), Some(*key_use));
    }
    assert_eq!(index.key_use([255; 32]).unwrap(), None);
}

fn history() -> impl Strategy<Value = Vec<Step>> {
    let event = (prop::option::of(0_u8..2), prop::option::of(0_u8..2), 0_u8..3);
    // A task belongs to a run.
    let event = event.prop_map(|(run, task, event_type)| (run, run.and(task), event_type));
    prop::collection::vec((0..STREAMS, prop::collection::vec(event, 1..5)), 1..14)
}

/// What happens to the index after a commit.
fn turns() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0_u8..5, 14)
}

/// Adds a history, with loads and restarts in between, and asks for everything at the end of each.
fn check_history(engine: &Engine, steps: &[Step], turns: &[u8], flush_bytes: usize) {
    let mut model = Model::default();
    let mut one = index(engine, flush_bytes);
    for (step, turn) in steps.iter().zip(turns) {
        one.add(model.commit(step)).unwrap();
        match turn {
            0 => one.flush().unwrap(),
            1 => {
                drop(one);
                one = index(engine, flush_bytes);
                let done = one.checkpoint();
                assert_eq!(done, one.end());
                let missing = model.commits.iter().filter(|known| known.address >= done.end).cloned();
                missing.for_each(|known| one.add(known).unwrap());
            }
            _ => {}
        }
    }
    check_scopes(&one, &model);
    check_rest(&one, &model);
    one.flush().unwrap();
    assert_eq!(one.checkpoint(), model.end());
    check_scopes(&one, &model);
    check_rest(&one, &model);
}

proptest! {
    #[test]
    fn everything_is_found_wherever_it_is(
        steps in history(), turns in turns(), flush_bytes in prop_oneof![Just(1), Just(600), Just(usize::MAX)],
    ) {
        check_history(&Engine::in_memory(&INDEX_KEYSPACES), &steps, &turns, flush_bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn everything_is_found_in_tables_on_disk(steps in history(), turns in turns()) {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::open(&folder.path().join("index"), &INDEX_KEYSPACES).unwrap();
        check_history(&engine, &steps, &turns, 600);
        drop(engine);
        let engine = Engine::open(&folder.path().join("index"), &INDEX_KEYSPACES).unwrap();
        let mut model = Model::default();
        steps.iter().take(turns.len()).for_each(|step| drop(model.commit(step)));
        let one = index(&engine, 600);
        check_scopes(&one, &model);
        check_rest(&one, &model);
    }
}

/// A load that a crash cut off before its checkpoint is done again.
#[test]
fn entries_without_their_checkpoint_are_loaded_again() {
    let engine = Engine::in_memory(&INDEX_KEYSPACES);
    let mut model = Model::default();
    let step = (0, vec![(Some(0), Some(0), 1), (Some(0), None, 0)]);
    model.commit(&step);
    engine
        .ingest(keys::TASKS, &mut |put| {
            put(&keys::task_event::encode(hash(3, 0), Seq::new(1)), &model.events[0].record)
        })
        .unwrap();
    let one = index(&engine, usize::MAX);
    assert_eq!(one.checkpoint(), Checkpoint::EMPTY);
    one.add(model.commits[0].clone()).unwrap();
    check_scopes(&one, &model);
    one.flush().unwrap();
    check_scopes(&one, &model);
    check_rest(&one, &model);
}

/// A commit that is answered with an error is not shown, and what was shown before stays.
#[test]
fn after_a_load_that_failed_nothing_more_is_shown() {
    // Without the keyspace of tasks no load succeeds.
    let one = index(&Engine::in_memory(&[INDEX]), 1);
    let mut model = Model::default();
    let step = (0, vec![(Some(0), Some(0), 1)]);
    loop {
        let commit = model.commit(&step);
        if one.add(commit.clone()).is_err() {
            assert!(one.add(commit.clone()).is_err(), "it stays so");
            assert!(one.commit_at(commit.commit.last).unwrap().is_none());
            break;
        }
        assert_eq!(one.end(), model.end());
    }
    model.commits.pop();
    model.events.pop();
    assert!(!model.commits.is_empty());
    let places = one.stream_places(hash(1, 0), Seq::ZERO, usize::MAX).unwrap();
    assert_eq!(count(&places), model.events.len());
    check_rest(&one, &model);
}

/// Readers that read while commits move from memory into tables miss nothing and see nothing twice.
#[test]
fn readers_see_every_event_once_while_tables_are_made() {
    let one = Arc::new(index(&Engine::in_memory(&INDEX_KEYSPACES), 2_000));
    let mut model = Model::default();
    let commits: Vec<_> = (0..400).map(|_| model.commit(&(0, vec![(Some(0), Some(0), 0); 3]))).collect();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while seen < 1_200 {
                let places = count(&one.stream_places(hash(1, 0), Seq::ZERO, usize::MAX).unwrap());
                let copies = task_records(&one, hash(3, 0), Seq::ZERO, usize::MAX);
                let expected = model.wanted(Seq::ZERO, copies.len(), |_| true);
                assert!(copies == expected && places >= seen && copies.len() >= places);
                seen = places;
            }
        });
        for commit in commits {
            one.add(commit).unwrap();
        }
        reader.join().unwrap();
    });
}

/// A page has room for two of these, however many rows are asked for.
#[test]
fn a_page_has_no_more_places_than_room_for_their_bytes() {
    const BYTES: usize = PAGE_BYTES_MAX / 2;
    let one = index(&Engine::in_memory(&INDEX_KEYSPACES), usize::MAX);
    let mut commit = Model::default().commit(&(0, vec![(Some(0), Some(0), 0); 5]));
    commit.frame = vec![0; 5 * BYTES].into();
    for (event, at) in commit.events.iter_mut().zip((0..).step_by(BYTES)) {
        (event.offset, event.length) = (at, BYTES as u32);
    }
    one.add(commit).unwrap();
    let check = |recent: usize, stored: usize| {
        for places in [
            one.stream_places(hash(1, 0), Seq::ZERO, usize::MAX).unwrap(),
            one.run_places(hash(2, 0), Seq::ZERO, usize::MAX, &|_, _| true).unwrap(),
        ] {
            assert_eq!((places.recent.len(), places.stored.len()), (recent, stored));
        }
    };
    check(2, 0);
    one.flush().unwrap();
    check(0, 2);
}
