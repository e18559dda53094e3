//! The stub as a server of Gemini's Generate Content.

pub(super) mod frames;
pub(super) mod request;
