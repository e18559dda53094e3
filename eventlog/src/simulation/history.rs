//! One history: writers, readers and subscribers of a log whose process dies again and again.
//!
//! A history is a few lives. In each, requests are queued while the writer waits, one group at a
//! time is let through, and its answers and everything that can be read are compared with the model.
//! A life ends at a point that the seed chooses; then what survived is opened, and the model learns
//! from it which of the unanswered appends are there.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use self::{
    follower::Follower,
    life::{Answer, Life, Sent, told},
};
use super::{
    gate::{Gate, block_on},
    model::{Model, chain},
    requests::{Request, Requests},
    seed::Seed,
    world::{Condition, Point, World},
};
use crate::{
    Append, AppendError, EventFilter, EventLog, ExportedHead, Options, Position, RecordedEvent, Seq,
    StreamId, VerifyRequest, sample,
};

mod follower;
mod life;

/// Processes that a history wears out.
const LIVES: usize = 4;
const GROUPS_MAX: usize = 8;
const REQUESTS_MAX: usize = 5;

/// How often each point was met.
pub(super) type Tally = BTreeMap<Point, usize>;

/// What is wrong.
type Found = Result<(), String>;

/// A history from its beginning to its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lived {
    pub(super) tally: Tally,
    /// What was asked and answered, how lives ended, and what was there in the end.
    pub(super) trace: Vec<String>,
}

pub(super) struct History<W> {
    world: W,
    dice: Seed,
    requests: Requests,
    model: Model,
    followers: Vec<Follower>,
    exported: Option<ExportedHead>,
    /// Keyed appends that were not answered, to be asked for again.
    again: Vec<Append>,
    /// The process died while it erased, so that no erasure of this life was answered since.
    died_erasing: bool,
    tally: Tally,
    trace: Vec<String>,
}

impl<W: World> History<W> {
    pub(super) fn new(seed: &Seed) -> Self {
        let mut dice = seed.clone();
        let follower = |stream| Follower { stream, cursor: 0, live: None };
        Self {
            world: W::new(dice.fork()),
            requests: Requests::new(dice.fork()),
            dice,
            model: Model::default(),
            followers: vec![follower(None), follower(Some(sample::thread("t0")))],
            exported: None,
            again: Vec::new(),
            died_erasing: false,
            tally: Tally::new(),
            trace: Vec::new(),
        }
    }

    /// Lives all lives, and says what happened in them, or what was found wrong.
    pub(super) fn run(mut self) -> Result<Lived, String> {
        for _ in 0..LIVES {
            let point = *self.dice.pick(&Point::ALL);
            self.live(point).map_err(|wrong| format!("in a life that was to end at {point:?}: {wrong}"))?;
        }
        self.last_life().map_err(|wrong| format!("in the last life: {wrong}"))?;
        Ok(Lived { tally: self.tally, trace: self.trace })
    }

    fn live(&mut self, point: Point) -> Found {
        if point == Point::Opening {
            self.world.arm(Some((point, self.dice.below(8))));
        }
        let Some(mut life) = self.open()? else { return Ok(()) };
        if !matches!(point, Point::Opening | Point::Idle | Point::Erasing | Point::Closing) {
            self.world.arm(Some((point, self.dice.below(3))));
        }
        for stream in self.model.unfinished_erasures() {
            life.send(Request::Erase(stream));
        }
        for _ in 0..=self.dice.below(GROUPS_MAX) {
            self.queue(&mut life);
            self.step(&mut life, point)?;
            if self.world.condition() != Condition::Well {
                break;
            }
            let looked = self.look(&mut life);
            if self.world.condition() != Condition::Well {
                break;
            }
            looked?;
        }
        self.end(life, point)
    }

    /// Starts a process. None if it died of it.
    fn open(&mut self) -> Result<Option<Life>, String> {
        self.died_erasing = false;
        let gate = Arc::new(Gate::default());
        let log = match self.world.open(Options::new(gate.clock())) {
            Ok(log) => log,
            Err(_) if self.world.condition() == Condition::Dead => {
                self.met(Point::Opening);
                self.world.bury();
                return Ok(None);
            }
            Err(error) => return Err(format!("what survived does not open: {}", chain(&error))),
        };
        let life = Life { log, gate, sent: VecDeque::new() };
        let checked = self.check_opened(&life.log);
        if self.world.condition() == Condition::Dead {
            self.met(Point::Opening);
            self.bury(life);
            return Ok(None);
        }
        self.world.arm(None);
        checked.map(|()| Some(life))
    }

