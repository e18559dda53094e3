//! What the file tools share: arguments in, one blocking piece of work, a text out.

use std::io;

use domain::causes::with_causes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{ToolContext, ToolOutcome, ToolOutput, capture::Capture, capture::Frame};
use crate::sandbox::{PathRefused, ResolvedPath};

/// Why a tool could not do what was asked; the text goes to the model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolFailure {
    #[error("the arguments of {tool} are not valid; call it again with exactly the arguments of its schema")]
    Arguments { tool: &'static str, source: serde_json::Error },
    #[error(transparent)]
    Path(#[from] PathRefused),
    #[error("{path} does not exist; look with ls or glob")]
    Missing { path: String },
    #[error("cannot {doing} {path}")]
    Io { doing: &'static str, path: String, source: io::Error },
    #[error("{0}")]
    Said(String),
    #[error("the call was cancelled before it was done")]
    Cancelled,
    #[error("{0} ended early; try again or another way")]
    Broken(&'static str),
}

impl ToolFailure {
    /// An I/O error at a path, in the agent's words for the path.
    pub(crate) fn io(doing: &'static str, path: &ResolvedPath, source: io::Error) -> Self {
        let path = path.shown.clone();
        if source.kind() == io::ErrorKind::NotFound {
            Self::Missing { path }
        } else {
            Self::Io { doing, path, source }
        }
    }

    /// A sentence of the tool's own.
    pub(crate) fn said(text: impl Into<String>) -> Self {
        Self::Said(text.into())
    }
}

impl From<ToolFailure> for ToolOutput {
    fn from(failure: ToolFailure) -> Self {
        let text = format!("Error: {}", with_causes(&failure));
        Capture::of(&text)
            .finish(ToolOutcome::Error, Frame { advice: "the error is too long", ..Frame::default() })
    }
}

/// Reads the arguments; unknown, missing and mistyped ones are named.
pub(crate) fn arguments<A: DeserializeOwned>(
    tool: &'static str,
    args: &Map<String, Value>,
) -> Result<A, ToolFailure> {
    A::deserialize(args).map_err(|source| ToolFailure::Arguments { tool, source })
}

/// Does the work on a thread that may block. Work that walks many files looks at the context's
/// cancellation itself; a short piece is always finished, so that no file is left half written.
pub(crate) async fn on_blocking_thread<A: DeserializeOwned + Send + 'static>(
    tool: &'static str,
    context: &ToolContext,
    args: &Map<String, Value>,
    work: impl FnOnce(&ToolContext, A) -> Result<ToolOutput, ToolFailure> + Send + 'static,
) -> ToolOutput {
    let arguments = match arguments::<A>(tool, args) {
        Ok(arguments) => arguments,
        Err(failure) => return failure.into(),
    };
    if context.cancel.is_cancelled() {
        return ToolFailure::Cancelled.into();
    }
    let (context, at_work) = (context.clone(), context.work.begin());
    let work = move || {
        let _at_work = at_work;
        work(&context, arguments)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(output)) => output,
        Ok(Err(failure)) => failure.into(),
        Err(_) => ToolFailure::Broken(tool).into(),
    }
}
