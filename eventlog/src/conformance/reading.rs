//! Reads: cursors, filters, exact text, lists of streams, and what verification finds.

use domain::ids::ThreadId;

use super::on_each;
use crate::{
    Append, EventFilter, EventLog, Expected, Fault, Json, NewEvent, Position, RecordedEvent, Scope, Seq,
    StreamId, SubscribeFrom, chain, sample, verify_stream,
};

fn scoped(
    number: u64,
    event_type: &str,
    run: &str,
    task: Option<&str>,
    delegation: Option<u128>,
) -> NewEvent {
    NewEvent {
        event_type: event_type.to_owned(),
        scope: Scope {
            run_id: Some(sample::run_id(run)),
            task_id: task.map(sample::task_id),
            delegation_id: delegation.map(sample::delegation_id),
        },
        ..sample::note(number)
    }
}

/// Two runs that use the same provider id for a task, and another thread with the same names.
async fn fill(log: &EventLog) {
    let events = vec![
        sample::note(1),
        scoped(2, "start", "r1", None, None),
        scoped(3, "step", "r1", Some("a"), Some(1)),
        scoped(4, "step", "r1", Some("b"), Some(2)),
        scoped(5, "step", "r2", Some("a"), Some(3)),
        scoped(6, "step", "r1", Some("a"), Some(1)),
        scoped(7, "end", "r1", Some("a"), Some(1)),
        scoped(8, "end", "r1", None, None),
    ];
    log.append(sample::to(&sample::thread("t"), Expected::NoStream, events.clone())).await.unwrap();
    log.append(sample::to(&sample::thread("u"), Expected::NoStream, events)).await.unwrap();
}

struct Query {
    run: &'static str,
    types: Option<&'static [&'static str]>,
    task: Option<&'static str>,
    delegation: Option<u128>,
    after: u64,
    limit: usize,
}

const ALL: Query = Query { run: "r1", types: None, task: None, delegation: None, after: 0, limit: 100 };

#[track_caller]
fn check(log: &EventLog, query: &Query, expected: &[u64]) {
    let filter = EventFilter {
        event_types: query.types.map(|types| types.iter().map(|one| (*one).to_owned()).collect()),
        task_id: query.task.map(sample::task_id),
        delegation_id: query.delegation.map(sample::delegation_id),
    };
    let (thread_id, run_id) = (ThreadId::new("t").unwrap(), sample::run_id(query.run));
    let events = log.read_run(&thread_id, &run_id, &filter, Seq::new(query.after), query.limit).unwrap();
    assert!(events.iter().all(|event| event.stream == sample::thread("t") && filter.matches(event)));
    let seqs: Vec<_> = events.iter().map(|event| event.seq.get()).collect();
    assert_eq!(seqs, expected);
}

// Facts §7.2: filters apply before the limit, `after` is exclusive, ascending.
#[tokio::test]
async fn a_run_is_read_with_filters_before_the_limit() {
    on_each(|log| async move {
        fill(&log).await;
        check(&log, &ALL, &[2, 3, 4, 6, 7, 8]);
        check(&log, &Query { run: "r2", ..ALL }, &[5]);
        check(&log, &Query { run: "r3", ..ALL }, &[]);
        check(&log, &Query { limit: 2, ..ALL }, &[2, 3]);
        check(&log, &Query { after: 3, limit: 2, ..ALL }, &[4, 6]);
        check(&log, &Query { after: 5, ..ALL }, &[6, 7, 8]);
        check(&log, &Query { after: 100, ..ALL }, &[]);
        check(&log, &Query { limit: 0, ..ALL }, &[]);
        check(&log, &Query { types: Some(&["step"]), ..ALL }, &[3, 4, 6]);
        check(&log, &Query { types: Some(&["end"]), limit: 1, ..ALL }, &[7]);
        check(&log, &Query { types: Some(&["start", "end"]), after: 2, ..ALL }, &[7, 8]);
        check(&log, &Query { types: Some(&[]), ..ALL }, &[]);
        check(&log, &Query { task: Some("a"), ..ALL }, &[3, 6, 7]);
        check(&log, &Query { task: Some("a"), run: "r2", ..ALL }, &[5]);
        check(&log, &Query { task: Some("a"), types: Some(&["step"]), after: 3, limit: 1, ..ALL }, &[6]);
        check(&log, &Query { task: Some("c"), ..ALL }, &[]);
        check(&log, &Query { delegation: Some(1), ..ALL }, &[3, 6, 7]);
        check(&log, &Query { delegation: Some(3), ..ALL }, &[]);
        check(&log, &Query { task: Some("a"), delegation: Some(2), ..ALL }, &[]);
        check(&log, &Query { types: Some(&["end"]), delegation: Some(1), ..ALL }, &[7]);
    })
    .await;
}

