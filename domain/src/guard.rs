//! The chain: what stands between a model's reply and its becoming a fact. One guard per file,
//! each with its state folded from events, so that a resumed run counts like an uninterrupted one.

pub mod notes;
pub mod subagent_limit;