    /// What survived is the whole log, and nothing else.
    fn check_opened(&mut self, log: &EventLog) -> Found {
        let mut trial = self.model.clone();
        let lost = trial.reopened(log)?;
        let exported = self.exported;
        let report = log.verify(VerifyRequest { exported, progress: None }).map_err(|error| chain(&error))?;
        if let Some(damage) = report.damage {
            return Err(format!("the log does not verify: {damage}"));
        }
        self.model = trial;
        self.again.extend(lost.into_iter().filter(|append| append.idempotency_key.is_some()));
        for follower in &mut self.followers {
            let from = follower.from();
            follower.live = Some(log.subscribe(from));
        }
        Ok(())
    }

    /// Queues requests for the next group. One is always left in the queue, so that the writer waits
    /// with it when it has made the group before.
    fn queue(&mut self, life: &mut Life) {
        let least = if life.sent.is_empty() { 2 } else { 1 };
        for _ in 0..least + self.dice.below(REQUESTS_MAX) {
            let request = match self.again.pop() {
                Some(append) => Request::Append(append),
                None => self.requests.next(&self.model),
            };
            life.send(request);
        }
    }

    /// Lets one group through, and compares its answers.
    fn step(&mut self, life: &mut Life, point: Point) -> Found {
        let log = life.log.clone();
        life.gate.step(|| log.is_poisoned());
        life.receive();
        if point == Point::Erasing && life.has_erased() {
            self.world.kill(point);
            self.died_erasing = true;
        }
        self.collect(life)
    }

    /// Compares the answers that are there.
    fn collect(&mut self, life: &mut Life) -> Found {
        while let Some(sent) = life.sent.pop_front() {
            let Some(answer) = sent.ready else {
                life.sent.push_front(sent);
                break;
            };
            self.answered(&life.log, sent.request, answer)?;
        }
        Ok(())
    }

    fn answered(&mut self, log: &EventLog, request: Request, answer: Answer) -> Found {
        let condition = self.world.condition();
        self.trace.push(told(&request, &answer));
        match (request, answer) {
            (
                Request::Append(append),
                Answer::Append(Err(AppendError::Poisoned { .. } | AppendError::Closed)),
            ) if condition != Condition::Well => {
                self.model.unanswered(append);
                Ok(())
            }
            // Nothing was written, and the answer says so.
            (Request::Append(_), Answer::Append(Err(AppendError::Storage { .. })))
                if condition == Condition::Dead =>
            {
                Ok(())
            }
            (Request::Append(append), Answer::Append(answer)) => self.model.answered(&append, &answer),
            (Request::Erase(stream), Answer::Erase(Ok(_))) if !self.died_erasing => self.erased(log, stream),
            (Request::Erase(stream), Answer::Erase(_)) if condition != Condition::Well => {
                self.model.erasing(stream);
                Ok(())
            }
            (request, Answer::Erase(answer)) => Err(format!("{request:?} was answered {answer:?}")),
            (request, Answer::Append(answer)) => Err(format!("{request:?} was answered {answer:?}")),
        }
    }

    fn erased(&mut self, log: &EventLog, stream: StreamId) -> Found {
        if !stream.thread_id().is_some_and(|thread_id| log.is_erased(thread_id)) {
            return Err(format!("the erasure of {stream} was answered, and it is not erased"));
        }
        self.model.erased(stream);
        self.world.erasure_was_answered();
        Ok(())
    }

    /// Reads here and there, and follows.
    fn look(&mut self, life: &mut Life) -> Found {
        let log = &life.log;
        let stream = self.requests.stream();
        let (after, limit) = (self.dice.below(self.model.events() + 2) as u64, self.dice.below(12));
        let events = log.read_all(Position::new(after), limit).map_err(|error| chain(&error))?;
        self.model.check_read(None, after, limit, &events)?;
        let events = log.read_stream(&stream, Seq::new(after), limit).map_err(|error| chain(&error))?;
        self.model.check_read(Some(&stream), after, limit, &events)?;
        if let Some(thread_id) = stream.thread_id() {
            let (run, filter) = (sample::run_id(self.requests.run()), EventFilter::default());
            let events = log.read_run(thread_id, &run, &filter, Seq::ZERO, usize::MAX);
            self.model.check_run(&stream, &run, &events.map_err(|error| chain(&error))?)?;
        }
        if self.dice.happens(20) {
            self.exported = Some(log.exported_head().map_err(|error| chain(&error))?);
        }
        for index in 0..self.followers.len() {
            if self.dice.happens(70) {
                let limit = 1 + self.dice.below(8);
                self.followers[index].follow(limit, &self.model)?;
            }
        }
        Ok(())
    }

