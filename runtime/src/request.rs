//! What clients ask of the runtime, and how it refuses.

use std::path::PathBuf;

use domain::{
    definition::SettingProblem,
    event::RunStatus,
    ids::{DelegationId, ErasureId, RunId, ThreadId, ToolCallId, UserId},
    managed::ManageRejection,
    message::HumanMessage,
};
use eventlog::ReadError;
use serde_json::{Map, Value};

use crate::{journal::JournalError, models::UnknownModel};

/// A thread to make.
#[derive(Debug, Clone, PartialEq)]
pub struct NewThread {
    /// Its id; a new one when absent.
    pub thread_id: Option<ThreadId>,
    /// What the client wants to find again.
    pub metadata: Map<String, Value>,
    /// A folder of this machine that is the thread's workspace. Only for people at this machine:
    /// agents get to write there.
    pub workspace: Option<PathBuf>,
    /// Whose thread it is.
    pub owner: UserId,
}

impl Default for NewThread {
    fn default() -> Self {
        Self { thread_id: None, metadata: Map::new(), workspace: None, owner: UserId::unowned() }
    }
}

/// A run to start. Numbers are clamped into their ranges.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRequest {
    /// What the person says.
    pub input: Vec<HumanMessage>,
    /// The lead's model; the default one when absent.
    pub model_name: Option<String>,
    /// Whether the lead has the `task` tool.
    pub subagent_enabled: bool,
    /// Delegations per response.
    pub max_concurrent_subagents: Option<u32>,
    /// Delegations per run.
    pub max_total_subagents: Option<u32>,
    /// Types that may be delegated to; `None` allows all.
    pub allowed_subagents: Option<Vec<String>>,
    /// What the client wants to find again.
    pub metadata: Map<String, Value>,
    /// The run's id; a new one when absent.
    pub run_id: Option<RunId>,
}

impl RunRequest {
    /// A run with defaults for everything but what the person says.
    pub fn saying(input: Vec<HumanMessage>) -> Self {
        Self {
            input,
            model_name: None,
            subagent_enabled: true,
            max_concurrent_subagents: None,
            max_total_subagents: None,
            allowed_subagents: None,
            metadata: Map::new(),
            run_id: None,
        }
    }
}

/// Names a delegation of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskRef {
    /// By the provider's id; the newest delegation that has it.
    TaskId(ToolCallId),
    /// By ours.
    DelegationId(DelegationId),
}

