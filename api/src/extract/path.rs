//! Ids out of the path.

use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::request::Parts,
};
use domain::ids::{ErasureId, InvalidId, JobId, RunId, SubagentType, ThreadId, ToolCallId};
use eventlog::BlobDigest;

use crate::error::{Answer, ApiError};

/// The ids of a path.
pub(crate) struct Path<T>(pub(crate) T);

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadPath {
    pub(crate) thread_id: ThreadId,
}

/// A run of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunPath {
    pub(crate) thread_id: ThreadId,
    pub(crate) run_id: RunId,
}

/// A delegation of a run. `task_id` is the provider's id, or our delegation id in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskPath {
    pub(crate) thread_id: ThreadId,
    pub(crate) run_id: RunId,
    pub(crate) task_id: ToolCallId,
}

/// A blob of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlobPath {
    pub(crate) thread_id: ThreadId,
    pub(crate) sha256: BlobDigest,
}

/// An erasure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErasurePath {
    pub(crate) erasure_id: ErasureId,
}

/// A backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BackupPath {
    pub(crate) backup_id: JobId,
}

/// An export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExportPath {
    pub(crate) export_id: JobId,
}

/// A file of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExportFilePath {
    pub(crate) export_id: JobId,
    /// As it was asked for: it may name anything.
    pub(crate) name: String,
}

/// A verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VerificationPath {
    pub(crate) verification_id: JobId,
}

/// A managed definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SubagentPath {
    pub(crate) name: SubagentType,
}

/// A view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ViewPath {
    pub(crate) name: String,
}

/// Ids that can be read from a path.
pub(crate) trait FromPath: Sized {
    /// Reads and checks the ids.
    fn from_path(params: &RawPathParams) -> Answer<Self>;
}

impl FromPath for ThreadPath {
    fn from_path(params: &RawPathParams) -> Answer<Self> {
        Ok(Self { thread_id: id(params, "thread_id", ThreadId::new)? })
    }
}

impl FromPath for BlobPath {
    fn from_path(params: &RawPathParams) -> Answer<Self> {
        let ThreadPath { thread_id } = ThreadPath::from_path(params)?;
        let rule = "64 lowercase hexadecimal digits";
        let digest = |text: String| {
            let invalid = |_| InvalidId { kind: "sha256", text: text.clone(), rule: rule.into() };
            text.parse().map_err(invalid)
        };
        Ok(Self { thread_id, sha256: id(params, "sha256", digest)? })
    }
}

impl FromPath for ErasurePath {
    fn from_path(params: &RawPathParams) -> Answer<Self> {
        Ok(Self { erasure_id: id(params, "erasure_id", |text| text.parse())? })
    }
}

impl FromPath for BackupPath {
    fn from_path(params: &RawPathParams) -> Answer<Self> {
        Ok(Self { backup_id: id(params, "backup_id", |text| text.parse())? })
    }
}

impl FromPath for ExportPath {
    fn from_path(params: &RawPathParams) -> Answer<Self> {
        Ok(Self { export_id: id(params, "export_id", |text| text.parse())? })
    }
}

impl FromPath for ExportFilePath {
    fn from_path(params: &RawPathParams) -> Answer<Self> {
        let ExportPath { export_id } = ExportPath::from_path(params)?;
        Ok(Self { export_id, name: id(params, "name", Ok)? })
    }
}

impl FromPath for VerificationPath {
    fn from_path(params: &RawPathParams) -> Answer<Self> {
        Ok(Self { verification_id: id(params, "verification_id", |text| text.parse())? })
    }
}

impl FromPath for SubagentPath {
    fn from_path(params: &RawPathParams) -> Answer<Self> {
        Ok(Self { name: id(params, "name", SubagentType::new)? })
    }
}

impl FromPath for ViewPath {
    /// Any text: whether there is such a view is found out by whoever looks.
    fn from_path(params: &RawPathParams) -> Answer<Self> {
        let found = params.iter().find(|(key, _)| *key == "name");
        let (_, name) = found.ok_or_else(|| ApiError::invalid("name", "part of the path"))?;
        Ok(Self { name: name.to_owned() })
    }
}

impl FromPath for RunPath {
    fn from_path(params: &RawPathParams) -> Answer<Self> {
        let ThreadPath { thread_id } = ThreadPath::from_path(params)?;
        Ok(Self { thread_id, run_id: id(params, "run_id", RunId::new)? })
    }
}

impl FromPath for TaskPath {
    fn from_path(params: &RawPathParams) -> Answer<Self> {
        let RunPath { thread_id, run_id } = RunPath::from_path(params)?;
        Ok(Self { thread_id, run_id, task_id: id(params, "task_id", ToolCallId::new)? })
    }
}

impl<S: Send + Sync, T: FromPath> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answer<Self> {
        let params = RawPathParams::from_request_parts(parts, state).await;
        let params = params.map_err(|_| ApiError::invalid("path", "UTF-8 text, percent-encoded"))?;
        T::from_path(&params).map(Self)
    }
}

fn id<Id>(
    params: &RawPathParams,
    name: &'static str,
    new: impl FnOnce(String) -> Result<Id, InvalidId>,
) -> Answer<Id> {
    let found = params.iter().find(|(key, _)| *key == name);
    let (_, text) = found.ok_or_else(|| ApiError::invalid(name, "part of the path"))?;
    new(text.to_owned()).map_err(|error| InvalidId { kind: name, ..error }.into())
}