#[tokio::test]
async fn pages_join_without_gap_or_overlap() {
    on_each(|log| async move {
        for number in 1..=30 {
            let stream = sample::thread(if number % 3 == 0 { "u" } else { "t" });
            sample::add(&log, &stream, [number]).await.unwrap();
        }
        for limit in [1, 3, 7, 100] {
            let (mut after, mut seen) = (Position::ZERO, Vec::new());
            loop {
                let page = log.read_all(after, limit).unwrap();
                assert!(page.len() <= limit);
                let Some(last) = page.last() else { break };
                after = last.position;
                seen.extend(page.iter().map(|event| event.position.get()));
            }
            assert_eq!(seen, (1..=30).collect::<Vec<_>>());
        }
        let page = log.read_stream(&sample::thread("u"), Seq::new(3), 4).unwrap();
        let positions: Vec<_> = page.iter().map(|event| event.position.get()).collect();
        assert_eq!(positions, [12, 15, 18, 21]);
    })
    .await;
}

/// Reads page by page until a page is empty. Gives the size of each page.
fn page_sizes(mut read: impl FnMut(u64) -> Vec<RecordedEvent>) -> Vec<usize> {
    let (mut sizes, mut seen) = (Vec::new(), 0);
    loop {
        let page = read(seen);
        let numbers: Vec<u64> = page.iter().map(|event| event.position.get()).collect();
        assert_eq!(numbers, (seen + 1..=seen + page.len() as u64).collect::<Vec<_>>());
        if page.is_empty() {
            return sizes;
        }
        seen += page.len() as u64;
        sizes.push(page.len());
    }
}

#[tokio::test]
async fn a_page_is_bounded_by_bytes_too_and_only_an_empty_one_is_the_end() {
    const BODY_BYTES: usize = 3 * 1024 * 1024;
    on_each(|log| async move {
        let stream = sample::thread("t");
        let large = |number| NewEvent {
            content: Json::from_serialize(&"x".repeat(BODY_BYTES)).unwrap(),
            ..scoped(number, "step", "r1", Some("a"), Some(1))
        };
        let append = |numbers: std::ops::RangeInclusive<u64>| Append {
            idempotency_key: sample::key(&numbers.start().to_string()),
            ..sample::to(&stream, Expected::Any, numbers.map(large).collect())
        };
        log.append(append(1..=5)).await.unwrap();
        log.append(append(6..=7)).await.unwrap();
        let (thread_id, run_id) = (ThreadId::new("t").unwrap(), sample::run_id("r1"));
        let whole = EventFilter::default();
        let of_task = EventFilter { task_id: Some(sample::task_id("a")), ..EventFilter::default() };
        let expected = [3, 3, 1];
        assert_eq!(page_sizes(|after| log.read_all(after.into(), 100).unwrap()), expected);
        assert_eq!(page_sizes(|after| log.read_stream(&stream, after.into(), 100).unwrap()), expected);
        for filter in [&whole, &of_task] {
            let read = |after: u64| log.read_run(&thread_id, &run_id, filter, after.into(), 100).unwrap();
            assert_eq!(page_sizes(read), expected);
        }
        let mut replay = log.replay(Position::ZERO).unwrap();
        assert_eq!(page_sizes(|_| replay.next_page(100).unwrap().to_vec()), expected);
        let mut following = log.subscribe(SubscribeFrom::All { after: Position::ZERO });
        assert_eq!(page_sizes(|_| following.try_next_page(100).unwrap()), expected);
        assert_eq!(page_sizes(|after| log.read_all(after.into(), 1).unwrap()), [1; 7], "never an empty page");
        let repeat = log.append(append(1..=5)).await.unwrap();
        assert!(repeat.is_repeat);
        assert_eq!(repeat.events.len(), 5, "a repeat gets its whole answer");
    })
    .await;
}

