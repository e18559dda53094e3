//! Which requests may be decided against the same state, and so be recorded in one append.
//!
//! A delegation is decided from its own events and from whether the run is open. So requests that
//! concern different delegations come out the same in whatever order they are decided; what concerns
//! the run itself is decided alone.

use std::collections::{HashSet, VecDeque};

use domain::ids::DelegationId;

use super::{Decision, Record, Request};

/// Takes the first request, and those behind it that do not depend on it or on each other. Their
/// order stays; the first one that depends on something ends it.
pub(super) fn take(waiting: &mut VecDeque<Request>) -> Vec<Request> {
    let (mut taken, mut touched) = (Vec::new(), HashSet::new());
    while let Some(next) = waiting.pop_front() {
        let touches = touches(&next.record);
        let is_free = touches.as_ref().is_some_and(|ids| ids.iter().all(|id| !touched.contains(id)));
        if !is_free && !taken.is_empty() {
            waiting.push_front(next);
            break;
        }
        taken.push(next);
        let Some(ids) = touches else { break };
        touched.extend(ids);
    }
    taken
}

/// The delegations that a request decides about or has facts of; nothing if it is about the run.
fn touches(record: &Record) -> Option<Vec<DelegationId>> {
    let decided = match &record.decision {
        Decision::None => None,
        Decision::Run(_) | Decision::Retry(..) => return None,
        Decision::Delegation(scope, _) => scope.delegation_id,
    };
    let of_facts = record.facts.iter().filter_map(|fact| fact.scope.delegation_id);
    Some(decided.into_iter().chain(of_facts).collect())
}

#[cfg(test)]
mod tests {
    use domain::{
        delegation::DelegationCommand,
        event::Scope,
        run::{RunCommand, RunEnding},
    };
    use tokio::sync::oneshot;
    use uuid::Uuid;

    use super::*;

    fn of(number: u128) -> Decision {
        let delegation_id = Some(DelegationId::from_uuid(Uuid::from_u128(number)));
        Decision::Delegation(
            Scope { delegation_id, ..Scope::default() },
            Box::new(DelegationCommand::Resume { spent_ms: 0 }),
        )
    }

    fn of_run() -> Decision {
        Decision::Run(RunCommand::End(RunEnding::Interrupted))
    }

    /// How many are taken at once, until none waits.
    fn taken(decisions: Vec<Decision>) -> Vec<usize> {
        let request = |decision| {
            let record = Record { decision, facts: Vec::new() };
            Request { record, reply: oneshot::channel().0 }
        };
        let mut waiting: VecDeque<Request> = decisions.into_iter().map(request).collect();
        std::iter::from_fn(|| (!waiting.is_empty()).then(|| take(&mut waiting).len())).collect()
    }

    #[test]
    fn what_concerns_one_delegation_twice_or_the_run_is_not_taken_together() {
        let rows: [(Vec<Decision>, &[usize]); 6] = [
            (vec![of(1), of(2), Decision::None, of(3)], &[4]),
            (vec![of(1), of(2), of(1), of(3)], &[2, 2]),
            (vec![of(1), of(1), of(1)], &[1, 1, 1]),
            (vec![of(1), of_run(), of(2)], &[1, 1, 1]),
            (vec![of_run(), of(1), of(2)], &[1, 2]),
            (vec![], &[]),
        ];
        for (decisions, expected) in rows {
            let shown = format!("{decisions:?}");
            assert_eq!(taken(decisions), expected, "{shown}");
        }
    }
}
