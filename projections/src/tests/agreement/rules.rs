//! What the views must agree on, rule by rule, whatever a model says.

use domain::{
    card::Card,
    event::RunStatus,
    ids::ThreadId,
    ledger::{LedgerEntry, LedgerStatus},
    usage::Usage,
};
use eventlog::Seq;

use super::super::{history::World, sums::prices};
use crate::{
    CapFilter, CapRow, Listing, Projections, ReceiptFilter, ReceiptRow, RunRow, TaskRef, ThreadRow,
    UsageQuery, as_of, usage_as_of,
};

/// One moment of a thread, as far as views show it in more than one place.
struct Moment {
    thread: Option<ThreadRow>,
    runs: Vec<RunRow>,
    ledger: Vec<LedgerEntry>,
    ledgers_of_runs: Vec<Vec<LedgerEntry>>,
    cards: Vec<Card>,
    statuses: Vec<LedgerStatus>,
    caps: Vec<CapRow>,
    receipts: Vec<ReceiptRow>,
    /// Of each run: all, the lead's, and all subagents'.
    usage: Vec<[Option<Usage>; 3]>,
}

pub(super) fn check(views: &Projections, world: &World, thread: &ThreadId) {
    let runs = views.runs(thread, None, usize::MAX).unwrap();
    let ledger = views.ledger(thread, None).unwrap();
    let of_entry = |entry: &LedgerEntry| {
        let task = TaskRef::DelegationId(entry.delegation_id);
        let head = views.card_head(thread, &entry.run_id, &task).unwrap().expect("a status");
        (views.card(thread, &entry.run_id, &task).unwrap().expect("a card"), head.entry.status)
    };
    let (cards, statuses) = ledger.iter().map(of_entry).unzip();
    let usage = |run: &RunRow, caller: Option<&str>| {
        views.usage(&query(thread, run, caller), &prices()).unwrap().total.usage
    };
    let moment = Moment {
        thread: views.thread(thread).unwrap(),
        ledgers_of_runs: runs.iter().map(|run| views.ledger(thread, Some(&run.run_id)).unwrap()).collect(),
        usage: runs.iter().map(|run| CALLERS.map(|caller| usage(run, caller))).collect(),
        caps: views.caps(thread, &CapFilter::default(), Listing::WHOLE).unwrap().rows,
        receipts: views.receipts(thread, &ReceiptFilter::default(), Listing::WHOLE).unwrap().rows,
        runs,
        ledger,
        cards,
        statuses,
    };
    moment.check(world);
}

pub(super) fn check_then(views: &Projections, world: &World, thread: &ThreadId, seq: Seq) {
    let runs = as_of::runs_as_of(views, thread, seq, None, usize::MAX).unwrap();
    let ledger = as_of::ledger_as_of(views, thread, None, seq).unwrap();
    let of_entry = |entry: &LedgerEntry| {
        let (run, task) = (&entry.run_id, TaskRef::DelegationId(entry.delegation_id));
        let head = as_of::card_head_as_of(views, thread, run, &task, seq).unwrap().expect("a status");
        (as_of::card_as_of(views, thread, run, &task, seq).unwrap().expect("a card"), head.entry.status)
    };
    let (cards, statuses) = ledger.iter().map(of_entry).unzip();
    let usage = |run: &RunRow, caller: Option<&str>| {
        let query = query(thread, run, caller);
        usage_as_of(views, thread, seq, &query, &prices()).unwrap().total.usage
    };
    let of_run = |run: &RunRow| as_of::ledger_as_of(views, thread, Some(&run.run_id), seq).unwrap();
    let listing = Listing { as_of: Some(seq), ..Listing::WHOLE };
    let moment = Moment {
        thread: as_of::thread_as_of(views, thread, seq).unwrap(),
        ledgers_of_runs: runs.iter().map(of_run).collect(),
        usage: runs.iter().map(|run| CALLERS.map(|caller| usage(run, caller))).collect(),
        caps: views.caps(thread, &CapFilter::default(), listing).unwrap().rows,
        receipts: views.receipts(thread, &ReceiptFilter::default(), listing).unwrap().rows,
        runs,
        ledger,
        cards,
        statuses,
    };
    moment.check(world);
}

const CALLERS: [Option<&str>; 3] = [None, Some("lead_agent"), Some("subagent")];

fn query(thread: &ThreadId, run: &RunRow, caller: Option<&str>) -> UsageQuery {
    UsageQuery {
        thread_id: Some(thread.clone()),
        run_id: Some(run.run_id.clone()),
        caller: caller.map(str::to_owned),
        ..UsageQuery::default()
    }
}

impl Moment {
    fn check(&self, world: &World) {
        self.the_thread_counts_its_runs();
        self.the_ledger_is_those_of_its_runs();
        for ((entry, card), status) in self.ledger.iter().zip(&self.cards).zip(&self.statuses) {
            assert_eq!(*status, entry.status, "the status is the ledger's");
            assert_eq!(card.head.entry, *entry, "the card has the ledger's entry");
            what_ended_has_its_outcome(card);
            steps_are_numbered_without_a_gap(card);
            self.caps_of_a_card_are_those_of_the_list(card);
            self.receipts_of_a_card_are_those_of_the_list(card);
        }
        for (run, ledger) in self.runs.iter().zip(&self.ledgers_of_runs) {
            a_run_counts_its_ledger(run, ledger);
            a_run_that_is_over_has_nothing_open(run, ledger);
        }
        for (run, usage) in self.runs.iter().zip(&self.usage) {
            let of_run = [run.usage.total, run.usage.lead, run.usage.subagents];
            assert_eq!(of_run, *usage, "a run cost what is summed up for it: {run:?}");
        }
        self.a_run_of_ours_cost_what_its_parts_did(world);
    }

