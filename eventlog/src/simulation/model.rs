//! The log as it must be: a list of what was acknowledged, and what may be there beside it.
//!
//! It is slow and obvious on purpose. Whatever a history does, the log must answer as this does.

use std::{collections::HashMap, ops::Range};

use domain::ids::RunId;

use crate::{
    Append, AppendError, Appended, EventLog, Expected, NewEvent, Position, RecordedEvent, Seq, StreamId,
    chain::Hash,
};

/// An event that is in the log for good.
#[derive(Debug, Clone)]
struct Row {
    stream: StreamId,
    seq: u64,
    run: Option<RunId>,
    number: u64,
    /// None until it was seen once.
    hash: Option<Hash>,
}

/// What an append must be answered.
#[derive(Debug, PartialEq)]
enum Answer {
    /// These rows, and whether they were there before.
    Appended(Range<usize>, bool),
    Conflict(Option<u64>),
    KeyReused(u64),
    Erased,
}

/// What is known of the log.
#[derive(Clone, Default)]
pub(super) struct Model {
    rows: Vec<Row>,
    /// What was first appended under each key, and where.
    keys: HashMap<(StreamId, String), (Vec<NewEvent>, usize)>,
    erased: Vec<StreamId>,
    /// Their erasure was asked for and not answered.
    erasing: Vec<StreamId>,
    /// Appends that were not answered, in the order in which they were asked for, and whether their
    /// thread was erased by then.
    unanswered: Vec<(Append, bool)>,
}

