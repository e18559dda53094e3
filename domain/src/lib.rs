//! What may happen: ids, limits, events, commands and the deciders over them.
//!
//! Nothing here does I/O, waits, reads a clock or rolls a die. Time, ids and randomness arrive in
//! the command, so that the same history always gives the same answer.

pub mod agent;
pub mod card;
pub mod causes;
pub mod citation;
pub mod compaction;
pub mod decider;
pub mod definition;
pub mod delegation;
pub mod digest;
pub mod event;
pub mod feed;
pub mod guard;
pub mod ids;
pub mod kept_output;
pub mod ledger;
pub mod limits;
pub mod managed;
pub mod message;
pub mod pricing;
pub mod prompt;
pub mod receipt;
pub mod recheck;
pub mod redaction;
pub mod run;
pub mod sanitise;
pub mod status_contract;
pub mod step;
pub mod task_ref;
pub mod text;
pub mod tool_meta;
pub mod tool_spec;
pub mod usage;
