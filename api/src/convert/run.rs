//! Runs.

use contracts::wire::run as wire;
use domain::event::RunStatus;
use projections::RunRow;

use crate::convert::usage;

/// The run's record.
pub(crate) fn to_wire(row: RunRow) -> wire::Run {
    wire::Run {
        run_id: row.run_id.into(),
        thread_id: row.thread_id.into(),
        assistant_id: row.settings.assistant_id,
        status: status(row.status),
        stop_reason: row.stop_reason.map(|reason| reason.as_str().to_owned()),
        error: row.error,
        result: row.result,
        model_name: Some(row.model_name),
        usage: row.usage.total.map(usage::to_wire),
        subagent_usage: row.usage.subagents.map(usage::to_wire),
        turns: row.turns,
        delegations: row.delegations_requested,
        metadata: row.settings.metadata,
        created_at: row.created_at.to_string(),
        updated_at: row.updated_at.to_string(),
        seq: row.last_seq,
    }
}

const fn status(status: RunStatus) -> wire::RunStatus {
    match status {
        RunStatus::Pending => wire::RunStatus::Pending,
        RunStatus::Running => wire::RunStatus::Running,
        RunStatus::Success => wire::RunStatus::Success,
        RunStatus::Error => wire::RunStatus::Error,
        RunStatus::Interrupted => wire::RunStatus::Interrupted,
        RunStatus::Timeout => wire::RunStatus::Timeout,
    }
}
