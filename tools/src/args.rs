//! The command line: what may be written, and what it means. Nothing here does anything.

mod agents;
mod keys;
mod log_tools;
mod models;
mod views;

use std::{net::SocketAddr, path::PathBuf};

use clap::{ArgGroup, Args, Parser, Subcommand};
use domain::ids::{InvalidId, RunId, SubagentType, ThreadId, ToolCallId, UserId};
use eventlog::BlobDigest;
use projections::Pace;

pub(crate) use self::agents::{AgentsArguments, AgentsOrder};
pub(crate) use self::keys::{KeysArguments, KeysCommand};
pub(crate) use self::log_tools::{
    BackupArguments, Bench, BenchAgents, BenchAppend, BenchArguments, DoctorArguments, ExportArguments,
    ImportArguments, RebuildArguments, ReplayArguments, RestoreArguments, TailArguments, VerifyArguments,
};
pub(crate) use self::models::{ModelsArguments, ModelsCommand};
pub(crate) use self::views::{CapsArguments, MessagesArguments, ReceiptsArguments, UsageArguments};

const EXAMPLES: &str = "\
Examples:
  remit demo                           three subagents and a report on the files here, offline
  remit run \"What is in this folder?\" --dir .
  remit ledger                         what was delegated in the newest run, and what came of it
  remit card call_2 --json             one delegation, for a program
  remit serve                          the server, on http://127.0.0.1:8700
  remit verify                         proves that the log is what was recorded

Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 refused or conflict, 5 integrity.";

/// Runs a lead agent and the subagents that it delegates to, and keeps a log that tells the whole
/// story: every delegation, receipt, step and cap.
#[derive(Debug, Parser)]
#[command(name = "remit", version, after_help = EXAMPLES, arg_required_else_help = true)]
#[command(max_term_width = 100)]
pub(crate) struct Arguments {
    /// What every command understands.
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command understands, before or after its name.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalOptions {
    /// The data folder [default: log.path of the configuration, else ./remit-data]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) data: Option<PathBuf>,
    /// The configuration file [default: remit.yaml or remit.toml in this folder, if there is one]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON on standard output; everything else goes to standard error
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Speak to a running server instead of opening the data folder
    #[arg(long, global = true, value_name = "URL", conflicts_with = "data")]
    pub(crate) server: Option<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what Remit does, offline: a lead, three subagents and a report on real files
    Demo(DemoArguments),
    /// Give a lead agent one task, and watch it and its subagents work
    Run(RunArguments),
    /// Serve HTTP until it is told to stop
    Serve(ServeArguments),
    /// List the threads
    Threads(ThreadsArguments),
    /// List the runs, the newest first
    Runs(RunsArguments),
    /// Print the events of a thread or run, in order
    Events(EventsArguments),
    /// Show what was delegated, and what came of it
    Ledger(LedgerArguments),
    /// Show one delegation: what it was told, what it did, and what it gave back
    Card(CardArguments),
    /// List the receipts: evidence of the tool calls that subagents made
    Receipts(ReceiptsArguments),
    /// Write out what is kept whole of a tool's large output
    Blob(BlobArguments),
    /// List the caps: every guard that warned or ended something early
    Caps(CapsArguments),
    /// Print what was said on a thread or in a run
    Messages(MessagesArguments),
    /// Sum up calls, tokens and costs by model, caller, run, thread or day
    Usage(UsageArguments),
    /// List the types of subagent, and change those that are managed
    Agents(AgentsArguments),
    /// List the configured models, or try one
    Models(ModelsArguments),
    /// List the keys of threads and runs, or change the master key that wraps them
    Keys(KeysArguments),
    /// Print events as they are recorded
    Tail(TailArguments),
    /// Fold what was recorded up to any event, step through it, or check that it can be made again
    Replay(ReplayArguments),
    /// Prove that the log is what was recorded: every record, hash, commit and index entry
    Verify(VerifyArguments),
    /// Say what is wrong with a data folder, and what to do
    Doctor(DoctorArguments),
    /// Write events as signed JSON lines that anybody can verify
    Export(ExportArguments),
    /// Make a data folder of an export
    Import(ImportArguments),
    /// Copy the log and its keys
    Backup(BackupArguments),
    /// Make a data folder of a backup
    Restore(RestoreArguments),
    /// Make views again from the log while they answer, or check that they are what the log says
    Rebuild(RebuildArguments),
    /// Measure the log and agents at work on this machine
    Bench(BenchArguments),
    /// Cancel a run, all its delegations or one of them, on a running server
    Cancel(CancelArguments),
    /// Erase a thread, a run or all threads of an owner for good
    Erase(EraseArguments),
}

/// `remit demo`.
#[derive(Debug, Args)]
#[command(
    after_help = "The folder is only read: the report goes to the outputs of the demo's own thread, in the data \
                        folder. The model is scripted and needs neither network nor key."
)]
pub(crate) struct DemoArguments {
    /// The folder to look at
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
}

