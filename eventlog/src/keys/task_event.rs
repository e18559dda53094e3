//! Kind 5: task of a run, seq → record.

use domain::ids::{RunId, ToolCallId};

use super::{KeyKind, key, name_hash, seq_bytes};
use crate::{position::Seq, stream_id::StreamId};

/// The task, which the provider's id names only within its run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) stream: &'a StreamId,
    pub(crate) run_id: &'a RunId,
    pub(crate) task_id: &'a ToolCallId,
}

pub(crate) fn encode(task: [u8; 16], seq: Seq) -> Vec<u8> {
    key(KeyKind::TaskEvent, &[&task, &seq_bytes(seq)])
}

pub(crate) fn prefix(task: [u8; 16]) -> Vec<u8> {
    key(KeyKind::TaskEvent, &[&task])
}

/// Every event of every task.
pub(crate) fn all() -> Vec<u8> {
    key(KeyKind::TaskEvent, &[])
}

pub(crate) fn hash(task: Task<'_>) -> [u8; 16] {
    name_hash(task.stream, &[task.run_id.as_str(), task.task_id.as_str()])
}
