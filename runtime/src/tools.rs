//! The tools that an agent may call, one file each, and what they have in common.
//!
//! A tool never fails: whatever goes wrong becomes a bounded text that says what to do, because
//! the model reads it and must be able to go on. A tool knows nothing of turns, events or models.

mod bash;
pub(crate) mod capture;
pub(crate) mod file_call;
mod glob;
mod grep;
mod keeper;
mod ls;
mod read_file;
mod str_replace;
mod text_file;
mod walk;
mod write_file;

use std::{sync::Arc, time::Duration};

use domain::{
    kept_output::KeptOutput,
    tool_spec::{SideEffect, ToolSpec},
};
use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

pub use self::{capture::bound, keeper::OutputKeeper};
use crate::{
    sandbox::{Confinement, ThreadFolders},
    tool_work::WorkList,
};

/// How long one shell line may run when nothing else is set.
pub const BASH_TIMEOUT_DEFAULT: Duration = Duration::from_secs(600);

/// What a tool call may use.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The thread's folders.
    pub folders: ThreadFolders,
    /// How shell lines are confined; without one `bash` is denied.
    pub confinement: Option<Arc<Confinement>>,
    /// Stops the call.
    pub cancel: CancellationToken,
    /// How long one shell line may run.
    pub bash_timeout: Duration,
    /// Keeps large outputs whole; without one the text that the model gets is all that is left.
    pub keeper: Option<OutputKeeper>,
    /// Where work is listed that may go on when nobody waits for the call any more.
    pub(crate) work: WorkList,
}

impl ToolContext {
    /// A context with the default time limit.
    pub fn new(
        folders: ThreadFolders,
        confinement: Option<Arc<Confinement>>,
        cancel: CancellationToken,
    ) -> Self {
        let (bash_timeout, work) = (BASH_TIMEOUT_DEFAULT, WorkList::default());
        Self { folders, confinement, cancel, bash_timeout, keeper: None, work }
    }

    /// The same for the calls of a run.
    #[must_use]
    pub(crate) fn listed_in(self, work: WorkList) -> Self {
        Self { work, ..self }
    }

    /// The same, with large outputs kept whole.
    #[must_use]
    pub fn keeping(self, keeper: OutputKeeper) -> Self {
        Self { keeper: Some(keeper), ..self }
    }
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOutcome {
    /// It did what was asked.
    Ok,
    /// It could not, or a command ended with a non-zero exit code.
    Error,
    /// It was not allowed to try.
    Denied,
}

/// What a tool call gives back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// What the model reads; at most `TOOL_OUTPUT_CHARS_MAX` characters.
    pub text: String,
    /// How the call ended.
    pub outcome: ToolOutcome,
    /// The length of the whole output in bytes, before anything was cut.
    pub output_bytes: u64,
    /// SHA-256 of the whole output, in hexadecimal: of what the agent may read, with secrets masked
    /// where there is a keeper.
    pub output_sha256: String,
    /// The blob that has the whole output, if it is kept. The message that answers the call has to
    /// name it.
    pub kept: Option<KeptOutput>,
    /// Whether `text` leaves something out.
    pub is_truncated: bool,
}

/// One tool.
pub trait Tool: Send + Sync {
    /// What the model is told.
    fn spec(&self) -> ToolSpec;

    /// What running this call twice would do.
    fn side_effect(&self, args: &Map<String, Value>) -> SideEffect;

    /// Runs one call. Dropping the future stops a shell line with all its processes; a file that
    /// is being written is still finished.
    fn run<'a>(&'a self, context: &'a ToolContext, args: &'a Map<String, Value>)
    -> BoxFuture<'a, ToolOutput>;
}

/// The tools of an agent, in the order in which the model is told of them.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<Offered>,
}

/// A tool, and what it says of itself, asked for once: tools are looked up with every call.
#[derive(Clone)]
struct Offered {
    spec: ToolSpec,
    tool: Arc<dyn Tool>,
}

impl Toolbox {
    /// The file and shell tools.
    pub fn builtin() -> Self {
        let tools: [Arc<dyn Tool>; 7] = [
            Arc::new(ls::Ls),
            Arc::new(read_file::ReadFile),
            Arc::new(write_file::WriteFile),
            Arc::new(str_replace::StrReplace),
            Arc::new(grep::Grep),
            Arc::new(glob::Glob),
            Arc::new(bash::Bash),
        ];
        tools.into_iter().fold(Self::default(), Self::with)
    }

    /// Adds a tool at the end; one of the same name is replaced where it stands.
    pub fn with(mut self, tool: Arc<dyn Tool>) -> Self {
        let offered = Offered { spec: tool.spec(), tool };
        match self.tools.iter_mut().find(|known| known.spec.name == offered.spec.name) {
            Some(known) => *known = offered,
            None => self.tools.push(offered),
        }
        self
    }

    /// What the model is told: the allowed tools without the denied ones, by exact name, in order
    /// (facts §1.7). No allow-list means all.
    pub fn specs(&self, allow: Option<&[String]>, deny: &[String]) -> Vec<ToolSpec> {
        let is_offered = |spec: &&ToolSpec| {
            allow.is_none_or(|names| names.contains(&spec.name)) && !deny.contains(&spec.name)
        };
        self.tools.iter().map(|offered| &offered.spec).filter(is_offered).cloned().collect()
    }

    /// The tool of that exact name.
    pub fn get(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.iter().find(|offered| offered.spec.name == name).map(|offered| offered.tool.as_ref())
    }

    /// Every name, in order.
    pub fn names(&self) -> Vec<String> {
        self.tools.iter().map(|offered| offered.spec.name.clone()).collect()
    }
}

#[cfg(test)]
mod tests;
