//! Recording events that somebody else made, also only where there is none yet.
//!
//! Looking and recording must be one step, or two writers would both find nothing. The append says
//! at which seq the thread was looked at, and is refused when the thread has moved on; then it is
//! looked at again. Requests that look keep other requests off the thread meanwhile, so that under
//! many writers they get their turn.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use contracts::wire::problem::ProblemCode;
use domain::ids::{RunId, ThreadId};
use eventlog::{
    Append, AppendError, EventFilter, Expected, IdempotencyKey, NewEvent, Position, RecordedEvent, Seq,
    StreamId,
};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{
    error::{Answer, ApiError},
    state::Server,
};

/// How often a thread is looked at again because it moved on. Other requests are kept off, so it is
/// a run at work that moves it, by a few events per second.
const LOOKS_MAX: usize = 64;
/// Threads that share a gate wait for each other for one commit at a time.
const GATES: usize = 64;

/// An event that is to be recorded.
#[derive(Debug, Clone)]
pub(crate) struct Incoming {
    /// The event.
    pub(crate) event: NewEvent,
    /// Whether only the first of its run and type is recorded.
    pub(crate) is_if_absent: bool,
}

/// An event as it stands in the log.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    /// The record.
    pub(crate) event: Arc<RecordedEvent>,
    /// Whether the request made it.
    pub(crate) is_created: bool,
}

/// Lets many requests to a thread in that only record, or one that looks first.
#[derive(Debug)]
pub(crate) struct Gates(Vec<RwLock<()>>);

impl Gates {
    pub(crate) fn new() -> Self {
        Self((0..GATES).map(|_| RwLock::new(())).collect())
    }

    async fn shared(&self, thread_id: &ThreadId) -> Option<RwLockReadGuard<'_, ()>> {
        Some(self.of(thread_id)?.read().await)
    }

    async fn alone(&self, thread_id: &ThreadId) -> Option<RwLockWriteGuard<'_, ()>> {
        Some(self.of(thread_id)?.write().await)
    }

    fn of(&self, thread_id: &ThreadId) -> Option<&RwLock<()>> {
        let mut hasher = DefaultHasher::new();
        thread_id.hash(&mut hasher);
        self.0.get(usize::try_from(hasher.finish() % GATES as u64).ok()?)
    }
}

/// What becomes of one event of a request.
enum Slot {
    /// The log had one of its run and type.
    Found(Arc<RecordedEvent>),
    /// It is the n-th of those that are appended.
    New(usize),
    /// An earlier one of the same request is, and is of its run and type.
    Same(usize),
}

/// One request's events, sorted out against the thread as it was.
struct Sorted {
    slots: Vec<Slot>,
    events: Vec<NewEvent>,
}

impl Server {
    /// Records all of the events or none. An empty list records nothing.
    pub(crate) async fn ingest(
        &self,
        thread_id: &ThreadId,
        incoming: Vec<Incoming>,
        key: Option<IdempotencyKey>,
    ) -> Answer<Vec<Stored>> {
        if incoming.is_empty() {
            return Ok(Vec::new());
        }
        if incoming.iter().any(|event| event.is_if_absent) {
            let _alone = self.ingest_gates.alone(thread_id).await;
            return self.ingest_if_absent(thread_id, incoming, key).await;
        }
        let _shared = self.ingest_gates.shared(thread_id).await;
        let events = incoming.into_iter().map(|incoming| incoming.event).collect();
        let append = Append {
            stream: thread_id.clone().into(),
            expected: Expected::Any,
            idempotency_key: key,
            events,
        };
        let appended = self.log.append(append).await?;
        Ok(appended.events.into_iter().map(|event| Stored { event, is_created: true }).collect())
    }

    async fn ingest_if_absent(
        &self,
        thread_id: &ThreadId,
        incoming: Vec<Incoming>,
        key: Option<IdempotencyKey>,
    ) -> Answer<Vec<Stored>> {
        let incoming = Arc::new(incoming);
        for _ in 0..LOOKS_MAX {
            let (tail, sorted) = self.sort(thread_id, &incoming, None).await?;
            if sorted.events.is_empty() {
                let earlier = self.earlier_answer(thread_id, &incoming, key).await?;
                return Ok(earlier.unwrap_or_else(|| sorted.answer(&[])));
            }
            match self.append_new(thread_id, &sorted, tail, key.clone()).await {
                Err(AppendError::Conflict { .. }) => {}
                Err(AppendError::KeyReused { first, .. }) => {
                    return self.answer_from(thread_id, &incoming, key, first).await;
                }
                answer => return Ok(answer?),
            }
        }
        let detail = format!("thread {thread_id} is too busy to look for earlier events; try again");
        Err(ApiError::new(ProblemCode::Unavailable, detail))
    }

