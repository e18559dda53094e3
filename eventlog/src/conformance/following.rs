//! Subscriptions: catch up, follow, lag, cancel, close.

use std::time::Duration;

use super::on_each;
use crate::{EventLog, Position, ReadError, Seq, SubscribeFrom, Subscription, sample};

fn all(log: &EventLog, after: u64) -> Subscription {
    log.subscribe(SubscribeFrom::All { after: Position::new(after) })
}

async fn positions(subscription: &mut Subscription, count: usize) -> Vec<u64> {
    let mut seen = Vec::new();
    while seen.len() < count {
        seen.push(subscription.next().await.unwrap().position.get());
    }
    seen
}

#[tokio::test]
async fn a_subscriber_catches_up_and_follows() {
    on_each(|log| async move {
        sample::add(&log, &sample::thread("t"), 1..=3).await.unwrap();
        let mut subscription = all(&log, 1);
        assert_eq!(positions(&mut subscription, 2).await, [2, 3]);
        let writer = tokio::spawn({
            let log = log.clone();
            async move { sample::add(&log, &sample::thread("u"), 1..=2).await.unwrap() }
        });
        assert_eq!(positions(&mut subscription, 2).await, [4, 5]);
        writer.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_stream_is_followed_before_it_exists_and_without_the_others() {
    on_each(|log| async move {
        let (stream, other) = (sample::thread("t"), sample::thread("other"));
        let from = SubscribeFrom::Stream { id: stream.clone(), after: Seq::ZERO };
        let mut subscription = log.subscribe(from);
        assert_eq!(subscription.try_next_page(10).unwrap(), Vec::new());
        for number in 1..=5 {
            sample::add(&log, &other, [number]).await.unwrap();
            sample::add(&log, &stream, [number]).await.unwrap();
        }
        for seq in 1..=5 {
            let event = subscription.next().await.unwrap();
            assert_eq!((event.seq, &event.stream), (Seq::new(seq), &stream));
        }
        assert_eq!(subscription.try_next_page(10).unwrap(), Vec::new());
    })
    .await;
}

#[tokio::test]
async fn a_reader_that_lags_misses_nothing() {
    on_each(|log| async move {
        let mut subscription = all(&log, 0);
        for _ in 0..4 {
            sample::add(&log, &sample::thread("t"), 1..=500).await.unwrap();
        }
        assert_eq!(positions(&mut subscription, 10).await, (1..=10).collect::<Vec<_>>());
        let mut seen = 10;
        while seen < 2_000 {
            let page = subscription.next_page(300).await.unwrap();
            assert!(!page.is_empty() && page.len() <= 300);
            for event in page {
                seen += 1;
                assert_eq!(event.position, Position::new(seen));
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_come_in_order_while_many_write() {
    on_each(|log| async move {
        let mut subscription = all(&log, 0);
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let log = log.clone();
                tokio::spawn(async move {
                    let stream = sample::thread(&format!("t{writer}"));
                    for number in 0..25 {
                        sample::add(&log, &stream, [number]).await.unwrap();
                    }
                })
            })
            .collect();
        for position in 1..=200 {
            let event = subscription.next().await.unwrap();
            assert_eq!(event.position, Position::new(position));
            // What is given out is part of what is durable.
            assert!(log.read_all(Position::new(position - 1), 1).unwrap() == [event]);
        }
        for writer in writers {
            writer.await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_wait_that_is_cancelled_loses_nothing() {
    on_each(|log| async move {
        let mut subscription = all(&log, 0);
        for number in 1..=5 {
            let wait = tokio::time::timeout(Duration::from_millis(1), subscription.next()).await;
            assert!(wait.is_err(), "there is nothing to read yet");
            sample::add(&log, &sample::thread("t"), [number]).await.unwrap();
            assert_eq!(subscription.next().await.unwrap().position, Position::new(number));
        }
    })
    .await;
}

#[tokio::test]
async fn a_closed_log_ends_its_subscriptions() {
    on_each(|log| async move {
        let mut subscription = all(&log, 0);
        let waiting = tokio::spawn(async move { subscription.next().await });
        log.close().await;
        assert!(matches!(waiting.await.unwrap(), Err(ReadError::Closed)));
    })
    .await;
}
