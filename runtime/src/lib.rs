//! Makes things happen: agents, models, tools, delegation.
//!
//! The domain says what may happen and what comes next; this crate does it and records what came
//! of it. All memory of a run is in the log: a run that goes on after a crash takes the same path
//! as one that was never interrupted. It must not know how events are arranged for reading.

mod admission;
mod agent_loop;
pub mod bench;
mod call_ids;
mod cancellation;
mod clock;
pub mod config;
mod effects;
mod erasure;
mod id_source;
mod journal;
mod live_runs;
mod locks;
mod managed_registry;
pub mod models;
mod recorder;
mod registry;
mod request;
mod run_context;
mod run_lookup;
mod run_owner;
mod run_settings;
mod run_task;
mod runtime;
pub mod sandbox;
mod services;
mod subagent;
mod task_args;
#[cfg(test)]
mod testing;
mod thread_history;
mod tool_work;
pub mod tools;
pub mod upkeep;

pub use admission::{AdmissionLimits, Capacity, QueuePlace};
pub use clock::{Clock, SystemClock};
pub use erasure::{Erasure, ErasureState, revived};
pub use id_source::{IdSource, SystemIds};
pub use journal::JournalError;
pub use request::{
    CancelError, CreateThreadError, EraseError, HistoryError, LimitsOutOfRange, ManageError, NewThread,
    RecoverError, RunRequest, StartRunError, TaskRef,
};
pub use runtime::{Erase, Erasing, ManageOrder, Managed, Runtime, RuntimeParts, enforce_erasures};
