//! Pages: each row once, in order, whatever the limit.

use domain::ids::ThreadId;
use eventlog::{EventFilter, RecordedEvent, Seq};
use proptest::prelude::*;

use super::history::{World, all_tasks, all_threads, ops};
use crate::{EventQuery, Projections, RunRow, ThreadRow, event_page};

fn all_thread_pages(views: &Projections, limit: usize) -> Vec<ThreadRow> {
    let (mut rows, mut after) = (Vec::new(), None::<ThreadId>);
    loop {
        let page = views.threads(after.as_ref(), limit).unwrap();
        assert!(page.len() <= limit);
        let Some(last) = page.last() else { return rows };
        after = Some(last.thread_id.clone());
        rows.extend(page);
    }
}

fn all_run_pages(views: &Projections, thread: &ThreadId, limit: usize) -> Vec<RunRow> {
    let (mut rows, mut before) = (Vec::new(), None);
    loop {
        let page = views.runs(thread, before, limit).unwrap();
        assert!(page.len() <= limit);
        let Some(last) = page.last() else { return rows };
        before = Some(Seq::new(last.first_seq));
        rows.extend(page);
    }
}

fn all_event_pages(world: &World, mut query: EventQuery) -> Vec<RecordedEvent> {
    let mut events = Vec::new();
    loop {
        let page = event_page(&world.log, &query).unwrap();
        let Some(last) = page.last() else { return events };
        query.after = last.seq;
        let is_last = page.len() < query.limit;
        events.extend(page);
        if is_last {
            return events;
        }
    }
}

fn filters() -> Vec<EventFilter> {
    let types = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let by_type = EventFilter { event_types: types(&["run.status", "subagent.step"]), ..Default::default() };
    let nothing = EventFilter { event_types: types(&[]), ..Default::default() };
    let by_task = EventFilter { task_id: all_tasks().next(), ..Default::default() };
    vec![EventFilter::default(), by_type, nothing, by_task]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn pages_are_the_whole_in_pieces(ops in ops(60), limit in 1_usize..5) {
        let world = World::of(&ops);
        let views = Projections::in_memory(world.log.clone()).unwrap();
        views.catch_up().unwrap();
        prop_assert_eq!(all_thread_pages(&views, limit), views.threads(None, 100).unwrap());
        for thread in all_threads() {
            prop_assert_eq!(all_run_pages(&views, &thread, limit), views.runs(&thread, None, 100).unwrap());
            let recorded = world.log.read_stream(&thread.clone().into(), Seq::ZERO, 10_000).unwrap();
            let runs = world.runs().map(|(_, run)| Some(run.clone())).chain([None]);
            for (run_id, filter) in runs.flat_map(|run| filters().into_iter().map(move |f| (run.clone(), f))) {
                let wanted = |event: &&RecordedEvent| {
                    let is_of_run = run_id.is_none() || event.scope.run_id == run_id;
                    is_of_run && filter.matches(event)
                };
                let whole: Vec<_> = recorded.iter().filter(wanted).cloned().collect();
                let query = EventQuery {
                    thread_id: thread.clone(), run_id: run_id.clone(), filter: filter.clone(),
                    after: Seq::ZERO, as_of: None, limit,
                };
                let last = recorded.get(limit * 3).map(|event| event.seq);
                let then: Vec<_> = whole.iter().filter(|event| Some(event.seq) <= last).cloned().collect();
                let before = EventQuery { as_of: last, ..query.clone() };
                prop_assert_eq!(all_event_pages(&world, before), if last.is_some() { then } else { whole.clone() });
                prop_assert_eq!(all_event_pages(&world, query), whole);
            }
        }
    }
}
