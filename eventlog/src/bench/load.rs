//! The events that are measured with, and what is made of times.

use std::{sync::Arc, time::Duration};

use domain::ids::{EventId, RunId, ThreadId, ToolCallId, UserId};
use jiff::Timestamp;
use uuid::Uuid;

use super::{BenchError, Latency};
use crate::{Append, Expected, Json, NewEvent, Scope, StreamId};

/// Runs that write at the same time.
pub(super) const RUNS: u64 = 100;
/// Tasks of each run.
pub(super) const TASKS: u64 = 10;

/// Numbers that look random and are the same every time.
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Names of threads, runs and tasks, made once.
pub(super) struct Cast {
    members: Vec<(StreamId, RunId, Vec<ToolCallId>)>,
    /// Text that is cut to the size of an event.
    text: Arc<str>,
}

impl Cast {
    pub(super) fn new(event_bytes: usize) -> Result<Self, BenchError> {
        let load = || BenchError::Load { what: "with names that are no ids" };
        let mut members = Vec::new();
        for run in 0..RUNS {
            let thread = ThreadId::new(format!("thread-{run:04}")).map_err(|_| load())?;
            let run_id =
                RunId::new(Uuid::from_u128(u128::from(run) << 64 | 7).to_string()).map_err(|_| load())?;
            let tasks = (0..TASKS).map(|task| ToolCallId::new(format!("call_{run:04}{task:04}abcdefgh")));
            let tasks = tasks.collect::<Result<_, _>>().map_err(|_| load())?;
            members.push((StreamId::Thread(thread), run_id, tasks));
        }
        let mut numbers = Numbers::new(1);
        let mut text = String::with_capacity(event_bytes * 2);
        while text.len() < event_bytes * 2 {
            text.push_str(&format!("{:x} ", numbers.next()));
        }
        Ok(Self { members, text: text.into() })
    }

    /// The stream, run and task of a number.
    pub(super) fn member(&self, run: u64, task: u64) -> Option<(&StreamId, &RunId, &ToolCallId)> {
        let (stream, run_id, tasks) = self.members.get(usize::try_from(run % RUNS).ok()?)?;
        Some((stream, run_id, tasks.get(usize::try_from(task % TASKS).ok()?)?))
    }

    /// An append of one run.
    pub(super) fn append(&self, numbers: &mut Numbers, batch: usize, bytes: usize) -> Option<Append> {
        let run = numbers.next();
        let (stream, _, _) = self.member(run, 0)?;
        let events = (0..batch).map(|_| self.event(run, numbers.next(), bytes)).collect::<Option<_>>()?;
        Some(Append { stream: stream.clone(), expected: Expected::Any, idempotency_key: None, events })
    }

    fn event(&self, run: u64, number: u64, bytes: usize) -> Option<NewEvent> {
        let (_, run_id, task_id) = self.member(run, number)?;
        let frame = "{\"n\":,\"text\":\"\"}{\"caller\":\"subagent\"}".len() + 20;
        let start = usize::try_from(number % 64).ok()?;
        let text = self.text.get(start..start + bytes.saturating_sub(frame))?;
        Some(NewEvent {
            event_id: EventId::from_uuid(Uuid::from_u128(u128::from(number))),
            event_type: "subagent.step".to_owned(),
            schema_version: 1,
            category: "subagent".to_owned(),
            scope: Scope {
                run_id: Some(run_id.clone()),
                task_id: Some(task_id.clone()),
                delegation_id: None,
            },
            owner: UserId::unowned(),
            causation_id: None,
            correlation_id: None,
            created_at: Timestamp::UNIX_EPOCH,
            content: Json::from_stored(&format!("{{\"n\":{number:020},\"text\":\"{text}\"}}")),
            metadata: Json::from_stored("{\"caller\":\"subagent\"}"),
        })
    }
}

/// The middle and the upper end of times.
pub(super) fn latency(mut times: Vec<Duration>) -> Latency {
    times.sort_unstable();
    let at = |percent: usize| {
        let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
        times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    };
    Latency { p50_us: at(50), p99_us: at(99) }
}
