//! The providers that the stub can be.

use serde_json::Value;

use super::{
    answer::{Kind, Reply},
    anthropic, frames, gemini,
    strict::{self, Strictness},
};

/// A provider's wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Face {
    /// Chat Completions.
    Openai,
    /// Messages.
    Anthropic,
    /// Generate Content.
    Gemini,
}

impl Face {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Openai, Self::Anthropic, Self::Gemini];

    pub(super) const fn key_header(self) -> &'static str {
        match self {
            Self::Openai => "authorization",
            Self::Anthropic => "x-api-key",
            Self::Gemini => "x-goog-api-key",
        }
    }

    /// A header without which requests are refused.
    pub(super) fn needed_header(self) -> Option<(&'static str, &'static str)> {
        (self == Self::Anthropic).then_some(("anthropic-version", "2023-06-01"))
    }

    /// A request in the words of Chat Completions.
    pub(super) fn as_chat(self, sent: &Value) -> Value {
        match self {
            Self::Openai => sent.clone(),
            Self::Anthropic => anthropic::request::as_chat(sent),
            Self::Gemini => gemini::request::as_chat(sent),
        }
    }

    /// Why a request is refused, if it is.
    pub(super) fn fault(self, strictness: Strictness, sent: &Value) -> Option<String> {
        match self {
            Self::Openai => strict::fault(strictness, sent),
            Self::Anthropic => anthropic::request::fault(strictness, sent),
            Self::Gemini => gemini::request::fault(strictness, sent),
        }
    }

    /// The body of an answer, one item per server-sent event.
    pub(super) fn body(self, kind: &Kind, number: usize) -> Vec<Vec<u8>> {
        match kind {
            Kind::Stream(reply) => self.stream(reply, number),
            Kind::Whole(reply) => {
                let whole = match self {
                    Self::Openai => frames::whole(reply, number),
                    Self::Anthropic => anthropic::frames::whole(reply, number),
                    Self::Gemini => gemini::frames::whole(reply, number),
                };
                vec![whole.to_string().into_bytes()]
            }
            Kind::Raw { body, .. } => vec![body.clone()],
        }
    }

    fn stream(self, reply: &Reply, number: usize) -> Vec<Vec<u8>> {
        match self {
            Self::Openai => frames::stream(reply, number),
            Self::Anthropic => anthropic::frames::stream(reply, number),
            Self::Gemini => gemini::frames::stream(reply, number),
        }
    }
}

/// What a provider signs is refused when it comes back changed.
pub(super) fn signature(signed: &str) -> String {
    format!("signed({signed})")
}
