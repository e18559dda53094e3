//! What a tool's result is worth to whoever asked for it (chain facts §2.7): whether it helps, what
//! went wrong, and what to do next. It is read out of the result once and recorded with it, so that
//! nobody judges the same words twice.

mod analysis;
mod web_page;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::analysis::analyse;
use crate::message::ToolMessage;

/// Where a result says what it is worth.
pub const TOOL_META_KEY: &str = "deerflow_tool_meta";

/// What a tool's result is worth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolMeta {
    /// Whether it helps.
    pub status: MetaStatus,
    /// What went wrong, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<ToolErrorType>,
    /// Whether the model can do something about it.
    pub recoverable_by_model: bool,
    /// What to do next.
    pub recommended_next_action: NextAction,
    /// Who says so.
    pub source: MetaSource,
}

/// Whether a result helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetaStatus {
    /// It does.
    Success,
    /// It is an error.
    Error,
    /// Only a part of it is there, or nothing was found.
    PartialSuccess,
}

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorType {
    /// The tool may not be used with these credentials.
    Auth,
    /// The tool was used too often.
    RateLimited,
    /// It may work later.
    Transient,
    /// The tool is not set up.
    Config,
    /// What was asked for may not be had.
    Permission,
    /// Nothing was found.
    NoResults,
    /// What was named is not there.
    NotFound,
    /// The tool itself is at fault.
    Internal,
    /// Anything else.
    Unknown,
    /// The guard on progress did not let it run.
    BlockedByProgressGuard,
}

/// What to do after a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextAction {
    /// Go on.
    Continue,
    /// Ask in other words.
    RewriteQuery,
    /// Try another tool or another way.
    TryAlternative,
    /// Work with what is there.
    Summarize,
    /// Stop using the tool.
    Stop,
}

/// Who says what a result is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetaSource {
    /// The tool broke.
    Exception,
    /// The tool, by how it returned.
    ToolReturn,
    /// The words of the result.
    ContentAnalysis,
    /// The guard on progress.
    ProgressMiddleware,
}

impl ToolMeta {
    /// A result that helps.
    pub const SUCCESS: Self = Self {
        status: MetaStatus::Success,
        error_type: None,
        recoverable_by_model: true,
        recommended_next_action: NextAction::Continue,
        source: MetaSource::ToolReturn,
    };

    /// A result of which only a part is there, or nothing.
    pub const PARTIAL: Self = Self {
        status: MetaStatus::PartialSuccess,
        error_type: None,
        recoverable_by_model: true,
        recommended_next_action: NextAction::RewriteQuery,
        source: MetaSource::ContentAnalysis,
    };

    /// What the guard on progress puts in place of a result.
    pub const BLOCKED: Self = Self {
        status: MetaStatus::Error,
        error_type: Some(ToolErrorType::BlockedByProgressGuard),
        recoverable_by_model: true,
        recommended_next_action: NextAction::Summarize,
        source: MetaSource::ProgressMiddleware,
    };

    /// An error of this sort.
    pub const fn error(error_type: ToolErrorType, source: MetaSource) -> Self {
        let (recoverable_by_model, recommended_next_action) = error_type.outlook();
        Self {
            status: MetaStatus::Error,
            error_type: Some(error_type),
            recoverable_by_model,
            recommended_next_action,
            source,
        }
    }

    /// What a recorded result says of itself; `None` for one that says nothing, or nothing that is
    /// understood.
    pub fn of(result: &ToolMessage) -> Option<Self> {
        let meta = result.additional_kwargs.get(TOOL_META_KEY)?;
        serde_json::from_value(meta.clone()).ok()
    }

    /// Writes it into a result that is about to be recorded.
    pub fn stamp(&self, result: &mut ToolMessage) {
        let meta = serde_json::to_value(self).unwrap_or(Value::Null);
        result.additional_kwargs.insert(TOOL_META_KEY.to_owned(), meta);
    }
}

impl ToolErrorType {
    /// Whether the model can do something about it, and what to do next.
    const fn outlook(self) -> (bool, NextAction) {
        match self {
            Self::Auth | Self::Config | Self::Internal => (false, NextAction::Stop),
            Self::RateLimited => (false, NextAction::Summarize),
            Self::Transient => (false, NextAction::TryAlternative),
            Self::Permission | Self::Unknown => (true, NextAction::TryAlternative),
            Self::NoResults | Self::NotFound => (true, NextAction::RewriteQuery),
            Self::BlockedByProgressGuard => (true, NextAction::Summarize),
        }
    }
}

#[cfg(test)]
mod tests;
