//! How models are called: how many at once, how often again, and when one is left alone (chain
//! facts §2.8).

use std::time::Duration;

use domain::{
    definition::SettingProblem,
    limits::{
        CIRCUIT_RECOVERY_SECONDS_RANGE, CIRCUIT_THRESHOLD_RANGE, CONCURRENT_CALLS_RANGE,
        RETRIES_PER_RUN_DEFAULT, RETRIES_PER_RUN_RANGE, RETRY_ATTEMPTS_RANGE, RETRY_WAIT_MS_RANGE,
    },
};
use serde::{Deserialize, Serialize};

use super::check::Checks;
use crate::models::{CircuitPolicy, RetryPolicy};

/// The `llm_call` section. Changing it needs a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LlmCall {
    /// Model calls at once, in the whole process; 0 sets no limit. Further calls wait.
    pub max_concurrent_calls: u32,
    /// Attempts at one call, the first one included.
    pub retry_max_attempts: u32,
    /// Model calls that are tried again in one run, its delegations' included; 0 for none.
    pub retry_max_per_run: u32,
    /// The shortest wait between two attempts, in milliseconds.
    pub retry_base_ms: u64,
    /// The longest wait that Remit itself chooses, in milliseconds; a provider may ask for more.
    pub retry_cap_ms: u64,
    /// The shortest wait after a rate that rose too quickly, in milliseconds.
    pub burst_base_ms: u64,
}

impl Default for LlmCall {
    fn default() -> Self {
        let policy = RetryPolicy::default();
        let ms = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        Self {
            max_concurrent_calls: 0,
            retry_max_attempts: policy.attempts_max,
            retry_max_per_run: RETRIES_PER_RUN_DEFAULT,
            retry_base_ms: ms(policy.wait_base),
            retry_cap_ms: ms(policy.wait_cap),
            burst_base_ms: ms(policy.burst_wait_base),
        }
    }
}

impl LlmCall {
    pub(crate) fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy {
            attempts_max: self.retry_max_attempts,
            wait_base: Duration::from_millis(self.retry_base_ms),
            wait_cap: Duration::from_millis(self.retry_cap_ms),
            burst_wait_base: Duration::from_millis(self.burst_base_ms),
            ..RetryPolicy::default()
        }
    }

    pub(super) fn problems(&self) -> Vec<SettingProblem> {
        let mut checks = Checks::below("llm_call");
        checks.within("max_concurrent_calls", &self.max_concurrent_calls, &CONCURRENT_CALLS_RANGE);
        checks.within("retry_max_attempts", &self.retry_max_attempts, &RETRY_ATTEMPTS_RANGE);
        checks.within("retry_max_per_run", &self.retry_max_per_run, &RETRIES_PER_RUN_RANGE);
        checks.within("retry_base_ms", &self.retry_base_ms, &RETRY_WAIT_MS_RANGE);
        checks.within("retry_cap_ms", &self.retry_cap_ms, &RETRY_WAIT_MS_RANGE);
        checks.within("burst_base_ms", &self.burst_base_ms, &RETRY_WAIT_MS_RANGE);
        checks.found()
    }
}

/// The `circuit_breaker` section. Changing it needs a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CircuitBreaker {
    /// Failed calls of a model in a row after which it is left alone; 0 for never.
    pub threshold: u32,
    /// For how long, in seconds.
    pub recovery_seconds: u64,
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        let CircuitPolicy { threshold, recovery } = CircuitPolicy::default();
        Self { threshold, recovery_seconds: recovery.as_secs() }
    }
}

impl CircuitBreaker {
    pub(crate) const fn policy(&self) -> CircuitPolicy {
        CircuitPolicy { threshold: self.threshold, recovery: Duration::from_secs(self.recovery_seconds) }
    }

    pub(super) fn problems(&self) -> Vec<SettingProblem> {
        let mut checks = Checks::below("circuit_breaker");
        checks.within("threshold", &self.threshold, &CIRCUIT_THRESHOLD_RANGE);
        checks.within("recovery_seconds", &self.recovery_seconds, &CIRCUIT_RECOVERY_SECONDS_RANGE);
        checks.found()
    }
}
