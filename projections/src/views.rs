//! The views, one file each: its rows, its fold and its queries.

pub(crate) mod caps;
pub(crate) mod card;
pub(crate) mod definitions;
pub(crate) mod ledger;
pub(crate) mod listing;
pub(crate) mod messages;
pub(crate) mod receipts;
pub(crate) mod run;
pub(crate) mod thread;
pub(crate) mod usage;

use crate::view::Registered;

/// Every view.
pub(crate) fn all() -> Vec<Registered> {
    vec![
        Registered::of(thread::ThreadsView),
        Registered::of(run::RunsView),
        Registered::of(ledger::LedgerView),
        Registered::of(card::CardsView),
        Registered::of(messages::MessagesView),
        Registered::of(usage::UsageView),
        Registered::of(caps::CapsView),
        Registered::of(receipts::ReceiptsView),
    ]
}
