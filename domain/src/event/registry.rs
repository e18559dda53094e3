//! What happened beside the threads. It stands in a stream of its own and is never sealed, so it
//! holds ids, counts and times, what administrators wrote, and no text of a thread.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::family::family;
use crate::{
    definition::CustomAgent,
    ids::{ErasureId, RunHash, SubagentType, ThreadId},
};

family! {
    /// What happened beside the threads. An erasure begins and ends with an event, so that one
    /// which a crash cut off is carried on.
    pub enum RegistryEvent {
        /// Somebody asked that a thread or a run be erased. From here on it is carried to its end.
        ErasureRequested(ErasureRequested) = "erasure.requested" in Registry,
        /// Nothing of the thread can be read any more.
        ThreadErased(ThreadErased) = "thread.erased" in Registry,
        /// Nothing of the run can be read any more.
        RunErased(RunErased) = "run.erased" in Registry,
        /// A key that an erasure had destroyed was there again, and has been destroyed again.
        ErasureRepeated(ErasureRepeated) = "erasure.repeated" in Registry,
        /// An administrator added a type of subagent.
        DefinitionCreated(DefinitionCreated) = "definition.created" in Registry,
        /// An administrator wrote it anew.
        DefinitionUpdated(DefinitionUpdated) = "definition.updated" in Registry,
        /// Leads may be offered it.
        DefinitionEnabled(DefinitionSwitched) = "definition.enabled" in Registry,
        /// No lead is offered it any more.
        DefinitionDisabled(DefinitionSwitched) = "definition.disabled" in Registry,
        /// It is gone; its history stays.
        DefinitionDeleted(DefinitionSwitched) = "definition.deleted" in Registry,
        /// It is again what it was at an earlier version.
        DefinitionRolledBack(DefinitionRolledBack) = "definition.rolled_back" in Registry,
    }
}

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErasureReason {
    /// This thread.
    Thread,
    /// All threads of its owner.
    Owner,
    /// One run of this thread.
    Run,
}

/// Somebody asked that a thread or a run be erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErasureRequested {
    /// The erasure.
    pub erasure_id: ErasureId,
    /// The thread.
    pub thread_id: ThreadId,
    /// What was asked for.
    pub reason: ErasureReason,
    /// The run, where it is about one. Its id is a text of the thread's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_hash: Option<RunHash>,
    /// Events that the thread or the run had.
    pub events: u64,
    /// When it was asked for.
    pub requested_at: Timestamp,
}

/// A thread was erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadErased {
    /// The erasure.
    pub erasure_id: ErasureId,
    /// The thread.
    pub thread_id: ThreadId,
    /// What was asked for.
    pub reason: ErasureReason,
    /// Events whose bodies nobody can read any more: those that the thread had, and those by which
    /// its run was ended for it.
    pub events: u64,
    /// When it was asked for.
    pub requested_at: Timestamp,
}

/// A run was erased, and its thread was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunErased {
    /// The erasure.
    pub erasure_id: ErasureId,
    /// The thread.
    pub thread_id: ThreadId,
    /// The run.
    pub run_hash: RunHash,
    /// Events whose bodies nobody can read any more: those that the run had, and those by which it
    /// was ended for its erasure.
    pub events: u64,
    /// When it was asked for.
    pub requested_at: Timestamp,
}

/// An older copy of the keys was put back, and a key of something erased was in it. What it had made
/// readable is unreadable again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErasureRepeated {
    /// The erasure.
    pub erasure_id: ErasureId,
    /// The thread.
    pub thread_id: ThreadId,
    /// The run, where the erasure is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_hash: Option<RunHash>,
}

/// A type of subagent was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionCreated {
    /// Its name.
    pub name: SubagentType,
    /// Counts the changes of what has this name, from 1, also over a deletion.
    pub version: u64,
    /// What it is.
    pub definition: Box<CustomAgent>,
    /// Whether leads are offered it from now on.
    pub enabled: bool,
}

/// A type of subagent was written anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionUpdated {
    /// Its name.
    pub name: SubagentType,
    /// The version that this made.
    pub version: u64,
    /// What it is now.
    pub definition: Box<CustomAgent>,
}

/// A type of subagent was switched on or off, or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionSwitched {
    /// Its name.
    pub name: SubagentType,
    /// The version that this made.
    pub version: u64,
}

/// A type of subagent was made what it had been.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionRolledBack {
    /// Its name.
    pub name: SubagentType,
    /// The version that this made.
    pub version: u64,
    /// The version whose text this is.
    pub to_version: u64,
    /// What it is now.
    pub definition: Box<CustomAgent>,
}
