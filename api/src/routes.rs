//! The routes, one file per resource. A handler extracts, calls and converts; it decides nothing.

pub(crate) mod backups;
pub(crate) mod blobs;
pub(crate) mod capacity;
pub(crate) mod caps;
pub(crate) mod card_replay;
pub(crate) mod config;
pub(crate) mod delegations;
pub(crate) mod erasures;
pub(crate) mod events;
pub(crate) mod exports;
pub(crate) mod ingest;
pub(crate) mod log;
pub(crate) mod managed;
pub(crate) mod messages;
pub(crate) mod metrics;
pub(crate) mod probes;
pub(crate) mod projections;
pub(crate) mod receipts;
pub(crate) mod runs;
pub(crate) mod start;
pub(crate) mod stream;
pub(crate) mod subagents;
pub(crate) mod tasks;
pub(crate) mod threads;
pub(crate) mod usage;
