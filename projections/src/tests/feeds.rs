//! Feeds, caps and receipts against plain lists: every page, every moment, live, made again and while
//! others write.

use std::collections::BTreeMap;

use domain::{
    event::{Event, Logged, RunEvent, SubagentEvent},
    ids::{RunId, ThreadId},
};
use eventlog::{RecordedEvent, Seq, StreamId};
use proptest::prelude::*;
use serde_json::Value;

use super::{
    history::{World, all_tasks, all_threads, ops, thread_id},
    open, store,
};
use crate::{
    CapFilter, CapRow, Feed, FeedPage, FeedQuery, Listing, Projections, ReceiptFilter, ReceiptRow, TaskRef,
};

fn feeds(world: &World) -> Vec<Feed> {
    let of_runs = world.runs().map(|(_, run)| Feed::OfRun(run.clone()));
    [Feed::Whole, Feed::Visible].into_iter().chain(of_runs).collect()
}

/// The messages of a thread that can be read, by hand.
fn said(world: &World, thread: &ThreadId) -> Vec<RecordedEvent> {
    let recorded = world.log.read_stream(&StreamId::Thread(thread.clone()), Seq::ZERO, 10_000).unwrap();
    let is_said = |event: &RecordedEvent| {
        event.category == "message" && !event.is_erased() && eventlog::decode(event).is_ok()
    };
    recorded.into_iter().filter(is_said).collect()
}

fn is_reply(event: &RecordedEvent) -> bool {
    event.event_type == "llm.ai.response" || event.event_type == "ai_message"
}

fn is_shown(event: &RecordedEvent) -> bool {
    let metadata: Value = serde_json::from_str(event.metadata.get()).unwrap();
    let caller = metadata["caller"].as_str().unwrap_or_default();
    let is_hidden = caller.starts_with("middleware:") || (is_reply(event) && caller.starts_with("subagent:"));
    !is_hidden
}

fn of_feed(said: &[RecordedEvent], feed: &Feed) -> Vec<RecordedEvent> {
    let is_in = |event: &&RecordedEvent| match feed {
        Feed::Whole => true,
        Feed::Visible => is_shown(event),
        Feed::OfRun(run) => event.scope.run_id.as_ref() == Some(run),
    };
    said.iter().filter(is_in).cloned().collect()
}

fn query(thread: &ThreadId, feed: &Feed, limit: usize) -> FeedQuery {
    FeedQuery { thread_id: thread.clone(), feed: feed.clone(), before: None, after: None, as_of: None, limit }
}

/// The rule of the pages in its obvious form (facts §7.2 and §8).
fn page_by_hand(all: &[RecordedEvent], query: &FeedQuery) -> FeedPage {
    let is_within = |event: &&RecordedEvent| {
        query.after.is_none_or(|after| event.seq > after)
            && query.before.is_none_or(|before| event.seq < before)
            && query.as_of.is_none_or(|last| event.seq <= last)
    };
    let within: Vec<_> = all.iter().filter(is_within).cloned().collect();
    let has_more = within.len() > query.limit;
    let first = if query.after.is_some() { 0 } else { within.len().saturating_sub(query.limit) };
    let messages = within.into_iter().skip(first).take(query.limit).collect();
    FeedPage { messages, has_more }
}

/// All messages of a feed from its beginning, page by page. Between two pages something happens.
fn forward(views: &Projections, mut query: FeedQuery, mut meanwhile: impl FnMut()) -> Vec<RecordedEvent> {
    let mut all = Vec::new();
    query.after = Some(Seq::ZERO);
    loop {
        let page = views.messages(&query).unwrap();
        assert!(page.messages.len() <= query.limit);
        query.after = page.messages.last().map(|last| last.seq).or(query.after);
        all.extend(page.messages);
        if !page.has_more {
            return all;
        }
        meanwhile();
    }
}

/// The same from the end.
fn backward(views: &Projections, mut query: FeedQuery, mut meanwhile: impl FnMut()) -> Vec<RecordedEvent> {
    let mut all = Vec::new();
    loop {
        let page = views.messages(&query).unwrap();
        query.before = page.messages.first().map(|first| first.seq).or(query.before);
        all.splice(0..0, page.messages);
        if !page.has_more {
            return all;
        }
        meanwhile();
    }
}

