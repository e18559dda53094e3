//! The states of one card as they happened, one after the other: those that were recorded, then
//! those that come.

mod pace;

use std::collections::VecDeque;

use domain::{
    card::{Card, CardHead, CardPart},
    event::{DelegationEvent, Event, Logged, SubagentEvent},
    ids::{DelegationId, RunId, ThreadId},
};
use eventlog::{EventFilter, EventLog, Position, ReadError, Seq, StreamId, SubscribeFrom, Subscription};
use jiff::Timestamp;

pub use self::pace::{InvalidPace, Pace};
use crate::views::{card::TaskRef, ledger::delegation_of};

/// Events that are held at most. Bodies may have megabytes.
const PAGE: usize = 64;

/// Folds one delegation's events. It holds one card and a page of events.
pub struct CardReplay {
    log: EventLog,
    thread_id: ThreadId,
    run_id: RunId,
    delegation_id: DelegationId,
    /// States up to this one are passed over.
    begin_after: Position,
    /// The last seq of the delegation that was read.
    after: Seq,
    page: VecDeque<Logged>,
    head: Option<CardHead>,
    parts: Vec<CardPart>,
    last_at: Option<Timestamp>,
    is_over: bool,
    live: Option<Subscription>,
}

/// A card after one of its events.
#[derive(Debug, Clone, PartialEq)]
pub struct CardState {
    /// The event's place in the log.
    pub position: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// When the event before it was.
    pub before: Option<Timestamp>,
    /// The card.
    pub card: Card,
}

impl CardReplay {
    /// The states of a delegation after a position of the log. None if the run has no such delegation.
    pub fn open(
        log: &EventLog,
        thread_id: ThreadId,
        run_id: RunId,
        task: &TaskRef,
        after: Position,
    ) -> Result<Option<Self>, ReadError> {
        let Some(delegation_id) = newest(log, &thread_id, &run_id, task)? else { return Ok(None) };
        Ok(Some(Self {
            log: log.clone(),
            thread_id,
            run_id,
            delegation_id,
            begin_after: after,
            after: Seq::ZERO,
            page: VecDeque::new(),
            head: None,
            parts: Vec::new(),
            last_at: None,
            is_over: false,
            live: None,
        }))
    }

    /// Which delegation it is.
    pub const fn delegation_id(&self) -> DelegationId {
        self.delegation_id
    }

    /// The next state that was recorded; none if there are no more now.
    pub fn next_recorded(&mut self) -> Result<Option<CardState>, ReadError> {
        loop {
            let Some(event) = self.page.pop_front() else {
                if self.read()? { continue } else { return Ok(None) }
            };
            if let Some(state) = self.fold(&event) {
                return Ok(Some(state));
            }
        }
    }

    /// The next state; waits until there is one. None when the delegation has ended and all of it
    /// was given out, or when it was erased. Nothing is lost when the call is cancelled.
    pub async fn next(&mut self) -> Result<Option<CardState>, ReadError> {
        loop {
            if let Some(state) = self.next_recorded()? {
                return Ok(Some(state));
            }
            if self.is_over || self.is_erased() {
                return Ok(None);
            }
            if let Some(live) = &mut self.live {
                live.next_page(PAGE).await?;
            }
        }
    }

    /// Whether nobody can read the delegation any more.
    pub fn is_erased(&self) -> bool {
        self.log.is_run_erased(&self.thread_id, &self.run_id)
    }

    /// Whether the last state that was given out is of a delegation that has ended.
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Reads a page. The tail is read before it: when the page is empty, a subscription that begins
    /// there misses nothing.
    fn read(&mut self) -> Result<bool, ReadError> {
        let stream = StreamId::Thread(self.thread_id.clone());
        let tail = self.log.stream_tail(&stream)?.unwrap_or(Seq::ZERO);
        let filter = EventFilter { delegation_id: Some(self.delegation_id), ..EventFilter::default() };
        let page = self.log.read_run(&self.thread_id, &self.run_id, &filter, self.after, PAGE)?;
        let Some(last) = page.last() else {
            if self.live.is_none() {
                self.live = Some(self.log.subscribe(SubscribeFrom::Stream { id: stream, after: tail }));
            }
            return Ok(false);
        };
        self.after = last.seq;
        self.page.extend(page.iter().filter_map(|event| eventlog::decode(event).ok()));
        Ok(true)
    }

    /// The card after an event, if it changed it and is asked for.
    fn fold(&mut self, event: &Logged) -> Option<CardState> {
        if delegation_of(event) != Some(self.delegation_id) {
            return None;
        }
        self.head = CardHead::fold(self.head.take(), event);
        self.parts.extend(CardPart::of(event));
        let before = self.last_at.replace(event.recorded_at);
        self.is_over |= is_end(&event.event);
        if event.position <= self.begin_after.get() {
            return None;
        }
        let card = Card::assemble(self.head.clone()?, self.parts.iter().cloned());
        Some(CardState { position: event.position, at: event.recorded_at, before, card })
    }
}

/// What comes after its end is only that it was delivered.
const fn is_end(event: &Event) -> bool {
    matches!(event, Event::Subagent(SubagentEvent::Ended(_)) | Event::Delegation(DelegationEvent::Refused(_)))
}

/// A provider's id may name several delegations of a run: the newest is meant.
fn newest(
    log: &EventLog,
    thread_id: &ThreadId,
    run_id: &RunId,
    task: &TaskRef,
) -> Result<Option<DelegationId>, ReadError> {
    let mut filter = EventFilter::default();
    match task {
        TaskRef::TaskId(task_id) => filter.task_id = Some(task_id.clone()),
        TaskRef::DelegationId(delegation_id) => filter.delegation_id = Some(*delegation_id),
    }
    let (mut found, mut after) = (Vec::new(), Seq::ZERO);
    loop {
        let page = log.read_run(thread_id, run_id, &filter, after, PAGE)?;
        let Some(last) = page.last() else { return Ok(found.last().copied()) };
        after = last.seq;
        for event in page.iter().filter_map(|event| eventlog::decode(event).ok()) {
            found.extend(delegation_of(&event).filter(|id| !found.contains(id)));
        }
        if matches!(task, TaskRef::DelegationId(_)) && !found.is_empty() {
            return Ok(found.last().copied());
        }
    }
}
