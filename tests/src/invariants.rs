//! What holds for every thread's history, whatever happened in it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::record::{assert_gapless, assert_valid, text};

/// A thread's whole history, in which every run has ended: valid, gapless, in order of cause, with
/// exactly one end for everything that began.
#[track_caller]
pub fn assert_whole(events: &[Value]) {
    assert_valid(events);
    assert_gapless(events);
    assert_runs_end_once(events);
    assert_delegations_end_once(events);
    assert_secret_free(events);
}

/// Every run begins with its start and has one terminal status, after which nothing comes.
#[track_caller]
pub fn assert_runs_end_once(events: &[Value]) {
    for (run_id, of_run) in grouped(events, "run_id") {
        assert_eq!(text(of_run[0], "event_type"), "run.start", "the first event of run {run_id}");
        let ends: Vec<usize> = (0..of_run.len()).filter(|at| is_terminal(of_run[*at])).collect();
        assert_eq!(ends, [of_run.len() - 1], "terminal statuses of run {run_id}, of {} events", of_run.len());
    }
}

/// Every delegation begins with its request or refusal and ends once; what was queued comes before
/// what was admitted, and the result is delivered last. A delegation whose lead was stopped is not
/// delivered.
#[track_caller]
pub fn assert_delegations_end_once(events: &[Value]) {
    for (id, of_delegation) in grouped(events, "delegation_id") {
        let types: Vec<&str> = of_delegation.iter().map(|event| text(event, "event_type")).collect();
        let places =
            |wanted: &str| -> Vec<usize> { (0..types.len()).filter(|at| types[*at] == wanted).collect() };
        let ends = [places("subagent.end"), places("delegation.refused")].concat();
        assert_eq!(ends.len(), 1, "ends of delegation {id}: {types:?}");
        assert!(["delegation.requested", "delegation.refused"].contains(&types[0]), "{id}: {types:?}");
        for once in [
            "delegation.requested",
            "delegation.queued",
            "delegation.admitted",
            "subagent.start",
            "delegation.delivered",
        ] {
            assert!(places(once).len() <= 1, "{once} of {id}: {types:?}");
        }
        for (earlier, later) in [
            ("delegation.requested", "delegation.queued"),
            ("delegation.queued", "delegation.admitted"),
            ("delegation.admitted", "subagent.start"),
            ("subagent.start", "subagent.message"),
            ("subagent.end", "delegation.delivered"),
        ] {
            if let (Some(one), Some(other)) = (places(earlier).first(), places(later).first()) {
                assert!(one < other, "{later} before {earlier} of {id}: {types:?}");
            }
        }
        for late in
            ["subagent.step", "subagent.message", "subagent.receipt", "subagent.cap", "subagent.compaction"]
        {
            assert!(places(late).last().is_none_or(|at| *at < ends[0]), "{late} after the end of {id}");
        }
        assert_numbered(&id, &of_delegation);
    }
}

/// Steps and receipts count from 1, without a gap and without a repeat.
#[track_caller]
fn assert_numbered(id: &str, events: &[&Value]) {
    let steps: Vec<u64> =
        of(events, "subagent.step").filter_map(|step| step["message_index"].as_u64()).collect();
    assert_eq!(steps, (1..=steps.len() as u64).collect::<Vec<_>>(), "steps of {id}");
    let receipts: Vec<&str> = of(events, "subagent.receipt").map(|receipt| text(receipt, "id")).collect();
    let expected: Vec<String> = (1..=receipts.len()).map(|number| format!("r{number}")).collect();
    assert_eq!(receipts, expected, "receipts of {id}");
}

fn of<'a>(events: &'a [&Value], event_type: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["event_type"] == event_type).map(|event| &event["content"])
}

/// The stub's key is in no event.
#[track_caller]
fn assert_secret_free(events: &[Value]) {
    for event in events {
        assert!(!event.to_string().contains(crate::stub_model::KEY), "{event}");
    }
}

/// Whether this is a run's terminal status.
pub fn is_terminal(event: &Value) -> bool {
    let status = text(&event["content"], "status");
    event["event_type"] == "run.status" && !["pending", "running"].contains(&status)
}

/// The events by the value of this field, where they have one.
pub fn grouped<'a>(events: &'a [Value], key: &str) -> BTreeMap<String, Vec<&'a Value>> {
    let mut groups: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for event in events {
        if let Some(value) = event[key].as_str() {
            groups.entry(value.to_owned()).or_default().push(event);
        }
    }
    groups
}
