//! Appends: expectations, idempotency, refusals, and many writers at once.

use domain::limits::{EVENT_BODY_BYTES_MAX, EVENTS_PER_APPEND_MAX};

use super::on_each;
use crate::{
    Append, AppendError, EventFilter, EventLog, Expected, InvalidAppend, Json, NewEvent, Position, Seq,
    chain, sample, verify_stream,
};

/// Appends one note to a stream that has `before` events, and looks at the answer.
async fn check_expected(log: &EventLog, before: u64, expected: Expected, is_taken: bool) {
    let stream = sample::thread(&format!("t{before}-{}", log.head()));
    if before > 0 {
        sample::add(log, &stream, 1..=before).await.unwrap();
    }
    let answer = log.append(sample::to(&stream, expected, sample::notes([99]))).await;
    match answer {
        Ok(appended) => {
            assert!(is_taken, "{expected:?} was taken after {before}");
            assert_eq!(appended.seq(), Seq::new(before + 1));
            assert!(!appended.is_repeat);
        }
        Err(AppendError::Conflict { actual, .. }) => {
            assert!(!is_taken, "{expected:?} was refused after {before}");
            assert_eq!(actual, (before > 0).then(|| Seq::new(before)));
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn expectations_hold_or_give_the_true_seq() {
    on_each(|log| async move {
        for before in [0, 1, 3] {
            check_expected(&log, before, Expected::Any, true).await;
            check_expected(&log, before, Expected::NoStream, before == 0).await;
            for seq in 0..5 {
                check_expected(&log, before, Expected::Exact(Seq::new(seq)), seq == before).await;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn an_append_is_all_or_nothing_and_comes_back_as_it_is_stored() {
    on_each(|log| async move {
        let stream = sample::thread("t");
        let appended = sample::add(&log, &stream, 1..=3).await.unwrap();
        let stored = log.read_stream(&stream, Seq::ZERO, 10).unwrap();
        assert_eq!(appended.events.iter().map(|event| (**event).clone()).collect::<Vec<_>>(), stored);
        let refused = log.append(sample::to(&stream, Expected::NoStream, sample::notes(4..=5))).await;
        assert!(matches!(refused, Err(AppendError::Conflict { .. })));
        assert_eq!(log.head(), Position::new(3));
        assert_eq!(stored[0].recorded_at, sample::time());
        verify_stream(chain::START, &stored).unwrap();
    })
    .await;
}

fn keyed(stream: &str, key: &str, events: Vec<NewEvent>) -> Append {
    Append { idempotency_key: sample::key(key), ..sample::to(&sample::thread(stream), Expected::Any, events) }
}

#[tokio::test]
async fn a_repeat_gets_the_first_answer_even_when_its_expectation_no_longer_holds() {
    on_each(|log| async move {
        let first = Append { expected: Expected::NoStream, ..keyed("t", "k", sample::notes(1..=2)) };
        let answer = log.append(first.clone()).await.unwrap();
        sample::add(&log, &sample::thread("t"), [3]).await.unwrap();
        // Whoever tries again makes new ids and times for the same content.
        let mut again = first;
        for event in &mut again.events {
            event.event_id = sample::note(77).event_id;
            event.created_at = sample::time() + jiff::SignedDuration::from_secs(5);
            event.correlation_id = Some("another trace".to_owned());
        }
        let repeat = log.append(again).await.unwrap();
        assert!(repeat.is_repeat && !answer.is_repeat);
        assert_eq!(repeat.events, answer.events);
        assert_eq!(log.head(), Position::new(3));
    })
    .await;
}

#[tokio::test]
async fn a_key_belongs_to_its_content_and_its_stream() {
    on_each(|log| async move {
        log.append(keyed("t", "k", sample::notes([1]))).await.unwrap();
        for events in [sample::notes([2]), sample::notes([1, 1]), vec![other_type(1)]] {
            let refused = log.append(keyed("t", "k", events)).await.unwrap_err();
            assert!(
                matches!(&refused, AppendError::KeyReused { first, .. } if *first == Position::new(1)),
                "{refused}"
            );
        }
        assert!(!log.append(keyed("u", "k", sample::notes([2]))).await.unwrap().is_repeat);
        assert!(!log.append(keyed("t", "l", sample::notes([1]))).await.unwrap().is_repeat);
    })
    .await;
}

fn other_type(number: u64) -> NewEvent {
    NewEvent { event_type: "other".to_owned(), ..sample::note(number) }
}

/// Repeats and conflicts within one group: all are queued before the writer can answer.
#[tokio::test]
async fn appends_that_share_a_commit_see_each_other() {
    on_each(|log| async move {
        let appends = (0..40).map(|_| {
            let append = Append { expected: Expected::NoStream, ..keyed("t", "k", sample::notes([1])) };
            let log = log.clone();
            async move { log.append(append).await.unwrap() }
        });
        let answers = join_all(appends).await;
        assert_eq!(answers.iter().filter(|answer| !answer.is_repeat).count(), 1);
        assert!(answers.iter().all(|answer| answer.events == answers[0].events));
        let starts = (0..40).map(|number| {
            let append = sample::to(&sample::thread("u"), Expected::NoStream, sample::notes([number]));
            let log = log.clone();
            async move { log.append(append).await }
        });
        let answers = join_all(starts).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        for refused in answers.into_iter().filter_map(Result::err) {
            assert!(
                matches!(&refused, AppendError::Conflict { actual, .. } if *actual == Some(Seq::new(1))),
                "{refused}"
            );
        }
        assert_eq!(log.head(), Position::new(2));
    })
    .await;
}

async fn join_all<F>(futures: impl Iterator<Item = F>) -> Vec<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let tasks: Vec<_> = futures.map(tokio::spawn).collect();
    let mut outputs = Vec::new();
    for task in tasks {
        outputs.push(task.await.unwrap());
    }
    outputs
}

async fn check_invalid(log: &EventLog, events: Vec<NewEvent>, expected: InvalidAppend) {
    let refused = log.append(sample::to(&sample::thread("t"), Expected::Any, events)).await.unwrap_err();
    let AppendError::Invalid { reason, .. } = refused else { panic!("{refused}") };
    assert_eq!(reason, expected);
}

fn with(change: impl FnOnce(&mut NewEvent)) -> Vec<NewEvent> {
    let mut event = sample::note(2);
    change(&mut event);
    vec![sample::note(1), event]
}

#[tokio::test]
async fn what_breaks_a_rule_is_refused_by_the_rule() {
    on_each(|log| async move {
        use InvalidAppend as I;
        check_invalid(&log, Vec::new(), I::NoEvents).await;
        let count = EVENTS_PER_APPEND_MAX as u64;
        check_invalid(&log, sample::notes(0..=count), I::TooManyEvents { count: EVENTS_PER_APPEND_MAX + 1 })
            .await;
        let events = with(|event| event.event_type.clear());
        check_invalid(&log, events, I::EventType { index: 1, chars: 0 }).await;
        let events = with(|event| event.event_type = "é".repeat(33));
        check_invalid(&log, events, I::EventType { index: 1, chars: 33 }).await;
        let events = with(|event| event.category = "c".repeat(17));
        check_invalid(&log, events, I::Category { index: 1, chars: 17 }).await;
        let events = with(|event| event.correlation_id = Some("c".repeat(129)));
        check_invalid(&log, events, I::CorrelationId { index: 1, chars: 129 }).await;
        let events = with(|event| event.metadata = Json::parse("[]").unwrap());
        check_invalid(&log, events, I::MetadataNotObject { index: 1 }).await;
        // Two quotes and the empty object make four bytes more.
        let events = with(|event| event.content = json_text(EVENT_BODY_BYTES_MAX - 3));
        check_invalid(&log, events, I::BodyTooLarge { index: 1, bytes: EVENT_BODY_BYTES_MAX + 1 }).await;
        assert_eq!(log.head(), Position::ZERO);
        let events = with(|event| {
            event.content = json_text(EVENT_BODY_BYTES_MAX - 4);
            event.event_type = "é".repeat(32);
            event.category = "é".repeat(16);
        });
        log.append(sample::to(&sample::thread("t"), Expected::NoStream, events)).await.unwrap();
    })
    .await;
}

fn json_text(chars: usize) -> Json {
    Json::from_serialize(&"x".repeat(chars)).unwrap()
}

// Field report 35, at its full size: one run, and batches that have events of three.
#[tokio::test]
async fn sixteen_writers_put_a_thousand_events_each_into_one_run() {
    const WRITERS: u64 = 16;
    const BATCHES: u64 = 40;
    const BATCH: u64 = 25;
    let (log, stream) = (sample::memory_log(), sample::thread("t"));
    let writers = (0..WRITERS).map(|writer| {
        let (log, stream) = (log.clone(), stream.clone());
        async move {
            for batch in 0..BATCHES {
                let runs: &[&str] = if batch % 10 == 0 { &["other", &format!("w{writer}")] } else { &[] };
                let of_r = std::iter::repeat_n("r", BATCH as usize);
                let events = of_r.chain(runs.iter().copied()).map(of_run).collect();
                log.append(sample::to(&stream, Expected::Any, events)).await.unwrap();
            }
        }
    });
    join_all(writers).await;
    let total = WRITERS * (BATCHES * BATCH + 2 * BATCHES / 10);
    let all = log.read_stream(&stream, Seq::ZERO, usize::MAX).unwrap();
    assert_eq!(all.iter().map(|event| event.seq.get()).collect::<Vec<_>>(), (1..=total).collect::<Vec<_>>());
    for (run, expected) in [("r", WRITERS * BATCHES * BATCH), ("other", WRITERS * 4), ("w3", 4)] {
        let (thread_id, run_id) = (stream.thread_id().unwrap(), sample::run_id(run));
        let events =
            log.read_run(thread_id, &run_id, &EventFilter::default(), Seq::ZERO, usize::MAX).unwrap();
        assert_eq!(events.len() as u64, expected, "{run}");
        assert!(events.iter().all(|event| event.scope.run_id.as_ref() == Some(&run_id)));
        assert!(events.is_sorted_by(|one, next| one.seq < next.seq), "{run}");
    }
}

fn of_run(run: &str) -> NewEvent {
    let mut event = sample::note(7);
    event.scope.run_id = Some(sample::run_id(run));
    event
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_writers_leave_no_gap_and_no_duplicate() {
    const WRITERS: u64 = 16;
    const APPENDS: u64 = 40;
    on_each(|log| async move {
        let writers = (0..WRITERS).map(|writer| {
            let log = log.clone();
            async move {
                let own = sample::thread(&format!("own-{writer}"));
                for number in 0..APPENDS {
                    let expected = Expected::Exact(Seq::new(number * 2));
                    let events = sample::notes([number, number]);
                    log.append(sample::to(&own, expected, events)).await.unwrap();
                    sample::add(&log, &sample::thread("shared"), [number]).await.unwrap();
                }
            }
        });
        join_all(writers).await;
        let total = WRITERS * APPENDS * 3;
        let all = log.read_all(Position::ZERO, usize::MAX).unwrap();
        let positions: Vec<_> = all.iter().map(|event| event.position.get()).collect();
        assert_eq!(positions, (1..=total).collect::<Vec<_>>());
        for stream in log.streams(None, usize::MAX).unwrap() {
            let events = log.read_stream(&stream.stream, Seq::ZERO, usize::MAX).unwrap();
            let seqs: Vec<_> = events.iter().map(|event| event.seq.get()).collect();
            assert_eq!(seqs, (1..=stream.seq.get()).collect::<Vec<_>>());
            assert_eq!(events.last().unwrap().position, stream.position);
            verify_stream(chain::START, &events).unwrap();
        }
        let stats = log.stats();
        assert_eq!((stats.events, stats.appends), (total, WRITERS * APPENDS * 2));
        assert!(stats.commits > 0 && stats.commits <= stats.appends, "{stats:?}");
    })
    .await;
}
