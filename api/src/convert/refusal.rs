//! Refusals and failures of the runtime and the views, as problems.

use contracts::wire::problem::ProblemCode;
use domain::managed::ManageRejection;
use projections::{FeedError, RowError};
use runtime::{CancelError, CreateThreadError, EraseError, HistoryError, ManageError, StartRunError};

use crate::error::ApiError;

impl From<CreateThreadError> for ApiError {
    fn from(error: CreateThreadError) -> Self {
        match error {
            CreateThreadError::Exists(_) => Self::new(ProblemCode::Conflict, error.to_string()),
            CreateThreadError::Erased(_) => Self::new(ProblemCode::Gone, error.to_string()),
            CreateThreadError::Workspace { .. } => {
                Self::failed(ProblemCode::Internal, "making the thread", &error)
            }
            CreateThreadError::Journal(..) => {
                Self::failed(ProblemCode::Unavailable, "making the thread", &error)
            }
        }
    }
}

/// A model that is not among the configured ones is a bad request (facts §8).
impl From<StartRunError> for ApiError {
    fn from(error: StartRunError) -> Self {
        let refused = |code| Self::new(code, error.to_string());
        let failed = |code| Self::failed(code, "starting the run", &error);
        match &error {
            StartRunError::UnknownThread(thread_id) => Self::no_thread(thread_id),
            StartRunError::Erased(_) | StartRunError::RunErased(_) => refused(ProblemCode::Gone),
            StartRunError::ActiveRun(_) | StartRunError::RunExists(_) => refused(ProblemCode::Conflict),
            StartRunError::UnknownModel(_) => refused(ProblemCode::BadRequest),
            StartRunError::NoInput
            | StartRunError::InputTooLong { .. }
            | StartRunError::ImagesTooLarge { .. } => {
                Self::new(ProblemCode::Invalid, format!("invalid input.messages: {error}"))
            }
            StartRunError::ShuttingDown => Self::shutting_down(),
            StartRunError::Folders { .. } => failed(ProblemCode::Internal),
            StartRunError::History { source, .. } => failed(history_code(source)),
            StartRunError::Definitions(source) => failed(history_code(source)),
            StartRunError::Journal(_) => failed(ProblemCode::Unavailable),
        }
    }
}

impl From<CancelError> for ApiError {
    fn from(error: CancelError) -> Self {
        let refused = |code| Self::new(code, error.to_string());
        match &error {
            CancelError::UnknownRun(run_id) => Self::no_run(run_id),
            CancelError::UnknownDelegation(_) => refused(ProblemCode::NotFound),
            CancelError::AlreadyEnded(_) | CancelError::DelegationEnded | CancelError::NotLive(_) => {
                refused(ProblemCode::Conflict)
            }
            CancelError::History(source) => Self::failed(history_code(source), "looking for the run", &error),
        }
    }
}

/// What was erased is as unknown as what never was.
impl From<EraseError> for ApiError {
    fn from(error: EraseError) -> Self {
        let failed = |code| Self::failed(code, "erasing", &error);
        match &error {
            EraseError::UnknownThread(thread_id) => Self::no_thread(thread_id),
            EraseError::UnknownRun(run_id) => Self::no_run(run_id),
            EraseError::UnknownOwner(_) => Self::new(ProblemCode::NotFound, error.to_string()),
            EraseError::Unfinished(_) => Self::new(ProblemCode::Unavailable, error.to_string()),
            EraseError::InPlain(_) => Self::new(ProblemCode::Conflict, error.to_string()),
            EraseError::ShuttingDown => Self::shutting_down(),
            EraseError::Folders { .. } => failed(ProblemCode::Internal),
            EraseError::Registry(source) => failed(history_code(source)),
            EraseError::Keys { .. } | EraseError::Read(_) | EraseError::Journal(_) => {
                failed(ProblemCode::Unavailable)
            }
        }
    }
}

/// A change that comes too late, or for something else, changed nothing and may be made anew.
impl From<ManageError> for ApiError {
    fn from(error: ManageError) -> Self {
        let failed = |code| Self::failed(code, "changing the definition", &error);
        match &error {
            ManageError::Rejected(rejection) => Self::new(rejection_code(rejection), error.to_string()),
            ManageError::ShuttingDown => Self::shutting_down(),
            ManageError::History(source) => failed(history_code(source)),
            ManageError::Journal(_) => failed(ProblemCode::Unavailable),
        }
    }
}

const fn rejection_code(rejection: &ManageRejection) -> ProblemCode {
    match rejection {
        ManageRejection::Unknown(_) | ManageRejection::NoVersion { .. } => ProblemCode::NotFound,
        ManageRejection::Exists { .. } | ManageRejection::Changed { .. } | ManageRejection::TooMany => {
            ProblemCode::Conflict
        }
        ManageRejection::Invalid(_) => ProblemCode::Invalid,
    }
}

impl From<HistoryError> for ApiError {
    fn from(error: HistoryError) -> Self {
        Self::failed(history_code(&error), "reading the registry", &error)
    }
}

/// What is damaged is `integrity` all the same.
const fn history_code(error: &HistoryError) -> ProblemCode {
    match error {
        HistoryError::Read(_) => ProblemCode::Unavailable,
        HistoryError::Decode(_) => ProblemCode::Internal,
    }
}

/// A view that cannot be read can be made again; until then it is not there.
impl From<FeedError> for ApiError {
    fn from(error: FeedError) -> Self {
        match error {
            FeedError::Row(error) => error.into(),
            FeedError::Log(error) => error.into(),
        }
    }
}

impl From<RowError> for ApiError {
    fn from(error: RowError) -> Self {
        Self::failed(ProblemCode::Unavailable, "reading a view", &error)
    }
}