    fn the_thread_counts_its_runs(&self) {
        let Some(thread) = &self.thread else {
            return assert!(self.runs.is_empty() && self.ledger.is_empty());
        };
        assert_eq!(thread.runs, self.runs.len() as u64);
        assert_eq!(thread.last_run_id, self.runs.first().map(|run| run.run_id.clone()));
        assert!(self.runs.iter().all(|run| run.last_seq <= thread.last_seq));
    }

    fn the_ledger_is_those_of_its_runs(&self) {
        let mut all: Vec<_> = self.ledgers_of_runs.iter().flatten().cloned().collect();
        all.sort_by_key(|entry| entry.first_seq);
        assert_eq!(all, self.ledger);
    }

    fn caps_of_a_card_are_those_of_the_list(&self, card: &Card) {
        let id = Some(card.head.entry.delegation_id);
        let listed: Vec<_> = self.caps.iter().filter(|row| row.delegation_id == id).collect();
        let listed: Vec<_> = listed.into_iter().map(|row| (row.cap.clone(), row.at, row.seq)).collect();
        assert_eq!(card.caps, listed);
        assert_eq!(card.head.caps as usize, listed.len());
    }

    fn receipts_of_a_card_are_those_of_the_list(&self, card: &Card) {
        let id = card.head.entry.delegation_id;
        let listed = self.receipts.iter().filter(|row| row.delegation_id == id);
        let listed: Vec<_> = listed.map(|row| (row.receipt.clone(), row.seq)).collect();
        assert_eq!(card.receipts, listed);
        let numbers: Vec<_> = listed.iter().map(|(receipt, _)| receipt.id.number() as usize).collect();
        assert_eq!(numbers, (1..=listed.len()).collect::<Vec<_>>(), "numbered without a gap");
        assert_eq!(card.head.last_receipt.map_or(0, |id| id.number() as usize), listed.len());
    }

    /// What subagents of the run cost by the ledger, and by the run. What others recorded is in no
    /// ledger, so that there may be more of it.
    fn a_run_of_ours_cost_what_its_parts_did(&self, world: &World) {
        for (run, ledger) in self.runs.iter().zip(&self.ledgers_of_runs).filter(|(run, _)| !run.is_of_others)
        {
            let of_ledger = ledger.iter().filter_map(|entry| entry.usage).reduce(Usage::plus);
            if world.was_told_by_others(&run.run_id) {
                let (less, more) = (tokens(of_ledger), tokens(run.usage.subagents));
                assert!(less <= more, "{less} of the ledger are more than {more} of the run");
            } else {
                assert_eq!(of_ledger, run.usage.subagents);
            }
        }
    }
}

fn tokens(usage: Option<Usage>) -> u64 {
    usage.map_or(0, |usage| usage.total_tokens)
}

fn what_ended_has_its_outcome(card: &Card) {
    let entry = &card.head.entry;
    assert_eq!(entry.status.is_terminal(), entry.ended_at.is_some());
    match entry.status {
        LedgerStatus::Queued => assert!(entry.started_at.is_none() && card.steps.is_empty()),
        LedgerStatus::InProgress => assert!(entry.started_at.is_some()),
        LedgerStatus::Completed => assert!(entry.result_brief.is_some() && card.head.result.is_some()),
        LedgerStatus::Failed | LedgerStatus::Cancelled | LedgerStatus::TimedOut => {
            assert!(entry.error.is_some() && card.head.result.is_none());
        }
        LedgerStatus::PollingTimedOut => assert!(entry.error.is_some() && entry.delivered),
        LedgerStatus::Refused => assert!(entry.error.is_some() && entry.usage.is_none()),
    }
}

fn steps_are_numbered_without_a_gap(card: &Card) {
    let numbers: Vec<_> = card.steps.iter().map(|step| step.message_index).collect();
    assert_eq!(numbers, (1..=card.head.steps).collect::<Vec<_>>());
}

fn a_run_counts_its_ledger(run: &RunRow, ledger: &[LedgerEntry]) {
    let refused = ledger.iter().filter(|entry| entry.status == LedgerStatus::Refused);
    let (at_once, later): (Vec<_>, Vec<_>) = refused.partition(|entry| entry.model_name.is_none());
    assert_eq!(run.delegations_requested as usize, ledger.len() - at_once.len());
    assert_eq!(run.delegations_refused as usize, at_once.len() + later.len());
}

fn a_run_that_is_over_has_nothing_open(run: &RunRow, ledger: &[LedgerEntry]) {
    assert_eq!(run.status.is_terminal(), run.ended_at.is_some());
    assert!(run.status != RunStatus::Success || run.is_of_others || run.result.is_some(), "{run:?}");
    assert!(!run.status.is_terminal() || ledger.iter().all(|entry| entry.status.is_terminal()));
}
