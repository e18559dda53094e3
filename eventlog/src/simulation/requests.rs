//! What writers ask for: appends of every kind, and erasures.

use super::{model::Model, seed::Seed};
use crate::{Append, Expected, NewEvent, Scope, Seq, StreamId, sample};

/// Threads that there are from the start; more are made.
const THREADS: usize = 3;
const RUNS: [&str; 2] = ["r1", "r2"];
const EVENTS_MAX: usize = 4;

/// Something that the log is asked for.
#[derive(Debug, Clone)]
pub(super) enum Request {
    Append(Append),
    /// The thread is erased.
    Erase(StreamId),
}

/// Makes requests up.
pub(super) struct Requests {
    dice: Seed,
    threads: usize,
    events: u64,
    keys: usize,
}

impl Requests {
    pub(super) fn new(dice: Seed) -> Self {
        Self { dice, threads: THREADS, events: 0, keys: 0 }
    }

    /// The next request of somebody who knows the log as the model has it.
    pub(super) fn next(&mut self, model: &Model) -> Request {
        let stream = self.stream();
        // A thread without events is unknown, and nobody erases it.
        let may_be_erased = stream != StreamId::Registry && model.tail(&stream).is_some();
        if may_be_erased && self.dice.happens(6) {
            return Request::Erase(stream);
        }
        let keyed = model.keyed();
        if !keyed.is_empty() && self.dice.happens(10) {
            return Request::Append(self.repeat(&keyed));
        }
        Request::Append(self.fresh(model, stream))
    }

    /// An append that was made before, or its key with another content.
    fn repeat(&mut self, keyed: &[Append]) -> Append {
        let mut again = self.dice.pick(keyed).clone();
        if self.dice.happens(30) {
            again.events = self.new_events();
        }
        again
    }

    fn fresh(&mut self, model: &Model, stream: StreamId) -> Append {
        let tail = Seq::new(model.tail(&stream).unwrap_or(0));
        let expected = match self.dice.below(10) {
            0 => Expected::NoStream,
            1 => Expected::Exact(tail.next()),
            2..=4 => Expected::Exact(tail),
            _ => Expected::Any,
        };
        let idempotency_key = self.dice.happens(40).then(|| {
            self.keys += 1;
            format!("key {}", self.keys)
        });
        Append {
            stream,
            expected,
            idempotency_key: idempotency_key.and_then(|key| sample::key(&key)),
            events: self.new_events(),
        }
    }

    /// A stream that there may be, or a new one.
    pub(super) fn stream(&mut self) -> StreamId {
        if self.dice.happens(10) {
            return StreamId::Registry;
        }
        if self.dice.happens(15) {
            self.threads += 1;
        }
        sample::thread(&format!("t{}", self.dice.below(self.threads)))
    }

    pub(super) fn run(&mut self) -> &'static str {
        RUNS[self.dice.below(RUNS.len())]
    }

    fn new_events(&mut self) -> Vec<NewEvent> {
        let count = 1 + self.dice.below(EVENTS_MAX);
        (0..count).map(|_| self.new_event()).collect()
    }

    fn new_event(&mut self) -> NewEvent {
        self.events += 1;
        let run_id = self.dice.happens(60).then(|| sample::run_id(self.run()));
        let task_id = (run_id.is_some() && self.dice.happens(30)).then(|| sample::task_id("call"));
        NewEvent { scope: Scope { run_id, task_id, delegation_id: None }, ..sample::note(self.events) }
    }
}
