//! Threads.

use contracts::wire::thread as wire;
use domain::event::RunStatus;
use projections::ThreadRow;

/// A thread, with the state of its newest run.
pub(crate) fn to_wire(row: ThreadRow, newest_run: Option<RunStatus>) -> wire::Thread {
    wire::Thread {
        thread_id: row.thread_id.into(),
        status: status(newest_run),
        metadata: row.metadata,
        user_id: row.owner.into(),
        seq: row.last_seq,
        created_at: row.created_at.to_string(),
        updated_at: row.updated_at.to_string(),
    }
}

fn status(newest_run: Option<RunStatus>) -> wire::ThreadStatus {
    match newest_run {
        Some(status) if !status.is_terminal() => wire::ThreadStatus::Busy,
        Some(_) | None => wire::ThreadStatus::Idle,
    }
}