    /// Ends a life that has met its point, or at the point between two groups.
    fn end(&mut self, mut life: Life, point: Point) -> Found {
        match self.world.condition() {
            Condition::Well if point == Point::Closing => return self.close(life),
            Condition::Well => {
                self.world.kill(Point::Idle);
                self.met(Point::Idle);
            }
            Condition::Failing => {
                self.met(point);
                self.check_failing(&mut life)?;
            }
            Condition::Dead => self.met(point),
        }
        self.forget(&mut life);
        self.bury(life);
        Ok(())
    }

    /// A log that takes no more writes can be read as before.
    fn check_failing(&mut self, life: &mut Life) -> Found {
        life.send(Request::Append(sample::to(
            &sample::thread("late"),
            crate::Expected::Any,
            sample::notes([0]),
        )));
        let refused = life.sent.pop_back().map(|sent| sent.wait().1);
        if !matches!(refused, Some(Answer::Append(Err(AppendError::Poisoned { .. })))) {
            return Err("a log that failed takes writes".to_owned());
        }
        self.collect(life)?;
        let found = life.log.read_all(Position::ZERO, usize::MAX).map_err(|error| chain(&error))?;
        // What failed is not shown. It may have been written all the same: the next start knows.
        self.model.clone().adopt(&found)?;
        self.look(life)
    }

    /// Closes in good order, and dies of it sooner or later.
    fn close(&mut self, mut life: Life) -> Found {
        self.world.arm(Some((Point::Closing, self.dice.below(2))));
        self.queue(&mut life);
        life.gate.open();
        self.followers.iter_mut().for_each(|follower| follower.live = None);
        block_on(life.log.clone().close());
        while let Some(sent) = life.sent.pop_front() {
            let (request, answer) = sent.wait();
            self.answered(&life.log, request, answer)?;
        }
        if self.world.condition() == Condition::Dead {
            self.met(Point::Closing);
        }
        self.bury(life);
        Ok(())
    }

    /// Nobody gets an answer any more.
    fn forget(&mut self, life: &mut Life) {
        for Sent { request, .. } in life.sent.drain(..) {
            match request {
                Request::Append(append) => self.model.unanswered(append),
                Request::Erase(stream) => self.model.erasing(stream),
            }
        }
    }

    fn bury(&mut self, life: Life) {
        self.followers.iter_mut().for_each(|follower| follower.live = None);
        drop(life);
        self.world.bury();
    }

    /// Nothing happens, and everything is looked at: all keys are asked for again, and all erasures.
    fn last_life(&mut self) -> Found {
        let Some(mut life) = self.open()? else { return Err("it died of nothing".to_owned()) };
        life.gate.open();
        for stream in self.model.unfinished_erasures() {
            life.send(Request::Erase(stream));
        }
        for append in self.model.keyed() {
            life.send(Request::Append(append));
        }
        while let Some(sent) = life.sent.pop_front() {
            let (request, answer) = sent.wait();
            self.answered(&life.log, request, answer)?;
        }
        for follower in &mut self.followers {
            while follower.follow(usize::MAX, &self.model)? {}
        }
        self.check_opened(&life.log)?;
        let all = life.log.read_all(Position::ZERO, usize::MAX).map_err(|error| chain(&error))?;
        let shown =
            |one: &RecordedEvent| format!("{} {} {} {}", one.position, one.stream, one.seq, one.content);
        self.trace.extend(all.iter().map(shown));
        self.bury(life);
        let Some(life) = self.open()? else { return Err("it died of nothing".to_owned()) };
        self.bury(life);
        Ok(())
    }

    fn met(&mut self, point: Point) {
        *self.tally.entry(point).or_default() += 1;
        self.trace.push(format!("{point:?}"));
    }
}
