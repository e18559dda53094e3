//! What the outside relies on: the JSON contracts, and the types of what goes over the wire.
//!
//! The JSON files beside this crate are the contracts; the code here only reads them. It knows
//! nothing of the domain: `tests` compares the two, so that neither changes alone.

mod event_stream;
mod subagent_status;
pub mod wire;

pub use self::{
    event_stream::{EventContract, RunEventStream, Violation, run_event_stream},
    subagent_status::{
        Display, Legacy, LegacyReading, MetadataKey, Reading, StopReason, SubagentStatus, subagent_status,
    },
};
