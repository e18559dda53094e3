//! A model that fails again and again is left alone for a while (chain facts §2.8).
//!
//! Counted are calls that failed in a way that may pass and were tried until the attempts were used
//! up; a rate that rose too quickly is not counted, and neither is what would fail at once again. A
//! reply closes the circuit. After a while one call may try; the others are refused until it has.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{GaveUp, ModelError, ModelErrorKind};

/// When a model is left alone, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitPolicy {
    /// Failed calls in a row after which it is; 0 for never.
    pub threshold: u32,
    /// How long.
    pub recovery: Duration,
}

impl Default for CircuitPolicy {
    fn default() -> Self {
        Self { threshold: 5, recovery: Duration::from_secs(60) }
    }
}

/// The circuits of all models, by their names.
#[derive(Debug, Default)]
pub(crate) struct Circuits {
    policy: CircuitPolicy,
    by_model: Mutex<BTreeMap<String, Circuit>>,
}

/// What is known of one model.
#[derive(Debug, Default)]
struct Circuit {
    /// Failed calls in a row.
    failures: u32,
    /// Since when it is left alone.
    opened_at: Option<Instant>,
    /// Whether a call is trying whether it answers again.
    is_probed: bool,
}

/// Leave to call a model. Dropping it says nothing of the model: the call was given up.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    circuits: &'a Circuits,
    model_name: &'a str,
    is_probe: bool,
}

impl Circuits {
    pub(crate) fn new(policy: CircuitPolicy) -> Self {
        Self { policy, by_model: Mutex::default() }
    }

    /// Leave to call the model now, or why there is none.
    pub(crate) fn enter<'a>(&'a self, model_name: &'a str) -> Result<Pass<'a>, ModelError> {
        let mut by_model = self.lock();
        let Some(circuit) = by_model.get_mut(model_name) else {
            return Ok(Pass { circuits: self, model_name, is_probe: false });
        };
        let Some(opened_at) = circuit.opened_at else {
            return Ok(Pass { circuits: self, model_name, is_probe: false });
        };
        let left = self.policy.recovery.saturating_sub(opened_at.elapsed());
        if circuit.is_probed || !left.is_zero() {
            return Err(left_alone(circuit.failures, left));
        }
        circuit.is_probed = true;
        Ok(Pass { circuits: self, model_name, is_probe: true })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Circuit>> {
        self.by_model.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass<'_> {
    /// Takes note of what came of the call.
    pub(crate) fn settle<T>(self, called: &Result<T, GaveUp>) {
        match called {
            Ok(_) => drop(self.circuits.lock().remove(self.model_name)),
            Err(gave_up) if counts(gave_up.error.kind) => self.failed(),
            Err(_) => {}
        }
    }

    fn failed(&self) {
        let threshold = self.circuits.policy.threshold;
        let mut by_model = self.circuits.lock();
        let circuit = by_model.entry(self.model_name.to_owned()).or_default();
        circuit.failures = circuit.failures.saturating_add(1);
        let opens = circuit.opened_at.is_none() && threshold > 0 && circuit.failures >= threshold;
        if opens || self.is_probe {
            circuit.opened_at = Some(Instant::now());
            tracing::warn!(
                model = self.model_name,
                failures = circuit.failures,
                "a model is left alone for a while"
            );
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.is_probe
            && let Some(circuit) = self.circuits.lock().get_mut(self.model_name)
        {
            circuit.is_probed = false;
        }
    }
}

/// Whether a failed call says that the model does not answer.
fn counts(kind: ModelErrorKind) -> bool {
    kind.is_retryable() && kind != ModelErrorKind::BurstRate
}

fn left_alone(failures: u32, left: Duration) -> ModelError {
    let when = match left.as_secs() {
        0 => "another call is trying it now".to_owned(),
        seconds => format!("it is tried again in {} seconds", seconds + 1),
    };
    let message = format!("the model is not asked, because its last {failures} calls failed; {when}");
    ModelError::new(ModelErrorKind::CircuitOpen, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECOVERY: Duration = Duration::from_secs(60);

    fn circuits() -> Circuits {
        Circuits::new(CircuitPolicy::default())
    }

    fn failed(kind: ModelErrorKind) -> Result<(), GaveUp> {
        Err(GaveUp { attempts: 3, error: ModelError::new(kind, "oh") })
    }

    /// Calls the model this often, each with this result.
    fn call(circuits: &Circuits, times: usize, result: &Result<(), GaveUp>) {
        for _ in 0..times {
            circuits.enter("m").unwrap().settle(result);
        }
    }

    #[track_caller]
    fn check_refused(circuits: &Circuits) {
        let error = circuits.enter("m").expect_err("the circuit is open");
        assert_eq!((error.kind, error.is_retryable()), (ModelErrorKind::CircuitOpen, false));
    }

    #[tokio::test(start_paused = true)]
    async fn line_89_five_failed_calls_open_it_and_one_probe_comes_after_a_minute() {
        let circuits = circuits();
        call(&circuits, 5, &failed(ModelErrorKind::Transient));
        check_refused(&circuits);
        circuits.enter("another").unwrap();
        tokio::time::advance(RECOVERY - Duration::from_millis(1)).await;
        check_refused(&circuits);
        tokio::time::advance(Duration::from_millis(1)).await;
        let probe = circuits.enter("m").unwrap();
        check_refused(&circuits);
        probe.settle(&Ok(()));
        call(&circuits, 4, &failed(ModelErrorKind::Busy));
        circuits.enter("m").unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_fails_opens_it_again_and_one_that_was_given_up_does_not_count() {
        let circuits = circuits();
        call(&circuits, 5, &failed(ModelErrorKind::StreamStalled));
        tokio::time::advance(RECOVERY).await;
        drop(circuits.enter("m").unwrap());
        // A failure that would not pass says nothing: the next call tries.
        circuits.enter("m").unwrap().settle(&failed(ModelErrorKind::Auth));
        circuits.enter("m").unwrap().settle(&failed(ModelErrorKind::Transient));
        check_refused(&circuits);
        tokio::time::advance(RECOVERY).await;
        circuits.enter("m").unwrap().settle(&Ok(()));
        circuits.enter("m").unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn line_90_a_burst_and_what_fails_for_good_count_nothing() {
        let circuits = circuits();
        for kind in [ModelErrorKind::BurstRate, ModelErrorKind::Quota, ModelErrorKind::InvalidReply] {
            call(&circuits, 9, &failed(kind));
        }
        call(&circuits, 4, &failed(ModelErrorKind::Transient));
        call(&circuits, 1, &Ok(()));
        call(&circuits, 4, &failed(ModelErrorKind::Transient));
        circuits.enter("m").unwrap();
        let off = Circuits::new(CircuitPolicy { threshold: 0, ..CircuitPolicy::default() });
        call(&off, 99, &failed(ModelErrorKind::Transient));
    }
}
