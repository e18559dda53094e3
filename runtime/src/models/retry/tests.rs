use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use proptest::prelude::*;

use super::{super::*, *};

/// Fails in the given ways, one after the other, then replies.
struct Failing {
    kinds: Mutex<VecDeque<(ModelErrorKind, Option<Duration>)>>,
    calls: AtomicUsize,
}

impl Failing {
    fn new(kinds: impl IntoIterator<Item = (ModelErrorKind, Option<Duration>)>) -> Self {
        Self { kinds: Mutex::new(kinds.into_iter().collect()), calls: AtomicUsize::new(0) }
    }
}

impl ChatModel for Failing {
    fn name(&self) -> &str {
        "failing"
    }

    fn call<'a>(
        &'a self,
        _: &'a ModelRequest,
        _: Deltas<'a>,
    ) -> BoxFuture<'a, Result<AssistantMessage, ModelError>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let next = self.kinds.lock().unwrap().pop_front();
        Box::pin(async move {
            next.map_or_else(
                || Ok(AssistantMessage::default()),
                |(kind, retry_after)| Err(ModelError { retry_after, ..ModelError::new(kind, "oh") }),
            )
        })
    }
}

struct Recorded {
    fraction: f64,
    slept: Mutex<Vec<Duration>>,
    is_endless: bool,
}

impl Pauses for Recorded {
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        self.slept.lock().unwrap().push(duration);
        if self.is_endless { Box::pin(std::future::pending()) } else { Box::pin(std::future::ready(())) }
    }

    fn fraction(&self) -> f64 {
        self.fraction
    }
}

fn request() -> ModelRequest {
    ModelRequest { messages: vec![Message::human("hello")], tools: [].into(), agent: AgentTag::Lead }
}

async fn call(model: &Failing, pauses: &Recorded) -> (Result<AssistantMessage, GaveUp>, Vec<RetryNotice>) {
    let notices = Mutex::new(Vec::new());
    let on_retry = |notice: RetryNotice| -> BoxFuture<'_, bool> {
        notices.lock().unwrap().push(notice);
        Box::pin(std::future::ready(true))
    };
    let retries = Retries { policy: &RetryPolicy::default(), pauses, on_retry: &on_retry };
    let outcome = call_with_retries(model, &request(), &no_deltas, retries).await;
    let notices = notices.lock().unwrap().clone();
    (outcome, notices)
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn pauses(fraction: f64) -> Recorded {
    Recorded { fraction, slept: Mutex::new(Vec::new()), is_endless: false }
}

/// The attempts that are made when the model always fails in one way.
#[track_caller]
fn check_attempts(kind: ModelErrorKind, expected: u32) {
    let model = Failing::new(vec![(kind, None); 9]);
    let (outcome, notices) = block_on(call(&model, &pauses(0.0)));
    let gave_up = outcome.unwrap_err();
    assert_eq!((gave_up.attempts, gave_up.error.kind), (expected, kind));
    assert_eq!(model.calls.load(Ordering::SeqCst), expected as usize);
    assert_eq!(notices.len(), expected as usize - 1);
    assert!(notices.iter().all(|notice| notice.max_attempts == expected && notice.reason == kind.reason()));
}

// Chain facts (f) line 86.
#[test]
fn each_sort_of_failure_has_its_attempts() {
    check_attempts(ModelErrorKind::Transient, 3);
    check_attempts(ModelErrorKind::Busy, 3);
    check_attempts(ModelErrorKind::BurstRate, 2);
    check_attempts(ModelErrorKind::StreamStalled, 2);
    for kind in
        [ModelErrorKind::Quota, ModelErrorKind::Auth, ModelErrorKind::InvalidReply, ModelErrorKind::Generic]
    {
        check_attempts(kind, 1);
    }
}

#[track_caller]
fn check_waits(kind: ModelErrorKind, fraction: f64, expected_ms: &[u128]) {
    let pauses = pauses(fraction);
    let _ = block_on(call(&Failing::new(vec![(kind, None); 9]), &pauses));
    let slept: Vec<u128> = pauses.slept.lock().unwrap().iter().map(Duration::as_millis).collect();
    assert_eq!(slept, expected_ms, "{kind:?} {fraction}");
}