/// `remit run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  remit run \"Summarise the notes\" --dir ~/notes\n  remit run \"And the \
                        longest one?\" --thread 0193a1b2\n\nCtrl-C cancels the run; a second Ctrl-C quits at once."
)]
pub(crate) struct RunArguments {
    /// What to do, in your words
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: String,
    /// The folder that the agents work in, instead of the thread's own
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The lead's model, by its name in the configuration
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The only types of subagent that the lead may delegate to, separated by commas; "" for none
    /// [default: all]
    #[arg(long, value_name = "TYPES")]
    pub(crate) subagents: Option<SubagentTypes>,
    /// Go on with this thread instead of starting a new one
    #[arg(long, value_name = "THREAD")]
    pub(crate) thread: Option<ThreadId>,
}

/// `remit serve`.
#[derive(Debug, Args)]
#[command(after_help = "Runs that were cut off by a crash or a stop go on when the server starts again.")]
pub(crate) struct ServeArguments {
    /// The address to listen on [default: server.listen of the configuration, else 127.0.0.1:8700]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
}

/// Which thread and run a question is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct Selection {
    /// The thread, or the beginning of its id [default: the newest run's]
    #[arg(long, value_name = "THREAD")]
    pub(crate) thread: Option<ThreadId>,
    /// The run, or the beginning of its id
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<RunId>,
}

/// `remit threads`.
#[derive(Debug, Args)]
pub(crate) struct ThreadsArguments {
    /// Rows at most [default: all]
    #[arg(long, value_name = "N", value_parser = rows, allow_negative_numbers = true)]
    pub(crate) limit: Option<usize>,
    /// As it was when this position of the log was the last
    #[arg(long, value_name = "POSITION", value_parser = moment, allow_negative_numbers = true)]
    pub(crate) as_of_position: Option<u64>,
}

/// `remit runs`.
#[derive(Debug, Args)]
pub(crate) struct RunsArguments {
    /// Only the runs of this thread
    #[arg(long, value_name = "THREAD")]
    pub(crate) thread: Option<ThreadId>,
    /// Rows at most [default: all]
    #[arg(long, value_name = "N", value_parser = rows, allow_negative_numbers = true)]
    pub(crate) limit: Option<usize>,
    /// As it was when this seq of the thread was the last
    #[arg(long, value_name = "SEQ", requires = "thread", value_parser = moment, allow_negative_numbers = true)]
    pub(crate) as_of: Option<u64>,
}

/// `remit events`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  remit events --event-types subagent.start,subagent.end\n  remit events --run \
                        0193a1b2 --task-id call_2 --after-seq 40 --limit 20"
)]
pub(crate) struct EventsArguments {
    /// Which thread and run.
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Only those of this task: the provider's id, or a delegation's
    #[arg(long, value_name = "TASK")]
    pub(crate) task_id: Option<ToolCallId>,
    /// Only these types, separated by commas
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub(crate) event_types: Option<Vec<String>>,
    /// Only those after this seq
    #[arg(long, value_name = "SEQ", default_value_t = 0, value_parser = count, allow_negative_numbers = true)]
    pub(crate) after_seq: u64,
    /// Rows at most [default: all]
    #[arg(long, value_name = "N", value_parser = rows, allow_negative_numbers = true)]
    pub(crate) limit: Option<usize>,
    /// Only those up to this seq of the thread, as it was when that was the last
    #[arg(long, value_name = "SEQ", value_parser = moment, allow_negative_numbers = true)]
    pub(crate) as_of: Option<u64>,
}

/// `remit ledger`.
#[derive(Debug, Args)]
pub(crate) struct LedgerArguments {
    /// Which thread and run.
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// As it was when this seq of the thread was the last
    #[arg(long, value_name = "SEQ", value_parser = moment, allow_negative_numbers = true)]
    pub(crate) as_of: Option<u64>,
}

/// `remit card`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  remit card call_2\n  remit card --run 0193a1b2 --task-id call_2 --as-of 30\n  \
                  remit card call_2 --replay --speed 10"
)]
pub(crate) struct CardArguments {
    /// Which thread and run.
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Which delegation.
    #[command(flatten)]
    pub(crate) task: RequiredTask,
    /// As it was when this seq of the thread was the last
    #[arg(long, value_name = "SEQ", value_parser = moment, allow_negative_numbers = true)]
    pub(crate) as_of: Option<u64>,
    /// Show its states as they happened, one after the other
    #[arg(long, conflicts_with = "as_of")]
    pub(crate) replay: bool,
    /// How fast: 1 is as it was, 10 is ten times as fast, max is without pauses
    #[arg(long, value_name = "N", requires = "replay", default_value = "1")]
    pub(crate) speed: Pace,
}

