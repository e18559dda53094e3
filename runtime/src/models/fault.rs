//! Why an answer is not a reply.

use std::{error::Error as StdError, time::Duration};

use domain::limits::MODEL_REPLY_BYTES_MAX;

use super::{ModelErrorKind, refusal::Refusal};

/// Why an answer is not a reply.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The provider reported an error in its answer.
    #[error("{0}")]
    Provider(Refusal),
    /// The stream ended, and the reply had not.
    #[error("the stream ended before the reply did")]
    Cut,
    /// The answer holds no reply at all.
    #[error("the answer holds no choice")]
    Empty,
    /// The reply is too large.
    #[error("the reply is larger than {MODEL_REPLY_BYTES_MAX} bytes")]
    TooLarge,
    /// An event of the stream is not JSON.
    #[error("an event of the stream is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// The answer is something else, such as a web page.
    #[error("the answer is not {expected}; check base_url: {snippet:?}")]
    NotAReply {
        /// What it should have been.
        expected: &'static str,
        /// Its beginning.
        snippet: String,
    },
    /// The provider gave up on the reply for a reason that is no fault of the conversation: asking
    /// again may help.
    #[error("the provider gave up on the reply: {reason}")]
    GaveUp {
        /// The provider's words.
        reason: String,
    },
    /// The provider wants something of the next request that this adapter does not do.
    #[error("the reply ended for a reason that is not supported: {reason}")]
    Unsupported {
        /// The provider's words, and what to do.
        reason: String,
    },
}

impl Fault {
    pub(crate) fn kind(&self) -> ModelErrorKind {
        match self {
            Self::Provider(refusal) => refusal.kind(),
            Self::Cut | Self::Empty | Self::NotJson(_) | Self::GaveUp { .. } => ModelErrorKind::Transient,
            Self::TooLarge | Self::NotAReply { .. } | Self::Unsupported { .. } => {
                ModelErrorKind::InvalidReply
            }
        }
    }

    const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Provider(refusal) => Some(refusal),
            Self::Cut
            | Self::Empty
            | Self::TooLarge
            | Self::NotJson(_)
            | Self::NotAReply { .. }
            | Self::GaveUp { .. }
            | Self::Unsupported { .. } => None,
        }
    }

    pub(crate) fn status(&self) -> Option<u16> {
        self.refusal().and_then(|refusal| refusal.status)
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.refusal().and_then(|refusal| refusal.retry_after)
    }

    pub(crate) fn into_source(self) -> Option<Box<dyn StdError + Send + Sync>> {
        if let Self::NotJson(source) = self { Some(source.into()) } else { None }
    }
}
