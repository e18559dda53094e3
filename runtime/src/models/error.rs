//! Why a model gave no reply.

use std::{error::Error as StdError, time::Duration};

use domain::text;

/// A model error's message; a provider's own words in it are cut to
/// [`domain::limits::ERROR_DETAIL_CHARS_MAX`] before.
pub const MESSAGE_CHARS_MAX: usize = 1_000;

/// One call of a model that failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What sort of failure it is; decides whether asking again can help.
    pub kind: ModelErrorKind,
    /// The HTTP status, where one came.
    pub status: Option<u16>,
    /// How long the provider asked to be left alone.
    pub retry_after: Option<Duration>,
    /// What was being done, with which model and where, and what the provider said. Bounded, and
    /// without secrets.
    pub message: String,
    /// What the layer below said.
    #[source]
    pub source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The sorts of failure (chain facts §2.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModelErrorKind {
    /// The account has nothing left to spend.
    Quota,
    /// The key is missing, wrong or not allowed to do this.
    Auth,
    /// The rate of requests rose too quickly.
    BurstRate,
    /// The stream went quiet in the middle of a reply.
    StreamStalled,
    /// A connection, a time limit or a server failed in a way that passes.
    Transient,
    /// The provider says that it has too much to do.
    Busy,
    /// The model failed too often and is not asked for a while.
    CircuitOpen,
    /// What came back is not a reply that this adapter can read, or it is too large.
    InvalidReply,
    /// Anything else, such as a request that the provider refuses.
    Generic,
}

impl ModelErrorKind {
    /// Whether asking again can help.
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::BurstRate | Self::StreamStalled | Self::Transient | Self::Busy => true,
            Self::Quota | Self::Auth | Self::CircuitOpen | Self::InvalidReply | Self::Generic => false,
        }
    }

    /// The reason in events and fallback replies: `quota`, `auth`, `burst_rate`, `transient`,
    /// `busy`, `circuit_open` or `generic` (chain facts §2.8).
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Quota => "quota",
            Self::Auth => "auth",
            Self::BurstRate => "burst_rate",
            Self::StreamStalled | Self::Transient => "transient",
            Self::Busy => "busy",
            Self::CircuitOpen => "circuit_open",
            Self::InvalidReply | Self::Generic => "generic",
        }
    }
}

impl ModelError {
    /// An error without a status or a cause below it. The message is bounded here.
    pub fn new(kind: ModelErrorKind, message: impl AsRef<str>) -> Self {
        let message = text::prefix(message.as_ref(), MESSAGE_CHARS_MAX).text;
        Self { kind, status: None, retry_after: None, message, source: None }
    }

    /// Adds what the layer below said.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Whether asking again can help.
    pub const fn is_retryable(&self) -> bool {
        self.kind.is_retryable()
    }
}
