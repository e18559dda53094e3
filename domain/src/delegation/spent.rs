//! How much of its limit a delegation has used up, from the times at which facts were recorded.
//!
//! A limit counts time in which a server was there: of the wait while the delegation is in the queue,
//! of the work from its admission on. After a crash nobody knows how long the server lived on after
//! the last fact, so the time from there on is not counted.

use std::time::Duration;

use jiff::Timestamp;

use crate::event::{DelegationEvent, Event, Logged};

/// How much of its limit a delegation has used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Used up before the server was started last.
    before: Duration,
    /// Since when it goes on; `None` before it was requested.
    since: Option<Timestamp>,
}

impl Spent {
    /// Takes one fact of the delegation. Its wait begins when it is requested, its work when it is
    /// admitted, and either goes on when it is resumed.
    pub fn take(&mut self, logged: &Logged) {
        let Event::Delegation(event) = &logged.event else { return };
        let before = match event {
            DelegationEvent::Requested(_) | DelegationEvent::Admitted(_) => Duration::ZERO,
            DelegationEvent::Resumed(resumed) => Duration::from_millis(resumed.spent_ms),
            DelegationEvent::Refused(_) | DelegationEvent::Queued(_) | DelegationEvent::Delivered(_) => {
                return;
            }
        };
        *self = Self { before, since: Some(logged.recorded_at) };
    }

    /// What is used up when this is the last sign of life of the server.
    pub fn until(&self, last: Timestamp) -> Duration {
        let since = self.since.map(|since| last.duration_since(since));
        // A clock that was set back counts nothing.
        let since = since.and_then(|since| Duration::try_from(since).ok());
        self.before.saturating_add(since.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        event::{DelegationAdmitted, DelegationQueued, DelegationResumed, Scope},
        ids::{ThreadId, ToolCallId, UserId},
    };

    fn at(second: i64, event: DelegationEvent) -> Logged {
        Logged {
            position: 1,
            seq: 1,
            thread_id: ThreadId::new("t").unwrap(),
            owner: UserId::unowned(),
            scope: Scope::default(),
            recorded_at: time(second),
            labels: None,
            event: Event::Delegation(event),
        }
    }

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn queued() -> DelegationEvent {
        DelegationEvent::Queued(DelegationQueued { task_id: task_id(), place: 1 })
    }

    fn admitted() -> DelegationEvent {
        DelegationEvent::Admitted(DelegationAdmitted { task_id: task_id(), waited_ms: 0 })
    }

    fn resumed(spent_ms: u64) -> DelegationEvent {
        DelegationEvent::Resumed(DelegationResumed { task_id: task_id(), spent_ms })
    }

    fn task_id() -> ToolCallId {
        ToolCallId::new("call_1").unwrap()
    }

    #[track_caller]
    fn check(facts: &[(i64, DelegationEvent)], last: i64, seconds: f64) {
        let mut spent = Spent::default();
        facts.iter().for_each(|(second, event)| spent.take(&at(*second, event.clone())));
        assert_eq!(spent.until(time(last)), Duration::from_secs_f64(seconds));
    }

    #[test]
    fn work_counts_from_its_admission_and_downtime_does_not() {
        check(&[], 9, 0.0);
        check(&[(10, admitted())], 25, 15.0);
        // Down from 25 to 1,000, and again from 1,004 to 2,000.
        check(&[(10, admitted()), (1_000, resumed(15_000))], 1_004, 19.0);
        check(&[(10, admitted()), (1_000, resumed(15_000)), (2_000, resumed(19_000))], 2_000, 19.0);
        check(&[(10, admitted()), (1_000, resumed(15_500))], 1_000, 15.5);
    }

    #[test]
    fn the_wait_is_not_the_work() {
        check(&[(10, resumed(4_000)), (12, queued())], 15, 9.0);
        check(&[(10, resumed(4_000)), (20, admitted())], 21, 1.0);
    }

    #[test]
    fn a_clock_that_was_set_back_counts_nothing() {
        check(&[(10, admitted())], 3, 0.0);
        check(&[(10, resumed(2_000))], 3, 2.0);
    }
}
