//! Where the views stand.

use contracts::wire::health as wire;
use jiff::Timestamp;
use projections::{
    Difference, LastRebuild, Parked, RebuildOutcome, RebuildPhase, RebuildProgress, ViewHealth,
};

/// A view, with the first event that it passed over.
pub(crate) fn view_to_wire(view: &ViewHealth, first_parked: Option<&Parked>, now: Timestamp) -> wire::View {
    let seconds_since = |then: Timestamp| u64::try_from(now.duration_since(then).as_secs()).unwrap_or(0);
    wire::View {
        name: view.name.to_owned(),
        version: view.version,
        position: view.position.get(),
        lag: view.lag_events,
        lag_seconds: view.behind_since.map_or(0, seconds_since),
        parked: view.parked,
        first_parked: first_parked.map(|parked| format!("position {}: {}", parked.position, parked.reason)),
        rebuild: view.rebuild.as_ref().map(rebuild_to_wire),
        last_rebuild: view.last_rebuild.as_ref().map(last_rebuild_to_wire),
    }
}

/// How far a rebuild is.
pub(crate) fn rebuild_to_wire(progress: &RebuildProgress) -> wire::Rebuild {
    wire::Rebuild {
        number: progress.number,
        views: progress.views.iter().map(|view| (*view).to_owned()).collect(),
        check: progress.is_check,
        phase: match progress.phase {
            RebuildPhase::Folding => "folding",
            RebuildPhase::Comparing => "comparing",
            RebuildPhase::Deleting => "deleting",
        }
        .to_owned(),
        position: progress.position.get(),
        head: progress.head.get(),
        events_per_second: progress.events_per_second,
        seconds_left: progress.seconds_left,
    }
}

/// How a rebuild ended.
pub(crate) fn last_rebuild_to_wire(last: &LastRebuild) -> wire::LastRebuild {
    let ended = |outcome: &str, position: eventlog::Position, difference: Option<&Difference>| {
        let (outcome, position) = (outcome.to_owned(), Some(position.get()));
        let difference = difference.map(difference_to_wire);
        wire::LastRebuild { number: last.number, outcome, position, difference, error: None }
    };
    match &last.outcome {
        Ok(RebuildOutcome::Replaced { position }) => ended("replaced", *position, None),
        Ok(RebuildOutcome::Same { position }) => ended("same", *position, None),
        Ok(RebuildOutcome::Different { position, difference }) => {
            ended("different", *position, Some(difference))
        }
        Ok(RebuildOutcome::Stopped { position }) => ended("stopped", *position, None),
        Err(error) => wire::LastRebuild {
            number: last.number,
            outcome: "failed".to_owned(),
            position: None,
            difference: None,
            error: Some(error.clone()),
        },
    }
}

fn difference_to_wire(difference: &Difference) -> wire::Difference {
    wire::Difference {
        view: difference.view.to_owned(),
        key: difference.key.clone(),
        answering: difference.answering.clone(),
        rebuilt: difference.rebuilt.clone(),
    }
}

/// An event that a view passed over.
pub(crate) fn parked_to_wire(parked: Parked) -> wire::ParkedEvent {
    wire::ParkedEvent { position: parked.position.get(), reason: parked.reason }
}

/// The word for all views together. Lag is ordinary; an event that was passed over is not.
pub(crate) fn status(views: &[wire::View]) -> &'static str {
    if views.iter().all(|view| view.parked == 0) { "ready" } else { "degraded" }
}
