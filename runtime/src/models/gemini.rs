//! Generate Content: Gemini, by Google's API of that name.

use reqwest::{Url, header::HeaderName};
use serde_json::Value;

use super::{
    ModelRequest, Secret,
    answer::Assemble,
    dialect::{Dialect, Wire},
};

mod assemble;
mod request;
mod schema;
#[cfg(test)]
mod tests;

/// The version of the API that an address without one means.
const VERSION: &str = "v1beta";

/// Generate Content.
pub(crate) struct Gemini;

impl Dialect for Gemini {
    fn answer_name(&self) -> &'static str {
        "generated content"
    }

    fn default_base_url(&self) -> Option<&'static str> {
        Some("https://generativelanguage.googleapis.com")
    }

    /// The model is in the path: `gemini-x` or, of other collections, `tunedModels/x`.
    fn endpoint(&self, mut base: Url, model: &str) -> Option<Url> {
        let has_version = base.path_segments()?.any(is_version);
        {
            let mut path = base.path_segments_mut().ok()?;
            path.pop_if_empty();
            if !has_version {
                path.push(VERSION);
            }
            if !model.contains('/') {
                path.push("models");
            }
            path.extend(format!("{model}:streamGenerateContent").split('/'));
        }
        base.query_pairs_mut().append_pair("alt", "sse");
        Some(base)
    }

    fn key_header(&self, key: &Secret) -> (HeaderName, String) {
        (HeaderName::from_static("x-goog-api-key"), key.reveal().to_owned())
    }

    fn body(&self, wire: &Wire, request: &ModelRequest) -> Value {
        request::body(wire, request)
    }

    fn assembler(&self) -> Box<dyn Assemble> {
        Box::<assemble::Assembler>::default()
    }
}

/// `v1`, `v1beta` and the like.
fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}
