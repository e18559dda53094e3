//! What has happened, arranged for reading.
//!
//! Every view is a fold of the log. One reader feeds all of them, page by page, and commits their
//! rows together with how far they got, so that a view is always exactly the log up to one
//! position. Views live in a folder of their own: deleting it costs a replay and nothing else.
//!
//! This crate must not know how anything happens, and writes nothing that could not be made again.

pub mod as_of;
pub mod bench;
mod card_replay;
mod checkpoint;
mod event_page;
mod follow;
mod health;
mod keys;
mod packed;
mod projections;
mod rebuild;
mod replay;
mod rows;
mod runner;
mod sealing;
mod store;
mod view;
mod views;
mod wait;

#[cfg(test)]
mod tests;

pub use self::{
    card_replay::{CardReplay, CardState, InvalidPace, Pace},
    event_page::{EventPieces, EventQuery, event_page},
    health::{Parked, ViewHealth},
    projections::{OpenError, Projections},
    rebuild::{
        Difference, LastRebuild, RebuildError, RebuildOutcome, RebuildPhase, RebuildProgress, RebuildRequest,
        Turn, WatchRebuild,
    },
    replay::ThreadReplay,
    runner::CatchUpError,
    store::RowError,
    views::{
        caps::{CapFilter, CapRow},
        card::TaskRef,
        definitions::{RunDefinition, definitions_of_run},
        listing::{Listed, Listing},
        messages::{Feed, FeedError, FeedPage, FeedPieces, FeedQuery},
        receipts::{ReceiptFilter, ReceiptRow},
        run::{RunRow, RunUsage, SettingsSummary},
        thread::ThreadRow,
        usage::{
            UNKNOWN, UsageAxis, UsageFigures, UsageGroup, UsageQuery, UsageReport, usage_as_of, usage_at,
        },
    },
    wait::Behind,
};
