//! The views, one file each: its rows, its fold and its queries.

pub(crate) mod card;
pub(crate) mod ledger;
pub(crate) mod run;
pub(crate) mod thread;

use crate::view::Registered;

/// Every view.
pub(crate) fn all() -> Vec<Registered> {
    vec![
        Registered::of(thread::ThreadsView),
        Registered::of(run::RunsView),
        Registered::of(ledger::LedgerView),
        Registered::of(card::CardsView),
    ]
}
