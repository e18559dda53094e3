//! Performing: one file per effect, each recording its outcome.

pub(crate) mod call_model;
pub(crate) mod compact;
pub(crate) mod delegate;
pub(crate) mod run_tools;
pub(crate) mod tool_call;
