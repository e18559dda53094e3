//! Chat Completions: OpenAI, and the many servers that speak like it.

use reqwest::{
    Url,
    header::{AUTHORIZATION, HeaderName},
};
use serde_json::Value;

use super::{
    ModelRequest, Secret,
    answer::Assemble,
    dialect::{Dialect, Wire},
};

mod assemble;
mod calls;
mod request;
#[cfg(test)]
mod tests;

/// Chat Completions.
pub(crate) struct OpenAi;

impl Dialect for OpenAi {
    fn answer_name(&self) -> &'static str {
        "a chat completion"
    }

    fn endpoint(&self, mut base: Url, _model: &str) -> Option<Url> {
        base.path_segments_mut().ok()?.pop_if_empty().extend(["chat", "completions"]);
        Some(base)
    }

    fn key_header(&self, key: &Secret) -> (HeaderName, String) {
        (AUTHORIZATION, format!("Bearer {}", key.reveal()))
    }

    fn body(&self, wire: &Wire, request: &ModelRequest) -> Value {
        request::body(wire, request)
    }

    fn assembler(&self) -> Box<dyn Assemble> {
        Box::<assemble::Assembler>::default()
    }
}
