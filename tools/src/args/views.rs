//! The commands that look at what was said, what stopped it, and what it cost.

use clap::Args;
use domain::ids::{RunId, ThreadId};
use jiff::civil::Date;

use super::{OptionalTask, Selection, count, moment, rows};

/// `remit messages`.
#[derive(Debug, Args)]
#[command(
    after_help = "Without --run it is the conversation of the thread as readers see it. Subagents work out of its \
                        sight: see `remit card`.\n\nExamples:\n  remit messages --limit 4\n  remit messages --thread \
                        0193a1b2 --as-of 40 --json"
)]
pub(crate) struct MessagesArguments {
    /// Which thread and run.
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Also what the framework's own model calls said, which readers are not shown
    #[arg(long)]
    pub(crate) all: bool,
    /// Only those after this seq
    #[arg(long, value_name = "SEQ", default_value_t = 0, value_parser = count, allow_negative_numbers = true)]
    pub(crate) after_seq: u64,
    /// The last N messages, or with --after-seq the first N after it [default: all]
    #[arg(long, value_name = "N", value_parser = rows, allow_negative_numbers = true)]
    pub(crate) limit: Option<usize>,
    /// As it was when this seq of the thread was the last
    #[arg(long, value_name = "SEQ", value_parser = moment, allow_negative_numbers = true)]
    pub(crate) as_of: Option<u64>,
}

/// `remit caps`.
#[derive(Debug, Args)]
pub(crate) struct CapsArguments {
    /// Which thread and run.
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Which delegation; leads and all subagents when none is named.
    #[command(flatten)]
    pub(crate) task: OptionalTask,
    /// Only guards that watch this
    #[arg(long, value_name = "AXIS", value_parser = ["turns", "tokens", "loop", "delegations", "time", "depth", "safety"])]
    pub(crate) axis: Option<String>,
    /// Only warnings, or only stops
    #[arg(long, value_name = "ACTION", value_parser = ["warn", "stop"])]
    pub(crate) action: Option<String>,
    /// Rows at most [default: all]
    #[arg(long, value_name = "N", value_parser = rows, allow_negative_numbers = true)]
    pub(crate) limit: Option<usize>,
    /// As it was when this seq of the thread was the last
    #[arg(long, value_name = "SEQ", value_parser = moment, allow_negative_numbers = true)]
    pub(crate) as_of: Option<u64>,
}

/// `remit receipts`.
#[derive(Debug, Args)]
pub(crate) struct ReceiptsArguments {
    /// Which thread and run.
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Which delegation; all of them when none is named.
    #[command(flatten)]
    pub(crate) task: OptionalTask,
    /// Only those of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only those of calls that came to this
    #[arg(long, value_name = "OUTCOME", value_parser = ["ok", "error", "denied", "unknown"])]
    pub(crate) outcome: Option<String>,
    /// Rows at most [default: all]
    #[arg(long, value_name = "N", value_parser = rows, allow_negative_numbers = true)]
    pub(crate) limit: Option<usize>,
    /// As it was when this seq of the thread was the last
    #[arg(long, value_name = "SEQ", value_parser = moment, allow_negative_numbers = true)]
    pub(crate) as_of: Option<u64>,
}

/// `remit usage`.
#[derive(Debug, Args)]
#[command(
    after_help = "Costs need the prices of the models, in the section `pricing` of the configuration.\n\nExamples:\n  \
                        remit usage --by day,model --from 2026-11-01\n  remit usage --run 0193a1b2 --by caller"
)]
pub(crate) struct UsageArguments {
    /// Only this thread, or the beginning of its id [default: all threads]
    #[arg(long, value_name = "THREAD")]
    pub(crate) thread: Option<ThreadId>,
    /// Only this run, or the beginning of its id [default: all runs]
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<RunId>,
    /// Only this model, by the name under which it is shown
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Only this caller: lead_agent, subagent (all of them), or subagent:TYPE
    #[arg(long, value_name = "CALLER")]
    pub(crate) caller: Option<String>,
    /// Only from this day on (UTC)
    #[arg(long, value_name = "DAY", value_parser = day)]
    pub(crate) from: Option<Date>,
    /// Only up to this day (UTC)
    #[arg(long, value_name = "DAY", value_parser = day)]
    pub(crate) to: Option<Date>,
    /// What to sum up by, separated by commas: thread, run, model, caller, day
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "model",
        value_parser = ["thread", "run", "model", "caller", "day"])]
    pub(crate) by: Vec<String>,
    /// As it was when this seq of the thread was the last
    #[arg(long, value_name = "SEQ", value_parser = moment, allow_negative_numbers = true)]
    pub(crate) as_of: Option<u64>,
    /// As it was when this position of the log was the last
    #[arg(long, value_name = "POSITION", value_parser = moment, allow_negative_numbers = true,
        conflicts_with = "as_of")]
    pub(crate) as_of_position: Option<u64>,
}

/// A day of the calendar.
fn day(text: &str) -> Result<Date, &'static str> {
    text.parse().map_err(|_| "it must be a day, such as 2026-11-30")
}