// Chain facts (f) line 88: the first wait is 1000 to 3000 ms, after a burst 5000 to 8000 ms.
#[test]
fn waits_grow_from_the_base_to_the_cap() {
    check_waits(ModelErrorKind::Transient, 0.0, &[1_000, 1_000]);
    check_waits(ModelErrorKind::Transient, 0.999_999, &[2_999, 7_999]);
    check_waits(ModelErrorKind::BurstRate, 0.0, &[5_000]);
    check_waits(ModelErrorKind::BurstRate, 0.999_999, &[7_999]);
}

// Chain facts (f) line 87, and field report 11.
#[tokio::test]
async fn a_wait_that_the_provider_asked_for_is_announced_as_it_is_and_slept_at_least() {
    let model = Failing::new([(ModelErrorKind::Transient, Some(Duration::from_secs(12)))]);
    let pauses = pauses(0.5);
    let (outcome, notices) = call(&model, &pauses).await;
    assert!(outcome.is_ok());
    assert_eq!(
        notices,
        [RetryNotice {
            attempt: 1,
            max_attempts: 3,
            wait_ms: 12_000,
            reason: "transient",
            message: "oh".into()
        }]
    );
    assert_eq!(*pauses.slept.lock().unwrap(), [Duration::from_millis(12_250)]);
}

// Field report 22: cancelling something that waits for its next attempt ends it.
#[tokio::test]
async fn dropping_the_future_in_a_wait_asks_nothing_more() {
    let model = Failing::new([(ModelErrorKind::Transient, None)]);
    let pauses = Recorded { is_endless: true, ..pauses(0.0) };
    let outcome = tokio::time::timeout(Duration::from_millis(20), call(&model, &pauses)).await;
    assert!(outcome.is_err());
    assert_eq!(model.calls.load(Ordering::SeqCst), 1);
}

#[test]
fn a_base_above_the_cap_is_the_cap() {
    let policy = RetryPolicy { wait_base: Duration::from_secs(60), ..RetryPolicy::default() };
    let on_retry = |_| -> BoxFuture<'_, bool> { Box::pin(std::future::ready(true)) };
    let pauses = pauses(0.7);
    let retries = Retries { policy: &policy, pauses: &pauses, on_retry: &on_retry };
    let error = ModelError::new(ModelErrorKind::Transient, "oh");
    assert_eq!(wait_before_next(retries, &error, None).duration, policy.wait_cap);
}

proptest! {
    #[test]
    fn a_wait_stays_between_base_and_cap(fraction in 0.0..1.0, previous_ms in 0_u64..100_000) {
        let policy = RetryPolicy::default();
        let on_retry = |_| -> BoxFuture<'_, bool> { Box::pin(std::future::ready(true)) };
        let pauses = pauses(fraction);
        let retries = Retries { policy: &policy, pauses: &pauses, on_retry: &on_retry };
        let error = ModelError::new(ModelErrorKind::Busy, "oh");
        let wait = wait_before_next(retries, &error, Some(Duration::from_millis(previous_ms))).duration;
        prop_assert!(wait >= policy.wait_base && wait <= policy.wait_cap);
    }

    #[test]
    fn chance_is_a_fraction(_ in 0..50) {
        let fraction = SystemPauses.fraction();
        prop_assert!((0.0..1.0).contains(&fraction));
    }
}

// A provider that asks for a wait of days must not hold a run for days.
#[tokio::test]
async fn a_wait_that_is_too_long_fails_at_once_and_says_so() {
    let wait = PROVIDER_WAIT_MAX + Duration::from_secs(1);
    let (outcome, notices) =
        call(&Failing::new([(ModelErrorKind::Transient, Some(wait))]), &pauses(0.0)).await;
    let gave_up = outcome.unwrap_err();
    assert_eq!((gave_up.attempts, notices.len()), (1, 0));
    assert!(
        gave_up.error.message.ends_with("asks for a wait of 601 seconds, and at most 600 are waited"),
        "{gave_up:?}"
    );
}
