//! Between our own types and those of the wire, by hand and one file per resource, so that either
//! side can change without the other noticing.

mod append;
pub(crate) mod cap;
pub(crate) mod card;
pub(crate) mod config;
pub(crate) mod delegation;
pub(crate) mod erasure;
pub(crate) mod event;
pub(crate) mod evidence;
pub(crate) mod health;
pub(crate) mod ingest;
pub(crate) mod managed;
pub(crate) mod refusal;
pub(crate) mod run;
pub(crate) mod run_request;
pub(crate) mod subagent;
pub(crate) mod thread;
pub(crate) mod upkeep;
pub(crate) mod usage;
pub(crate) mod usage_report;
