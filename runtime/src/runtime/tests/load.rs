//! Many delegations at once: nothing leaks, nobody is overtaken, everything ends once.

use std::collections::HashMap;

use domain::{event::Logged, ids::DelegationId};
use eventlog::{EventLog, Options};

use crate::{
    bench::{AgentsLoad, agents_on},
    testing::{
        facts_of,
        world::{check_ended_once, ledger_of},
    },
};

const LOAD: AgentsLoad =
    AgentsLoad { runs: 100, delegations_per_run: 10, turns_per_delegation: 2, max_running: 64, model_ms: 5 };
/// Leads ask side by side, and what they ask for is recorded a little later: so many places may two
/// delegations be swapped by. A gate without an order would swap hundreds.
const SWAPPED_MAX: usize = 2 * LOAD.runs as usize;

/// The delegations in the order of this type of event.
fn order(facts: &[Logged], event_type: &str) -> Vec<DelegationId> {
    let of_type = facts.iter().filter(|fact| fact.event.event_type() == event_type);
    of_type.filter_map(|fact| fact.scope.delegation_id).collect()
}

/// The most that were at work at once, as far as the record tells.
fn at_work_most(facts: &[Logged]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for fact in facts {
        match fact.event.event_type() {
            "delegation.admitted" => now += 1,
            "subagent.end" => now -= 1,
            _ => {}
        }
        most = most.max(now);
    }
    most
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_delegations_of_a_hundred_runs_leak_nothing_and_wait_in_order() {
    let (log, data) = (EventLog::in_memory(Options::default()), tempfile::tempdir().unwrap());
    let report = agents_on(&log, data.path(), LOAD).await.unwrap();
    assert_eq!((report.delegations, report.turns), (1_000, 100 * 2 + 1_000 * 2));
    assert!(report.overhead_per_turn_us.p50 > 0.0 && report.peak_rss_mib < 500.0, "{report:?}");

    let facts = facts_of(&log);
    check_ended_once(&facts);
    let ledger = ledger_of(&facts);
    assert!(
        ledger.len() == 1_000
            && ledger.iter().all(|entry| entry.status.as_str() == "completed" && entry.delivered)
    );
    assert!(at_work_most(&facts) <= 64, "{}", at_work_most(&facts));
    assert!(order(&facts, "delegation.queued").len() > 500, "most had to wait");
    let requested = order(&facts, "delegation.requested");
    let places: HashMap<_, _> = requested.iter().enumerate().map(|(place, id)| (*id, place)).collect();
    let admitted = order(&facts, "delegation.admitted");
    let swapped = admitted.iter().enumerate().map(|(place, id)| place.abs_diff(places[id])).max().unwrap();
    assert!(swapped <= SWAPPED_MAX, "somebody waited {swapped} places too long");
}