/// Why a thread was not made.
#[derive(Debug, thiserror::Error)]
pub enum CreateThreadError {
    /// There is a thread of that id.
    #[error("thread {0} exists already; choose another thread_id or leave it out")]
    Exists(ThreadId),
    /// There was a thread of that id.
    #[error("thread {0} was erased, and its id is not used again; choose another thread_id or leave it out")]
    Erased(ThreadId),
    /// The workspace is not a folder that can be used.
    #[error("using {} as a workspace", .folder.display())]
    Workspace {
        /// The folder, as given.
        folder: PathBuf,
        /// What is wrong with it.
        #[source]
        source: std::io::Error,
    },
    /// The log failed.
    #[error("making thread {0}")]
    Journal(ThreadId, #[source] JournalError),
}

/// Why a run was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartRunError {
    /// There is no such thread.
    #[error("Thread {0} not found")]
    UnknownThread(ThreadId),
    /// There was one, until it was erased.
    #[error("thread {0} was erased and takes no more runs; make another thread")]
    Erased(ThreadId),
    /// There was a run of this id, until it was erased.
    #[error("run {0} was erased, and its id is not used again; choose another run_id or leave it out")]
    RunErased(RunId),
    /// The thread is busy.
    #[error("run {0} is active on this thread; wait for it or cancel it")]
    ActiveRun(RunId),
    /// The run id has been used on this thread.
    #[error("run {0} exists already; choose another run_id or leave it out")]
    RunExists(RunId),
    /// There is no such model.
    #[error(transparent)]
    UnknownModel(#[from] UnknownModel),
    /// Nobody said anything.
    #[error("the input has no message with text or an image")]
    NoInput,
    /// Somebody said too much.
    #[error("the input has {chars} characters, and at most {max} fit", max = domain::limits::PROMPT_CHARS_MAX)]
    InputTooLong {
        /// How much was said.
        chars: usize,
    },
    /// Somebody showed too much.
    #[error(
        "the input has {count} images with {chars} characters of base64, and at most {} with {} fit",
        domain::limits::IMAGES_MAX,
        domain::limits::IMAGES_CHARS_MAX
    )]
    ImagesTooLarge {
        /// Images.
        count: usize,
        /// Their size, in characters of base64.
        chars: usize,
    },
    /// The process is going down.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// The thread's folders cannot be used.
    #[error("preparing the folders of thread {thread_id}")]
    Folders {
        /// The thread.
        thread_id: ThreadId,
        /// What is wrong.
        #[source]
        source: std::io::Error,
    },
    /// The thread's history cannot be read.
    #[error("reading the history of thread {thread_id}")]
    History {
        /// The thread.
        thread_id: ThreadId,
        /// What is wrong.
        #[source]
        source: HistoryError,
    },
    /// The definitions that administrators keep cannot be read.
    #[error("reading the managed definitions")]
    Definitions(#[source] HistoryError),
    /// The log failed.
    #[error("recording the start of the run")]
    Journal(#[source] JournalError),
}

/// Why a thread's history cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The log failed.
    #[error("reading the log")]
    Read(#[from] ReadError),
    /// An event has another shape than it promises.
    #[error("decoding an event")]
    Decode(#[from] eventlog::UndecodableEvent),
}

/// Why what was cut off is not carried on.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// What was erased might be there again.
    #[error("looking after the erasures")]
    Erasures(#[from] EraseError),
    /// The log failed.
    #[error("looking for unfinished runs")]
    Runs(#[from] ReadError),
}

/// The limits that a runtime was to be made with are out of their ranges.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the limits of delegation cannot be used: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct LimitsOutOfRange(pub Vec<SettingProblem>);

/// Why something is not erased, or not yet. What was begun is carried on when it is asked for again, and
/// when a server starts.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    /// There is no such thread, or it has been erased.
    #[error("Thread {0} not found")]
    UnknownThread(ThreadId),
    /// There is no such run on the thread, or it has been erased.
    #[error("Run {0} not found")]
    UnknownRun(RunId),
    /// Nothing is theirs.
    #[error("no thread of {owner:?} found", owner = .0.as_str())]
    UnknownOwner(UserId),
    /// It was asked for before, and whoever carried it out has stopped.
    #[error("erasure {0} was not finished; ask again to have it carried on")]
    Unfinished(ErasureId),
    /// No key hides its events.
    #[error(
        "the events of thread {0} were written in plain, by a version without sealing; they cannot be erased"
    )]
    InPlain(ThreadId),
    /// The process is going down.
    #[error("the server is shutting down; the erasure is carried on when it starts again")]
    ShuttingDown,
    /// The keys could not be destroyed.
    #[error("destroying the keys of thread {thread_id}")]
    Keys {
        /// The thread.
        thread_id: ThreadId,
        /// What is wrong.
        #[source]
        source: Box<eventlog::EraseError>,
    },
    /// The thread's folders could not be removed. Its events can no longer be read.
    #[error("removing the folders of thread {thread_id}")]
    Folders {
        /// The thread.
        thread_id: ThreadId,
        /// What is wrong.
        #[source]
        source: std::io::Error,
    },
    /// The log cannot be read.
    #[error("reading the log")]
    Read(#[from] ReadError),
    /// The registry cannot be read.
    #[error("reading the erasures")]
    Registry(#[from] HistoryError),
    /// The log failed.
    #[error("recording the erasure")]
    Journal(#[from] JournalError),
}

/// Why a managed definition was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ManageError {
    /// The change is refused.
    #[error(transparent)]
    Rejected(#[from] ManageRejection),
    /// The process is going down.
    #[error("the server is shutting down; nothing was changed")]
    ShuttingDown,
    /// The registry cannot be read.
    #[error("reading the managed definitions")]
    History(#[from] HistoryError),
    /// The log failed.
    #[error("recording the change")]
    Journal(#[from] JournalError),
}

/// Why nothing was cancelled.
#[derive(Debug, thiserror::Error)]
pub enum CancelError {
    /// There is no such run on the thread.
    #[error("Run {0} not found")]
    UnknownRun(RunId),
    /// There is no such delegation in the run.
    #[error("delegation not found in run {0}")]
    UnknownDelegation(RunId),
    /// It has ended.
    #[error("the run has ended with status {}", .0.as_str())]
    AlreadyEnded(RunStatus),
    /// The delegation has ended.
    #[error("the delegation has ended")]
    DelegationEnded,
    /// The run is unfinished, and this process does not work on it.
    #[error("run {0} is not at work in this process; restart the server to resume it")]
    NotLive(RunId),
    /// The history cannot be read.
    #[error("reading the history of the thread")]
    History(#[from] HistoryError),
}