/// Everything that can be asked about feeds, caps and receipts at one moment.
#[derive(Debug, PartialEq)]
pub(super) struct Answers {
    feeds: Vec<FeedPage>,
    count: u64,
    last: BTreeMap<RunId, u64>,
    caps: Vec<CapRow>,
    receipts: Vec<ReceiptRow>,
}

fn runs(world: &World) -> Vec<RunId> {
    world.runs().map(|(_, run)| run.clone()).collect()
}

pub(super) fn of_views(views: &Projections, world: &World, thread: &ThreadId, as_of: Option<Seq>) -> Answers {
    let page = |feed| views.messages(&FeedQuery { as_of, ..query(thread, &feed, 1_000) }).unwrap();
    let listing = Listing { as_of, ..Listing::WHOLE };
    Answers {
        feeds: feeds(world).into_iter().map(page).collect(),
        count: views.message_count(thread, as_of).unwrap(),
        last: views.last_answers(thread, &runs(world), as_of).unwrap(),
        caps: views.caps(thread, &CapFilter::default(), listing).unwrap().rows,
        receipts: views.receipts(thread, &ReceiptFilter::default(), listing).unwrap().rows,
    }
}

pub(super) fn of_list(world: &World, thread: &ThreadId, as_of: Option<Seq>) -> Answers {
    let mut said = said(world, thread);
    said.retain(|event| as_of.is_none_or(|last| event.seq <= last));
    let mut facts = world.facts(world.log.head());
    facts.retain(|fact| fact.thread_id == *thread && as_of.is_none_or(|last| Seq::new(fact.seq) <= last));
    let whole = |feed| FeedPage { messages: of_feed(&said, &feed), has_more: false };
    let answers = said.iter().filter(|event| is_reply(event) && is_shown(event));
    let of_runs = answers.filter_map(|event| Some((event.scope.run_id.clone()?, event.seq.get())));
    Answers {
        feeds: feeds(world).into_iter().map(whole).collect(),
        count: said.len() as u64,
        last: of_runs.collect(),
        caps: facts.iter().filter_map(cap).collect(),
        receipts: facts.iter().filter_map(receipt).collect(),
    }
}

/// A guard of ours that fired.
fn cap(fact: &Logged) -> Option<CapRow> {
    let cap = match &fact.event {
        Event::Run(RunEvent::Capped(cap)) => cap,
        Event::Subagent(SubagentEvent::Capped(capped)) => &capped.cap,
        _ => return None,
    };
    fact.labels.is_none().then(|| CapRow {
        seq: fact.seq,
        at: fact.recorded_at,
        run_id: fact.scope.run_id.clone(),
        task_id: fact.scope.task_id.clone(),
        delegation_id: fact.scope.delegation_id,
        cap: cap.clone(),
    })
}