/// `remit blob`.
#[derive(Debug, Args)]
#[command(
    after_help = "A result whose text was cut names its blob, and so does a receipt: its output_sha256.\n\nExamples:\n  \
                  remit blob 5f2c… --out build.log\n  remit blob 5f2c… --thread 0193a1b2 | less"
)]
pub(crate) struct BlobArguments {
    /// The SHA-256 that names it
    #[arg(value_name = "SHA256")]
    pub(crate) sha256: BlobDigest,
    /// The thread, or the beginning of its id [default: the newest run's]
    #[arg(long, value_name = "THREAD")]
    pub(crate) thread: Option<ThreadId>,
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// `remit cancel`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  remit cancel --server http://127.0.0.1:8700\n  remit cancel call_2 --server \
                        http://127.0.0.1:8700\n  remit cancel --delegations --run 0193a1b2 --server http://127.0.0.1:8700\n\n\
                        A lead whose delegation is cancelled is told so and goes on. What a cancelled run had delegated \
                        is cancelled with it."
)]
pub(crate) struct CancelArguments {
    /// Which thread and run [default: the newest run]
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// One delegation instead of the run.
    #[command(flatten)]
    pub(crate) task: OptionalTask,
    /// All delegations of the run instead of the run
    #[arg(long, conflicts_with_all = ["task", "task_id"])]
    pub(crate) delegations: bool,
}

/// `remit erase`.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("what").required(true).multiple(true).args(["named", "thread", "run", "owner"]),
    after_help = "Examples:\n  remit erase 0193a1b2\n  remit erase --thread 0193a1b2 --run 0193a1c4\n  remit erase \
                        --owner ada --yes\n\nKeys are destroyed, so that nobody can read what was erased any more. \
                        Positions and seqs stay, and the log verifies as before. A run's files in the folders of its \
                        thread are the thread's, and stay; so does a folder that was given with --dir."
)]
pub(crate) struct EraseArguments {
    /// The thread, or the beginning of its id
    #[arg(value_name = "THREAD", conflicts_with_all = ["thread", "owner"])]
    pub(crate) named: Option<ThreadId>,
    /// The thread, in another place
    #[arg(long, value_name = "THREAD", conflicts_with = "owner")]
    pub(crate) thread: Option<ThreadId>,
    /// Only this run, or the one whose id begins so; its thread stays
    #[arg(long, value_name = "RUN", conflicts_with = "owner")]
    pub(crate) run: Option<RunId>,
    /// All threads of this owner
    #[arg(long, value_name = "OWNER")]
    pub(crate) owner: Option<UserId>,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Types of subagent that a lead may delegate to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SubagentTypes(pub(crate) Vec<String>);

impl std::str::FromStr for SubagentTypes {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        names
            .map(|name| SubagentType::new(name).map(|name| name.to_string()))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// A number of events: from 0.
fn count(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "it must be a whole number from 0")
}

/// The seq of an event: from 1. Before the first event there is nothing to see.
fn moment(text: &str) -> Result<u64, &'static str> {
    text.parse().ok().filter(|seq| *seq > 0).ok_or("it must be the seq of an event: a whole number from 1")
}

/// A number of rows: from 0.
fn rows(text: &str) -> Result<usize, &'static str> {
    text.parse().map_err(|_| "it must be a whole number from 0")
}

/// A delegation that must be named, in one of two places.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct RequiredTask {
    /// The delegation: its task id, or its delegation id or the beginning of it
    #[arg(value_name = "TASK")]
    task: Option<ToolCallId>,
    /// The same, as an option
    #[arg(long, value_name = "TASK")]
    task_id: Option<ToolCallId>,
}

impl RequiredTask {
    /// The delegation.
    pub(crate) fn name(&self) -> Option<&ToolCallId> {
        self.task.as_ref().or(self.task_id.as_ref())
    }
}

/// A delegation that may be named, in one of two places.
#[derive(Debug, Args)]
#[group(required = false, multiple = false)]
pub(crate) struct OptionalTask {
    /// The delegation: its task id, or its delegation id or the beginning of it
    #[arg(value_name = "TASK")]
    task: Option<ToolCallId>,
    /// The same, as an option
    #[arg(long, value_name = "TASK")]
    task_id: Option<ToolCallId>,
}

impl OptionalTask {
    /// The delegation, if one was named.
    pub(crate) fn name(&self) -> Option<&ToolCallId> {
        self.task.as_ref().or(self.task_id.as_ref())
    }
}

#[cfg(test)]
mod tests;
