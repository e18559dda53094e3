//! What goes over HTTP, one file per resource. Names are those of the interface; they are renamed
//! only with a version. Optional fields are absent when there is nothing to say.

pub mod cap;
pub mod capacity;
pub mod card;
pub mod config;
pub mod delegation;
pub mod erasure;
pub mod event;
pub mod evidence;
pub mod health;
pub mod ingest;
pub mod managed;
pub mod message;
pub mod object;
pub mod page;
pub mod problem;
pub mod run;
pub mod subagent;
pub mod thread;
pub mod upkeep;
pub mod usage;
pub mod usage_report;