fn receipt(fact: &Logged) -> Option<ReceiptRow> {
    let Event::Subagent(SubagentEvent::Receipt(receipt)) = &fact.event else { return None };
    Some(ReceiptRow {
        seq: fact.seq,
        run_id: fact.scope.run_id.clone(),
        delegation_id: fact.scope.delegation_id?,
        receipt: receipt.clone(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn pages_are_those_of_the_list(
        ops in ops(90), limit in 1_usize..6, before in 0_u64..60, after in 0_u64..60, cursors in 0_u8..8,
    ) {
        let world = World::of(&ops);
        let views = Projections::in_memory(world.log.clone()).unwrap();
        views.catch_up().unwrap();
        for thread in all_threads() {
            let said = said(&world, &thread);
            for feed in feeds(&world) {
                let all = of_feed(&said, &feed);
                let query = query(&thread, &feed, limit);
                prop_assert_eq!(&forward(&views, query.clone(), || ()), &all);
                prop_assert_eq!(&backward(&views, query.clone(), || ()), &all);
                let wish = |bit: u8, seq: u64| (cursors & bit != 0).then(|| Seq::new(seq));
                let query =
                    FeedQuery { before: wish(1, before), after: wish(2, after), as_of: wish(4, after + 20), ..query };
                prop_assert_eq!(views.messages(&query).unwrap(), page_by_hand(&all, &query), "{:?}", query);
            }
        }
    }

    #[test]
    fn every_moment_is_as_it_was(ops in ops(70)) {
        let world = World::of(&ops);
        let views = open(&store(), &world.log);
        while views.position() < world.log.head() {
            views.step(5).unwrap();
        }
        for thread in all_threads() {
            prop_assert_eq!(of_views(&views, &world, &thread, None), of_list(&world, &thread, None));
            let last = world.log.stream_tail(&thread.clone().into()).unwrap().unwrap_or(Seq::ZERO);
            for seq in 0..=last.get() {
                let moment = Some(Seq::new(seq));
                prop_assert_eq!(
                    of_views(&views, &world, &thread, moment), of_list(&world, &thread, moment), "{} at {}", thread, seq
                );
            }
        }
    }

    #[test]
    fn pages_stay_whole_while_others_write(ops in ops(60), more in ops(40), limit in 1_usize..4) {
        let mut world = World::of(&ops);
        let views = Projections::in_memory(world.log.clone()).unwrap();
        views.catch_up().unwrap();
        for thread in all_threads() {
            let mut left = more.iter().copied();
            let before = of_feed(&said(&world, &thread), &Feed::Visible);
            let read = backward(&views, query(&thread, &Feed::Visible, limit), || {
                left.next().into_iter().for_each(|op| world.happen(op));
                views.catch_up().unwrap();
            });
            prop_assert_eq!(read, before, "what is new comes after what was there");
            let mut left = more.iter().copied();
            let read = forward(&views, query(&thread, &Feed::Whole, limit), || {
                left.next().into_iter().for_each(|op| world.happen(op));
                views.catch_up().unwrap();
            });
            prop_assert_eq!(read, said(&world, &thread), "and is read by whoever reads on");
        }
    }

    #[test]
    fn lists_are_filtered_before_they_are_cut(ops in ops(120), limit in 1_usize..4) {
        let world = World::of(&ops);
        let views = Projections::in_memory(world.log.clone()).unwrap();
        views.catch_up().unwrap();
        for thread in all_threads() {
            let whole = of_list(&world, &thread, None).receipts;
            let run_ids = runs(&world).into_iter().map(Some).chain([None]);
            for (run_id, task_id) in run_ids.flat_map(|run| all_tasks().map(move |task| (run.clone(), task))) {
                let task = Some(TaskRef::TaskId(task_id.clone()));
                let filter = ReceiptFilter { run_id: run_id.clone(), task, ..ReceiptFilter::default() };
                let expected: Vec<_> = whole
                    .iter()
                    .filter(|row| run_id.is_none() || row.run_id == run_id)
                    .filter(|row| row.receipt.task_id == task_id)
                    .cloned()
                    .collect();
                let (mut rows, mut after) = (Vec::new(), Seq::ZERO);
                loop {
                    let page = views.receipts(&thread, &filter, Listing { after, as_of: None, limit }).unwrap();
                    after = page.rows.last().map_or(after, |row| Seq::new(row.seq));
                    rows.extend(page.rows);
                    if !page.has_more {
                        break;
                    }
                }
                prop_assert_eq!(rows, expected);
            }
        }
    }
}

#[test]
fn what_was_erased_is_in_no_feed_and_no_count() {
    let ops: Vec<_> = (0..200_u8)
        .map(|number| super::history::Op {
            kind: [1, 3, 4, 17, 6, 9, 11, 13, 16, 4][usize::from(number % 10)],
            pick: number / 3,
            variant: number.wrapping_mul(7),
        })
        .collect();
    let mut world = World::of(&ops);
    let views = open(&store(), &world.log);
    views.catch_up().unwrap();
    let thread = thread_id(0);
    let run = world.runs().find(|(of, _)| **of == thread).map(|(_, run)| run.clone()).unwrap();
    let before = of_views(&views, &world, &thread, None);
    assert!(before.count > 0 && before.last.contains_key(&run));
    world.destroy_run(&thread, &run);
    // Nothing has to be told to the views: the rows went with the key of their run.
    let now = of_views(&views, &world, &thread, None);
    assert_eq!(now, of_list(&world, &thread, None));
    assert!(now.count > 0 && now.count < before.count && !now.last.contains_key(&run));
    let made_anew = open(&store(), &world.log);
    made_anew.catch_up().unwrap();
    assert_eq!(of_views(&made_anew, &world, &thread, None), now);
    world.erase(&thread);
    let gone = of_views(&views, &world, &thread, None);
    assert_eq!((gone.count, gone.last.len(), gone.caps.len(), gone.receipts.len()), (0, 0, 0, 0));
    assert!(gone.feeds.iter().all(|page| page.messages.is_empty() && !page.has_more));
    let other = thread_id(1);
    assert_eq!(of_views(&views, &world, &other, None), of_list(&world, &other, None));
}
