//! Where the views stand.

use contracts::wire::health as wire;
use projections::{Parked, ViewHealth};

/// A view, with the first event that it passed over.
pub(crate) fn view_to_wire(view: &ViewHealth, first_parked: Option<&Parked>) -> wire::View {
    wire::View {
        name: view.name.to_owned(),
        version: view.version,
        position: view.position.get(),
        lag: view.lag_events,
        parked: view.parked,
        first_parked: first_parked.map(|parked| format!("position {}: {}", parked.position, parked.reason)),
    }
}

/// The word for all views together. Lag is ordinary; an event that was passed over is not.
pub(crate) fn status(views: &[wire::View]) -> &'static str {
    if views.iter().all(|view| view.parked == 0) { "ready" } else { "degraded" }
}
