//! Waiting for a state, never for time to pass.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// The longest that a test waits for anything. Only a broken test or a broken server takes so long.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How often a state is looked at that nobody announces.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Looks until there is an answer.
#[track_caller]
pub fn until_some<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> impl Future<Output = T> {
    let (what, caller) = (what.to_owned(), std::panic::Location::caller());
    async move {
        let began = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(began.elapsed() < PATIENCE, "{caller}: waited {PATIENCE:?} in vain until {what}");
            sleep(LOOK_EVERY).await;
        }
    }
}

/// Looks until it is so.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) -> impl Future<Output = ()> {
    until_some(what, move || is_so().then_some(()))
}

/// Asks until there is an answer.
#[track_caller]
pub fn until_answer<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut ask: impl FnMut() -> F,
) -> impl Future<Output = T> {
    let (what, caller) = (what.to_owned(), std::panic::Location::caller());
    async move {
        let began = Instant::now();
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            assert!(began.elapsed() < PATIENCE, "{caller}: waited {PATIENCE:?} in vain until {what}");
            sleep(LOOK_EVERY).await;
        }
    }
}

/// The future's result, which must come in time.
#[track_caller]
pub fn within<F: Future>(limit: Duration, what: &str, future: F) -> impl Future<Output = F::Output> {
    let (what, caller) = (what.to_owned(), std::panic::Location::caller());
    async move {
        match timeout(limit, future).await {
            Ok(output) => output,
            Err(_) => panic!("{caller}: {what} took longer than {limit:?}"),
        }
    }
}
