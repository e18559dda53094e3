//! Cards: one delegation as a person looks at it. The head changes with every event and is one
//! row; parts are only ever added, and lie together in chunks: few rows for a card of many steps, and
//! little to write again for each of them.

mod parts;

use domain::{
    card::{Card, CardHead, CardPart},
    event::Logged,
    ids::{DelegationId, RunId, ThreadId, ToolCallId},
};
use eventlog::{Seq, engine::Direction};

pub(crate) use self::parts::CardParts;
use self::parts::PlacedPart;
use crate::{
    keys::{
        KeyKind, NameHash, RowKey as _,
        card::{CardHeadKey, CardOfTaskKey, CardPartsKey},
        chunk_of,
    },
    projections::Projections,
    rows::Rows,
    store::{RowError, Snapshot},
    view::{FoldError, View},
    views::ledger::delegation_of,
};

/// Names a delegation within a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskRef {
    /// By the provider's id of the `task` call. It may repeat even within a run: then the newest
    /// delegation is meant.
    TaskId(ToolCallId),
    /// By our id: always exactly one.
    DelegationId(DelegationId),
}

impl TaskRef {
    /// Whether it may name a delegation with these ids.
    pub(crate) fn names(&self, task_id: Option<&ToolCallId>, delegation_id: Option<DelegationId>) -> bool {
        match self {
            Self::TaskId(wanted) => task_id == Some(wanted),
            Self::DelegationId(wanted) => delegation_id == Some(*wanted),
        }
    }
}

/// The view of all cards.
pub(crate) struct CardsView;

impl View for CardsView {
    const NAME: &'static str = "cards";
    const VERSION: u32 = 6;
    const KINDS: &'static [KeyKind] =
        &[KeyKind::CardHead, KeyKind::CardParts, KeyKind::CardOfTask, KeyKind::CardHeadThen];

    fn apply(&self, event: &Logged, rows: &mut Rows<'_>) -> Result<(), FoldError> {
        let Some(delegation_id) = delegation_of(event) else { return Ok(()) };
        let thread_id = event.thread_id.clone();
        let key = CardHeadKey { thread_id: thread_id.clone(), delegation_id };
        if let Some(head) = rows.update(&key, |head| CardHead::fold(head, event))? {
            let entry = &head.entry;
            let task = CardOfTaskKey::new(&thread_id, &entry.run_id, &entry.task_id);
            rows.put(&task, delegation_id);
        }
        if let Some(part) = CardPart::of(event) {
            let run = NameHash::of_any_run(&thread_id, event.scope.run_id.as_ref());
            let key = CardPartsKey { thread_id, delegation_id, chunk: chunk_of(event.seq), run };
            let mut packed = Ok(());
            rows.update(&key, |parts| {
                let mut parts: CardParts = parts.unwrap_or_default();
                packed = parts.push(event.seq, &part);
                Some(parts)
            })?;
            packed.map_err(RowError::Unencodable)?;
        }
        Ok(())
    }
}

impl Projections {
    /// What is known of one delegation of a run, without its steps, receipts and caps.
    pub fn card_head(
        &self,
        thread_id: &ThreadId,
        run_id: &RunId,
        task: &TaskRef,
    ) -> Result<Option<CardHead>, RowError> {
        let snapshot = self.0.store.snapshot();
        let Some(delegation_id) = delegation_named(&snapshot, thread_id, run_id, task)? else {
            return Ok(None);
        };
        let head = snapshot.get(&CardHeadKey { thread_id: thread_id.clone(), delegation_id })?;
        Ok(head.filter(|head| head.entry.run_id == *run_id))
    }

    /// The card of one delegation of a run.
    pub fn card(
        &self,
        thread_id: &ThreadId,
        run_id: &RunId,
        task: &TaskRef,
    ) -> Result<Option<Card>, RowError> {
        let snapshot = self.0.store.snapshot();
        let Some(delegation_id) = delegation_named(&snapshot, thread_id, run_id, task)? else {
            return Ok(None);
        };
        let card = read_card(&snapshot, thread_id, delegation_id)?;
        Ok(card.filter(|card| card.head.entry.run_id == *run_id))
    }
}

fn delegation_named(
    snapshot: &Snapshot<'_>,
    thread_id: &ThreadId,
    run_id: &RunId,
    task: &TaskRef,
) -> Result<Option<DelegationId>, RowError> {
    match task {
        TaskRef::DelegationId(id) => Ok(Some(*id)),
        TaskRef::TaskId(task_id) => snapshot.get(&CardOfTaskKey::new(thread_id, run_id, task_id)),
    }
}

fn read_card(
    snapshot: &Snapshot<'_>,
    thread_id: &ThreadId,
    delegation_id: DelegationId,
) -> Result<Option<Card>, RowError> {
    let head = snapshot.get(&CardHeadKey { thread_id: thread_id.clone(), delegation_id })?;
    let Some(head) = head else { return Ok(None) };
    let parts = parts_until(snapshot, thread_id, delegation_id, Seq::new(u64::MAX))?;
    Ok(Some(Card::assemble(head, parts)))
}

/// The parts of a card that were added up to a seq, in their order.
pub(crate) fn parts_until(
    snapshot: &Snapshot<'_>,
    thread_id: &ThreadId,
    delegation_id: DelegationId,
    last: Seq,
) -> Result<impl Iterator<Item = CardPart> + use<>, RowError> {
    let of_card = CardPartsKey::of_card(thread_id, delegation_id);
    let range = of_card.range_of_numbers(0, chunk_of(last.get()));
    let chunks = snapshot.page::<CardPartsKey>(&range, Direction::Forward, usize::MAX)?;
    let mut parts: Vec<PlacedPart> = Vec::new();
    for (_, chunk) in chunks {
        let unpacked = chunk.unpack_into(&mut parts);
        unpacked.map_err(|source| RowError::damaged(CardPartsKey::KIND, source))?;
    }
    // Of several runs that name the delegation each has its own chunks.
    if !parts.is_sorted_by_key(|placed| placed.seq) {
        parts.sort_by_key(|placed| placed.seq);
    }
    Ok(parts.into_iter().take_while(move |placed| placed.seq <= last.get()).map(|placed| placed.part))
}