impl Model {
    pub(super) fn events(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn is_erased(&self, stream: &StreamId) -> bool {
        self.erased.contains(stream)
    }

    /// The seq of the last event.
    pub(super) fn tail(&self, stream: &StreamId) -> Option<u64> {
        self.rows.iter().filter(|row| row.stream == *stream).map(|row| row.seq).max()
    }

    /// What was appended under keys, to be asked for again.
    pub(super) fn keyed(&self) -> Vec<Append> {
        let mut keyed: Vec<_> = self.keys.iter().collect();
        keyed.sort_by_key(|(_, (_, first))| *first);
        keyed
            .into_iter()
            .map(|((stream, key), (events, _))| Append {
                stream: stream.clone(),
                expected: Expected::NoStream,
                idempotency_key: crate::sample::key(key),
                events: events.clone(),
            })
            .collect()
    }

    /// What the log must do with an append, done here.
    fn apply(&mut self, append: &Append, is_erased: bool) -> Answer {
        let Append { stream, expected, idempotency_key, events } = append;
        if is_erased {
            return Answer::Erased;
        }
        let key = idempotency_key.as_ref().map(|key| (stream.clone(), key.as_str().to_owned()));
        if let Some((first, at)) = key.as_ref().and_then(|key| self.keys.get(key)) {
            return if first == events {
                Answer::Appended(*at..at + events.len(), true)
            } else {
                Answer::KeyReused(*at as u64 + 1)
            };
        }
        let tail = self.tail(stream);
        let holds = match expected {
            Expected::Any => true,
            Expected::NoStream => tail.is_none(),
            Expected::Exact(seq) => tail.unwrap_or(0) == seq.get(),
        };
        if !holds {
            return Answer::Conflict(tail);
        }
        let start = self.rows.len();
        for (seq, event) in (tail.unwrap_or(0) + 1..).zip(events) {
            let (run, number) = (event.scope.run_id.clone(), number(event.content.get()));
            self.rows.push(Row { stream: stream.clone(), seq, run, number, hash: None });
        }
        if let Some(key) = key {
            self.keys.insert(key, (events.clone(), start));
        }
        Answer::Appended(start..self.rows.len(), false)
    }

    /// Compares an answer with what it must be.
    pub(super) fn answered(
        &mut self,
        append: &Append,
        answer: &Result<Appended, AppendError>,
    ) -> Result<(), String> {
        let expected = self.apply(append, self.is_erased(&append.stream));
        let is_right = match (&expected, answer) {
            (Answer::Appended(range, is_repeat), Ok(appended)) => {
                let events: Vec<_> = appended.events.iter().map(|event| (**event).clone()).collect();
                return match *is_repeat == appended.is_repeat {
                    true => self.compare(range.clone(), &events),
                    false => Err(format!("{append:?} was answered {answer:?} instead of {expected:?}")),
                };
            }
            (Answer::Conflict(tail), Err(AppendError::Conflict { actual, .. })) => {
                *tail == actual.map(Seq::get)
            }
            (Answer::KeyReused(at), Err(AppendError::KeyReused { first, .. })) => *at == first.get(),
            (Answer::Erased, Err(AppendError::Erased { .. })) => true,
            _ => false,
        };
        if is_right { Ok(()) } else { Err(format!("{append:?} was answered {answer:?}, not {expected:?}")) }
    }

    /// Nobody knows whether this was recorded.
    pub(super) fn unanswered(&mut self, append: Append) {
        let is_erased = self.is_erased(&append.stream);
        self.unanswered.push((append, is_erased));
    }

    /// Nobody knows whether this thread was erased.
    pub(super) fn erasing(&mut self, stream: StreamId) {
        if !self.erasing.contains(&stream) {
            self.erasing.push(stream);
        }
    }

    /// This thread was erased: an answer said so.
    pub(super) fn erased(&mut self, stream: StreamId) {
        self.erasing.retain(|one| *one != stream);
        if !self.is_erased(&stream) {
            self.erased.push(stream);
        }
    }

    /// Threads whose erasure is to be asked for again.
    pub(super) fn unfinished_erasures(&self) -> Vec<StreamId> {
        self.erasing.clone()
    }

    /// Compares the whole log with what is known, and learns which unanswered appends are in it. Gives
    /// those that are not.
    pub(super) fn reopened(&mut self, log: &EventLog) -> Result<Vec<Append>, String> {
        let found = log.read_all(Position::ZERO, usize::MAX).map_err(|error| chain(&error))?;
        let lost = self.adopt(&found)?;
        if log.head().get() != self.rows.len() as u64 {
            return Err(format!("the head is {}, and there are {} events", log.head(), self.rows.len()));
        }
        self.check_streams(log)?;
        Ok(lost)
    }

    /// The events that are there must be those that are known, and then unanswered appends, each whole.
    pub(super) fn adopt(&mut self, found: &[RecordedEvent]) -> Result<Vec<Append>, String> {
        if found.len() < self.rows.len() {
            return Err(format!(
                "{} events were acknowledged, and {} are there",
                self.rows.len(),
                found.len()
            ));
        }
        let known = self.rows.len();
        self.compare(0..known, &found[..known])?;
        let mut lost = Vec::new();
        for (append, is_erased) in std::mem::take(&mut self.unanswered) {
            let mut trial = self.clone();
            let Answer::Appended(range, false) = trial.apply(&append, is_erased) else { continue };
            match found.get(range.clone()).filter(|_| trial.is_next(&range, found)) {
                Some(events) => {
                    trial.compare(range, events)?;
                    *self = trial;
                }
                None => lost.push(append),
            }
        }
        match found.get(self.rows.len()) {
            Some(event) => Err(format!("nobody appended this, or not alone: {event:?}")),
            None => Ok(lost),
        }
    }

    /// Whether the first of these is what stands there.
    fn is_next(&self, range: &Range<usize>, found: &[RecordedEvent]) -> bool {
        let (row, event) = (&self.rows[range.start], &found[range.start]);
        row.stream == event.stream && (event.is_erased() || row.number == number(event.content.get()))
    }

    /// Compares rows with events, and learns their hashes.
    fn compare(&mut self, range: Range<usize>, events: &[RecordedEvent]) -> Result<(), String> {
        if range.len() != events.len() {
            return Err(format!("{} events instead of {}: {events:?}", events.len(), range.len()));
        }
        for (at, event) in range.zip(events) {
            self.check(at, event)?;
            self.rows[at].hash = Some(event.hash);
        }
        Ok(())
    }

    fn check(&self, at: usize, event: &RecordedEvent) -> Result<(), String> {
        let row = &self.rows[at];
        let is_in_place =
            (event.position.get(), &event.stream, event.seq.get()) == (at as u64 + 1, &row.stream, row.seq);
        let is_same = row.hash.is_none_or(|hash| hash == event.hash);
        let is_said = match event.is_erased() {
            true => self.is_erased(&row.stream) || self.erasing.contains(&row.stream),
            false => {
                !self.is_erased(&row.stream)
                    && number(event.content.get()) == row.number
                    && event.scope.run_id == row.run
            }
        };
        if is_in_place && is_same && is_said {
            return Ok(());
        }
        Err(format!("position {} has {event:?}, and must have {row:?}", at + 1))
    }

    /// Compares what somebody has read behind a cursor, of the log or of one stream.
    pub(super) fn check_read(
        &self,
        of: Option<&StreamId>,
        after: u64,
        limit: usize,
        events: &[RecordedEvent],
    ) -> Result<(), String> {
        let rows = (0..self.rows.len()).filter(|at| {
            let row = &self.rows[*at];
            match of {
                None => *at as u64 >= after,
                Some(stream) => row.stream == *stream && row.seq > after,
            }
        });
        self.check_all(rows.take(limit).collect(), events)
    }

    /// The same of a run, of which nothing is given once it is erased.
    pub(super) fn check_run(
        &self,
        stream: &StreamId,
        run: &RunId,
        events: &[RecordedEvent],
    ) -> Result<(), String> {
        if self.erasing.contains(stream) {
            return Ok(());
        }
        let rows = (0..self.rows.len()).filter(|at| {
            let row = &self.rows[*at];
            row.stream == *stream && row.run.as_ref() == Some(run) && !self.is_erased(stream)
        });
        self.check_all(rows.collect(), events)
    }

    fn check_all(&self, rows: Vec<usize>, events: &[RecordedEvent]) -> Result<(), String> {
        if rows.len() != events.len() {
            return Err(format!("{} events instead of {}: {events:?}", events.len(), rows.len()));
        }
        rows.into_iter().zip(events).try_for_each(|(at, event)| self.check(at, event))
    }

    /// Every stream, by its own index.
    fn check_streams(&self, log: &EventLog) -> Result<(), String> {
        let mut names: Vec<&StreamId> = self.rows.iter().map(|row| &row.stream).collect();
        names.sort_by_key(ToString::to_string);
        names.dedup();
        for stream in &names {
            let events = log.read_stream(stream, Seq::ZERO, usize::MAX).map_err(|error| chain(&error))?;
            self.check_read(Some(stream), 0, usize::MAX, &events)?;
            let tail = log.stream_tail(stream).map_err(|error| chain(&error))?.map(Seq::get);
            if tail != self.tail(stream) {
                return Err(format!("{stream} ends at {tail:?}, not at {:?}", self.tail(stream)));
            }
        }
        let listed = log.streams(None, usize::MAX).map_err(|error| chain(&error))?;
        if listed.iter().map(|summary| &summary.stream).ne(names) {
            return Err(format!("the list of streams is {listed:?}"));
        }
        Ok(())
    }
}

fn number(content: &str) -> u64 {
    content.parse().unwrap_or(u64::MAX)
}

/// An error with its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    /// Three appends that were answered, and one of two events that was not.
    async fn history() -> (Model, Vec<RecordedEvent>) {
        let (log, mut model) = (sample::memory_log(), Model::default());
        for (name, numbers) in [("a", vec![1, 2]), ("b", vec![3]), ("a", vec![4])] {
            let append = sample::to(&sample::thread(name), Expected::Any, sample::notes(numbers));
            let answer = log.append(append.clone()).await;
            model.answered(&append, &answer).unwrap();
        }
        let append = sample::to(&sample::thread("b"), Expected::Any, sample::notes([5, 6]));
        log.append(append.clone()).await.unwrap();
        model.unanswered(append);
        (model, log.read_all(Position::ZERO, 99).unwrap())
    }

