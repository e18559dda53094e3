//! Refusals and failures of the log, as problems.

use contracts::wire::problem::ProblemCode;
use eventlog::{AppendError, InvalidAppend};

use crate::error::ApiError;

impl From<AppendError> for ApiError {
    fn from(error: AppendError) -> Self {
        match &error {
            AppendError::Conflict { .. } | AppendError::KeyReused { .. } => {
                Self::new(ProblemCode::Conflict, error.to_string())
            }
            AppendError::Erased { .. } => Self::new(ProblemCode::Gone, error.to_string()),
            AppendError::Invalid { reason, .. } => Self::new(code(reason), reason.to_string()),
            AppendError::Closed => Self::shutting_down(),
            // The log has said so once.
            AppendError::DiskFull { .. } => Self::new(ProblemCode::Unavailable, error.to_string()),
            AppendError::Poisoned { .. } | AppendError::Storage { .. } => {
                Self::failed(ProblemCode::Unavailable, "recording events", &error)
            }
        }
    }
}

const fn code(reason: &InvalidAppend) -> ProblemCode {
    match reason {
        InvalidAppend::BodyTooLarge { .. } | InvalidAppend::TooLarge { .. } => ProblemCode::PayloadTooLarge,
        InvalidAppend::NoEvents
        | InvalidAppend::TooManyEvents { .. }
        | InvalidAppend::EventType { .. }
        | InvalidAppend::Category { .. }
        | InvalidAppend::CorrelationId { .. }
        | InvalidAppend::MetadataNotObject { .. } => ProblemCode::Invalid,
    }
}