    /// The answer that the first request with this key got, when that request made what is there.
    async fn earlier_answer(
        &self,
        thread_id: &ThreadId,
        incoming: &Arc<Vec<Incoming>>,
        key: Option<IdempotencyKey>,
    ) -> Answer<Option<Vec<Stored>>> {
        if key.is_none() {
            return Ok(None);
        }
        // Keys are looked up before expectations, and this one never holds: nothing is recorded.
        let never = Seq::new(u64::MAX);
        let (_, all) = self.sort(thread_id, incoming, Some(Position::ZERO)).await?;
        match self.append_new(thread_id, &all, never, key.clone()).await {
            Err(AppendError::Conflict { .. }) => Ok(None),
            Err(AppendError::KeyReused { first, .. }) => {
                self.answer_from(thread_id, incoming, key, first).await.map(Some)
            }
            answer => Ok(Some(answer?)),
        }
    }

    /// The answer of an earlier request with the same key, whose events begin at a position. What is
    /// there from that position on was not there for it. A refusal: it was another request.
    async fn answer_from(
        &self,
        thread_id: &ThreadId,
        incoming: &Arc<Vec<Incoming>>,
        key: Option<IdempotencyKey>,
        first: Position,
    ) -> Answer<Vec<Stored>> {
        let (tail, sorted) = self.sort(thread_id, incoming, Some(first)).await?;
        if sorted.events.is_empty() {
            let detail = "the idempotency key was used on this thread for other content";
            return Err(ApiError::new(ProblemCode::Conflict, detail));
        }
        Ok(self.append_new(thread_id, &sorted, tail, key).await?)
    }

    /// Looks for the events that may be there, and says at which seq. What was recorded from a
    /// position on can be left out of account.
    async fn sort(
        &self,
        thread_id: &ThreadId,
        incoming: &Arc<Vec<Incoming>>,
        before: Option<Position>,
    ) -> Answer<(Seq, Sorted)> {
        let (thread_id, incoming) = (thread_id.clone(), Arc::clone(incoming));
        self.read(move |server| {
            let tail = server.log.stream_tail(&StreamId::Thread(thread_id.clone()))?.unwrap_or(Seq::ZERO);
            let found = |run_id: &RunId, event_type: &str| {
                let found = server.first_of(&thread_id, run_id, event_type)?;
                Ok(found.filter(|event| before.is_none_or(|before| event.position < before)))
            };
            Ok((tail, sorted(&incoming, found)?))
        })
        .await
    }

    fn first_of(
        &self,
        thread_id: &ThreadId,
        run_id: &RunId,
        event_type: &str,
    ) -> Answer<Option<RecordedEvent>> {
        let event_types = Some(vec![event_type.to_owned()]);
        let filter = EventFilter { event_types, ..EventFilter::default() };
        Ok(self.log.read_run(thread_id, run_id, &filter, Seq::ZERO, 1)?.pop())
    }

    async fn append_new(
        &self,
        thread_id: &ThreadId,
        sorted: &Sorted,
        tail: Seq,
        idempotency_key: Option<IdempotencyKey>,
    ) -> Result<Vec<Stored>, AppendError> {
        let (stream, expected) = (thread_id.clone().into(), Expected::Exact(tail));
        let append = Append { stream, expected, idempotency_key, events: sorted.events.clone() };
        Ok(sorted.answer(&self.log.append(append).await?.events))
    }
}

impl Sorted {
    /// The answer, when the new ones were recorded as these.
    fn answer(&self, recorded: &[Arc<RecordedEvent>]) -> Vec<Stored> {
        let stored = |index: usize, is_created| {
            recorded.get(index).map(|event| Stored { event: Arc::clone(event), is_created })
        };
        let answer = self.slots.iter().filter_map(|slot| match slot {
            Slot::Found(event) => Some(Stored { event: Arc::clone(event), is_created: false }),
            Slot::New(index) => stored(*index, true),
            Slot::Same(index) => stored(*index, false),
        });
        answer.collect()
    }
}

/// Sorts events into those that are there and those that are new. Within one request the first of a
/// run and type counts as there for all that come after it.
fn sorted(
    incoming: &[Incoming],
    mut found: impl FnMut(&RunId, &str) -> Answer<Option<RecordedEvent>>,
) -> Answer<Sorted> {
    let mut sorted = Sorted { slots: Vec::with_capacity(incoming.len()), events: Vec::new() };
    let mut seen: HashMap<(RunId, String), Result<Arc<RecordedEvent>, usize>> = HashMap::new();
    for Incoming { event, is_if_absent } in incoming {
        let key = event.scope.run_id.clone().map(|run_id| (run_id, event.event_type.clone()));
        if let Some(key) = key.clone().filter(|_| *is_if_absent) {
            let there = match seen.get(&key) {
                Some(there) => Some(there.clone()),
                None => found(&key.0, &key.1)?.map(|event| Ok(Arc::new(event))),
            };
            if let Some(there) = there {
                sorted.slots.push(match &there {
                    Ok(event) => Slot::Found(Arc::clone(event)),
                    Err(index) => Slot::Same(*index),
                });
                seen.insert(key, there);
                continue;
            }
        }
        let index = sorted.events.len();
        if let Some(key) = key {
            seen.entry(key).or_insert(Err(index));
        }
        sorted.slots.push(Slot::New(index));
        sorted.events.push(event.clone());
    }
    Ok(sorted)
}
