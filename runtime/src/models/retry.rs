//! Asking a model again after a failure that may pass (chain facts §2.8).
//!
//! Dropping the future ends the wait or the call at once, so that a cancelled run asks nothing more
//! (field report 22). Nothing is kept between calls.

use std::time::Duration;

use domain::message::AssistantMessage;
use futures::future::BoxFuture;

use super::{ChatModel, Deltas, ModelError, ModelErrorKind, ModelRequest};

#[cfg(test)]
mod tests;

/// After these failures one more attempt is all that makes sense.
const ATTEMPTS_MAX_WHEN_FRAGILE: u32 = 2;

/// The longest wait that a provider may ask for. A call that is to wait longer fails at once, and
/// says how long the provider wanted.
pub const PROVIDER_WAIT_MAX: Duration = Duration::from_secs(600);

/// How often and after what waits a model is asked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all, the first one included.
    pub attempts_max: u32,
    /// The shortest wait.
    pub wait_base: Duration,
    /// The longest wait that this policy itself chooses; a provider may ask for a longer one.
    pub wait_cap: Duration,
    /// The shortest wait after a rate that rose too quickly.
    pub burst_wait_base: Duration,
    /// Up to this much is slept beyond a wait that a provider asked for, so that subagents who were
    /// told the same do not all come back on the same beat (field report 11).
    pub spread_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 3,
            wait_base: Duration::from_secs(1),
            wait_cap: Duration::from_secs(8),
            burst_wait_base: Duration::from_secs(5),
            spread_max: Duration::from_millis(500),
        }
    }
}

/// Time and chance, which come in from outside.
pub trait Pauses: Send + Sync {
    /// Lets time pass.
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()>;
    /// A number from 0 up to, but not including, 1.
    fn fraction(&self) -> f64;
}

/// Real time, and chance from the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemPauses;

impl Pauses for SystemPauses {
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }

    fn fraction(&self) -> f64 {
        // The low bits of a version 7 UUID are random; the high ones are the time.
        let [.., a, b, c, d] = *uuid::Uuid::now_v7().as_bytes();
        f64::from(u32::from_be_bytes([a, b, c, d])) / (f64::from(u32::MAX) + 1.0)
    }
}

/// A failure after which the model is asked again: the body of an `llm.retry` event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryNotice {
    /// The attempt that failed, from 1.
    pub attempt: u32,
    /// The attempts that this sort of failure allows.
    pub max_attempts: u32,
    /// The wait before the next attempt, in milliseconds; at least this long is waited.
    pub wait_ms: u64,
    /// The reason, as [`ModelErrorKind::reason`] says it.
    pub reason: &'static str,
    /// The error's message.
    pub message: String,
}

/// Told of a failure before the wait begins, and says whether the model may be asked again. The
/// pieces of the failed reply are void.
pub type OnRetry<'a> = &'a (dyn Fn(RetryNotice) -> BoxFuture<'a, bool> + Send + Sync);

/// What [`call_with_retries`] needs beside the model and the question.
#[derive(Clone, Copy)]
pub struct Retries<'a> {
    /// How often and after what waits.
    pub policy: &'a RetryPolicy,
    /// Time and chance.
    pub pauses: &'a dyn Pauses,
    /// Told of every failure that is to be tried again, and says whether it may.
    pub on_retry: OnRetry<'a>,
}

/// A model that gave no reply, for good.
#[derive(Debug, thiserror::Error)]
#[error("no reply after {attempts} {}", if *.attempts == 1 { "attempt" } else { "attempts" })]
pub struct GaveUp {
    /// The attempts that were made.
    pub attempts: u32,
    /// The last failure.
    #[source]
    pub error: ModelError,
}

/// Asks a model, and asks again after failures that may pass.
pub async fn call_with_retries(
    model: &dyn ChatModel,
    request: &ModelRequest,
    deltas: Deltas<'_>,
    retries: Retries<'_>,
) -> Result<AssistantMessage, GaveUp> {
    let mut attempt = 1;
    let mut previous_wait = None;
    loop {
        let error = match model.call(request, deltas).await {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        let max_attempts = attempts_max(retries.policy, error.kind);
        if let Some(wait) = error.retry_after.filter(|wait| *wait > PROVIDER_WAIT_MAX) {
            return Err(GaveUp { attempts: attempt, error: wants_too_long_a_wait(error, wait) });
        }
        if !error.is_retryable() || attempt >= max_attempts {
            return Err(GaveUp { attempts: attempt, error });
        }
        let wait = wait_before_next(retries, &error, previous_wait);
        if !(retries.on_retry)(notice(attempt, max_attempts, wait, &error)).await {
            return Err(GaveUp { attempts: attempt, error: without_leave(error) });
        }
        retries.pauses.sleep(wait.plus_spread(retries)).await;
        previous_wait = Some(wait.duration);
        attempt += 1;
    }
}

/// A provider's wish is followed as it is, but a run does not wait for ever.
fn wants_too_long_a_wait(mut error: ModelError, wait: Duration) -> ModelError {
    let (asked, longest) = (wait.as_secs(), PROVIDER_WAIT_MAX.as_secs());
    error
        .message
        .push_str(&format!("; it asks for a wait of {asked} seconds, and at most {longest} are waited"));
    error
}

/// Many calls that fail a little are one run that goes on for ever.
fn without_leave(mut error: ModelError) -> ModelError {
    error.message.push_str(
        "; the run has no retries of model calls left (llm_call.retry_max_per_run), so it was not asked again",
    );
    error
}

fn notice(attempt: u32, max_attempts: u32, wait: Wait, error: &ModelError) -> RetryNotice {
    RetryNotice {
        attempt,
        max_attempts,
        wait_ms: u64::try_from(wait.duration.as_millis()).unwrap_or(u64::MAX),
        reason: error.kind.reason(),
        message: error.message.clone(),
    }
}

fn attempts_max(policy: &RetryPolicy, kind: ModelErrorKind) -> u32 {
    match kind {
        ModelErrorKind::BurstRate | ModelErrorKind::StreamStalled => {
            policy.attempts_max.min(ATTEMPTS_MAX_WHEN_FRAGILE)
        }
        ModelErrorKind::Quota
        | ModelErrorKind::Auth
        | ModelErrorKind::Transient
        | ModelErrorKind::Busy
        | ModelErrorKind::CircuitOpen
        | ModelErrorKind::InvalidReply
        | ModelErrorKind::Generic => policy.attempts_max,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wait {
    duration: Duration,
    is_provider_chosen: bool,
}

impl Wait {
    fn plus_spread(self, retries: Retries<'_>) -> Duration {
        if !self.is_provider_chosen {
            return self.duration;
        }
        let spread = retries.policy.spread_max.mul_f64(retries.pauses.fraction());
        self.duration.saturating_add(spread)
    }
}

/// The provider's own wish as it is; else anything from the base to three times the previous wait,
/// under the cap.
fn wait_before_next(retries: Retries<'_>, error: &ModelError, previous: Option<Duration>) -> Wait {
    if let Some(duration) = error.retry_after {
        return Wait { duration, is_provider_chosen: true };
    }
    let policy = retries.policy;
    let is_burst = error.kind == ModelErrorKind::BurstRate;
    let base = if is_burst { policy.burst_wait_base } else { policy.wait_base }.min(policy.wait_cap);
    let longest = previous.unwrap_or(base).saturating_mul(3).clamp(base, policy.wait_cap);
    let duration = base + (longest - base).mul_f64(retries.pauses.fraction());
    Wait { duration, is_provider_chosen: false }
}
