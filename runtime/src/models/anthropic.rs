//! Messages: Anthropic, and the servers that speak like it.

use reqwest::{
    Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde_json::Value;

use super::{
    ModelRequest, Secret,
    answer::Assemble,
    dialect::{Dialect, Wire},
};

mod assemble;
mod request;
#[cfg(test)]
mod tests;

/// The version of the API that this adapter speaks.
const VERSION: &str = "2023-06-01";

/// Messages.
pub(crate) struct Anthropic;

impl Dialect for Anthropic {
    fn answer_name(&self) -> &'static str {
        "a message"
    }

    fn default_base_url(&self) -> Option<&'static str> {
        Some("https://api.anthropic.com")
    }

    /// With or without the version at the end of the address.
    fn endpoint(&self, mut base: Url, _model: &str) -> Option<Url> {
        let has_version = base.path().trim_end_matches('/').ends_with("/v1");
        let more: &[&str] = if has_version { &["messages"] } else { &["v1", "messages"] };
        base.path_segments_mut().ok()?.pop_if_empty().extend(more);
        Some(base)
    }

    fn key_header(&self, key: &Secret) -> (HeaderName, String) {
        (HeaderName::from_static("x-api-key"), key.reveal().to_owned())
    }

    fn headers(&self) -> HeaderMap {
        let version = (HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION));
        HeaderMap::from_iter([version])
    }

    fn body(&self, wire: &Wire, request: &ModelRequest) -> Value {
        request::body(wire, request)
    }

    fn assembler(&self) -> Box<dyn Assemble> {
        Box::<assemble::Assembler>::default()
    }
}
