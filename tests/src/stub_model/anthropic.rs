//! The stub as a server of Anthropic Messages.

pub(super) mod frames;
pub(super) mod request;