#[tokio::test]
async fn what_is_not_there_reads_as_nothing() {
    on_each(|log| async move {
        let stream = sample::thread("t");
        assert_eq!(log.head(), Position::ZERO);
        assert_eq!(log.stream_tail(&stream).unwrap(), None);
        assert_eq!(log.read_all(Position::ZERO, 10).unwrap(), Vec::new());
        assert_eq!(log.read_stream(&stream, Seq::ZERO, 10).unwrap(), Vec::new());
        assert_eq!(log.streams(None, 10).unwrap(), Vec::new());
        check(&log, &ALL, &[]);
        sample::add(&log, &stream, 1..=2).await.unwrap();
        assert_eq!(log.stream_tail(&stream).unwrap(), Some(Seq::new(2)));
        assert_eq!(log.stream_tail(&sample::thread("t2")).unwrap(), None);
        assert_eq!(log.read_stream(&sample::thread("t2"), Seq::ZERO, 10).unwrap(), Vec::new());
    })
    .await;
}

#[tokio::test]
async fn streams_are_listed_by_name_with_a_cursor() {
    on_each(|log| async move {
        for stream in [sample::thread("b"), StreamId::Registry, sample::thread("a"), sample::thread("a-b")] {
            sample::add(&log, &stream, 1..=2).await.unwrap();
        }
        let list = |after: Option<&StreamId>, limit| -> Vec<String> {
            let streams = log.streams(after, limit).unwrap();
            assert!(streams.iter().all(|stream| stream.seq == Seq::new(2)));
            streams.into_iter().map(|stream| stream.stream.to_string()).collect()
        };
        assert_eq!(list(None, 10), ["registry", "thread/a", "thread/a-b", "thread/b"]);
        assert_eq!(list(None, 2), ["registry", "thread/a"]);
        assert_eq!(list(Some(&sample::thread("a")), 10), ["thread/a-b", "thread/b"]);
        assert_eq!(list(Some(&sample::thread("aa")), 10), ["thread/b"]);
    })
    .await;
}

// Facts §7.3: line breaks of Unicode lost a record in the reference's JSONL store.
#[tokio::test]
async fn every_text_comes_back_byte_for_byte() {
    on_each(|log| async move {
        let texts = [
            "\"\u{2028}\u{2029}\u{85}\"",
            "\"\\u0000\\u001f\\ud83d\\ude00\"",
            "\"\u{1F600}\u{10FFFF}e\u{301}\"",
            "{\"z\":18446744073709551617,\"a\":-9007199254740993,\"z\":1.10e-400}",
            "[ 1 , {\"a\" :\n null} ]",
            "\"\"",
        ];
        let events: Vec<NewEvent> = texts
            .iter()
            .map(|text| NewEvent {
                content: Json::parse(text).unwrap(),
                metadata: Json::parse(&format!("{{\"copy\":{text}}}")).unwrap(),
                event_type: "\u{2028}\u{1F600}".to_owned(),
                ..sample::note(1)
            })
            .collect();
        log.append(sample::to(&sample::thread("t"), Expected::Any, events)).await.unwrap();
        let stored = log.read_stream(&sample::thread("t"), Seq::ZERO, 100).unwrap();
        let contents: Vec<_> = stored.iter().map(|event| event.content.get()).collect();
        assert_eq!(contents, texts);
        for (event, text) in stored.iter().zip(texts) {
            assert_eq!(event.metadata.get(), format!("{{\"copy\":{text}}}"));
            assert_eq!(event.event_type, "\u{2028}\u{1F600}");
        }
    })
    .await;
}

#[tokio::test]
async fn verification_names_the_first_bad_event() {
    let log = sample::memory_log();
    let stream = sample::thread("t");
    sample::add(&log, &stream, 1..=5).await.unwrap();
    let events = log.read_stream(&stream, Seq::ZERO, 10).unwrap();
    assert_eq!(verify_stream(chain::START, &events), Ok(events[4].hash));
    assert_eq!(verify_stream(events[1].hash, &events[2..]), Ok(events[4].hash));
    let mut changed = events.clone();
    changed[2].content = Json::parse("33").unwrap();
    let broken = verify_stream(chain::START, &changed).unwrap_err();
    assert_eq!((broken.seq, broken.fault), (Seq::new(3), Fault::HashDiffers));
    let mut cut = events;
    cut.remove(2);
    let broken = verify_stream(chain::START, &cut).unwrap_err();
    assert_eq!((broken.seq, broken.fault), (Seq::new(3), Fault::OutOfOrder { found: Seq::new(4) }));
}
