//! Going through a thread, run or delegation, event by event. It holds a page of events and one
//! state; going back folds again from the beginning.

use std::collections::VecDeque;

use api::records;
use contracts::wire::event::EventRecord;
use domain::{
    card::{Card, CardHead, CardPart},
    event::{Event, Logged},
    limits::EVENTS_PAGE_RANGE,
};
use projections::ThreadReplay;

use crate::{
    render::replay::{State, What},
    source::{EventsPage, Past, Source},
};

/// The state after the last event that was passed.
pub(super) struct Walk<'a> {
    source: &'a Source,
    from: EventsPage,
    next: EventsPage,
    page: VecDeque<Past>,
    fold: Fold,
    last: Option<EventRecord>,
    /// The seqs that were passed, for the way back.
    passed: Vec<u64>,
}

enum Fold {
    Thread(Box<ThreadReplay>),
    Delegation(Option<Box<CardHead>>, Vec<CardPart>),
}

impl Fold {
    fn of(page: &EventsPage) -> Self {
        match page.task {
            Some(_) => Self::Delegation(None, Vec::new()),
            None => Self::Thread(Box::default()),
        }
    }

    fn take(&mut self, event: &Logged) {
        match self {
            Self::Thread(replay) => replay.take(event),
            Self::Delegation(head, parts) => {
                if matches!(event.event, Event::Delegation(_) | Event::Subagent(_)) {
                    *head = CardHead::fold(head.take().map(|head| *head), event).map(Box::new);
                    parts.extend(CardPart::of(event));
                }
            }
        }
    }

    fn shown(&self) -> What {
        match self {
            Self::Thread(replay) => What::Thread {
                runs: replay.runs().into_iter().cloned().map(records::run).collect(),
                delegations: replay.delegations().into_iter().map(records::delegation).collect(),
            },
            Self::Delegation(head, parts) => {
                let card = head.as_ref().map(|head| Card::assemble((**head).clone(), parts.iter().cloned()));
                What::Delegation { card: card.map(records::card).map(Box::new) }
            }
        }
    }
}

impl<'a> Walk<'a> {
    /// Begins before the first event.
    pub(super) fn new(
        source: &'a Source,
        thread_id: String,
        run_id: Option<String>,
        task: Option<String>,
    ) -> Self {
        let limit = *EVENTS_PAGE_RANGE.end() as usize;
        let from = EventsPage { thread_id, run_id, task, event_types: None, after_seq: 0, limit };
        let (next, fold) = (from.clone(), Fold::of(&from));
        Self { source, from, next, page: VecDeque::new(), fold, last: None, passed: Vec::new() }
    }

    /// Passes one event; none at the end.
    pub(super) async fn next(&mut self) -> anyhow::Result<Option<EventRecord>> {
        let Some(past) = self.read().await? else { return Ok(None) };
        if let Some(logged) = &past.logged {
            self.fold.take(logged);
        }
        self.passed.push(past.record.seq);
        self.last = Some(past.record.clone());
        Ok(Some(past.record))
    }

    async fn read(&mut self) -> anyhow::Result<Option<Past>> {
        if self.page.is_empty() {
            self.page = self.source.history(&self.next).await?.into();
            if let Some(last) = self.page.back() {
                self.next.after_seq = last.record.seq;
            }
        }
        Ok(self.page.pop_front())
    }

    /// Passes all events up to a seq; gives the last of them.
    pub(super) async fn forward_to(&mut self, seq: u64) -> anyhow::Result<Option<EventRecord>> {
        loop {
            if self.page.is_empty() {
                // Looks at the next event without passing it.
                let Some(past) = self.read().await? else { return Ok(self.last.clone()) };
                self.page.push_front(past);
            }
            if self.page.front().is_none_or(|past| past.record.seq > seq) {
                return Ok(self.last.clone());
            }
            self.next().await?;
        }
    }

    /// Passes events until one has this seq or a later one.
    pub(super) async fn forward_to_at_least(&mut self, seq: u64) -> anyhow::Result<Option<EventRecord>> {
        loop {
            match self.next().await? {
                Some(record) if record.seq < seq => {}
                other => return Ok(other),
            }
        }
    }

    /// Goes back by one event; stays at the first.
    pub(super) async fn back(&mut self) -> anyhow::Result<Option<EventRecord>> {
        let before = self.passed.iter().rev().nth(1).or(self.passed.first()).copied();
        self.to(before.unwrap_or(1)).await
    }

    /// Goes to the event of this seq, or to the last before it; to the first if there is none.
    pub(super) async fn to(&mut self, seq: u64) -> anyhow::Result<Option<EventRecord>> {
        if self.passed.last().is_some_and(|last| *last > seq) {
            *self = self.begin_again();
        }
        let reached = self.forward_to(seq).await?;
        if reached.is_some() { Ok(reached) } else { self.next().await }
    }

    fn begin_again(&self) -> Self {
        let from = self.from.clone();
        Self::new(self.source, from.thread_id, from.run_id, from.task)
    }

    /// The last seq of the whole thread.
    pub(super) async fn tail(&self) -> anyhow::Result<u64> {
        let seen = self.passed.last().copied().unwrap_or(0);
        let mut page = EventsPage { run_id: None, task: None, after_seq: seen, ..self.from.clone() };
        loop {
            let events = self.source.events(&page).await?;
            match events.last() {
                Some(last) => page.after_seq = last.seq,
                None => return Ok(page.after_seq),
            }
        }
    }

    /// The state after the last event that was passed.
    pub(super) fn state(&self) -> State {
        let last = self.last.as_ref();
        State {
            seq: last.map_or(0, |record| record.seq),
            position: last.map_or(0, |record| record.position),
            event_type: last.map(|record| record.event_type.clone()).unwrap_or_default(),
            what: self.fold.shown(),
        }
    }
}