    #[tokio::test]
    async fn the_model_knows_a_log_that_is_not_what_was_recorded() {
        type Change = fn(&mut Vec<RecordedEvent>);
        let (model, events) = history().await;
        for (what, is_fine, change) in [
            ("nothing changed", true, (|_| {}) as Change),
            ("an unanswered append is not there", true, |events| events.truncate(4)),
            ("an unanswered append is there by half", false, |events| events.truncate(5)),
            ("an acknowledged event is gone", false, |events| events.truncate(3)),
            ("two events changed places", false, |events| events.swap(0, 1)),
            ("a seq was given out twice", false, |events| events[1].seq = Seq::new(1)),
            ("a position was left out", false, |events| events[3].position = Position::new(5)),
            ("a content changed", false, |events| events[0] = events[1].clone()),
            ("a hash changed", false, |events| events[2].hash = [0; 32]),
            ("an event is in another stream", false, |events| events[2].stream = sample::thread("c")),
            ("an unanswered append is there twice", false, |events| {
                let again: Vec<_> = events[4..].to_vec();
                events.extend(again);
            }),
        ] {
            let (mut model, mut events) = (model.clone(), events.clone());
            change(&mut events);
            assert_eq!(model.adopt(&events).is_ok(), is_fine, "{what}");
        }
        let mut erased = model.clone();
        erased.erased(sample::thread("a"));
        assert!(erased.adopt(&events).is_err(), "what was erased can be read again");
    }
}
