//! The tools of the log itself: proving it, looking what is wrong, copying it, and measuring it.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use domain::ids::{RunId, ThreadId, ToolCallId, UserId};
use eventlog::export::PublicKey;
use jiff::Timestamp;

use super::{Selection, count, moment};

/// `remit verify`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  remit verify                          every record, hash, commit and index entry\n  \
                        remit verify --head > head.json       and writes down how far the log goes\n  \
                        remit verify --against head.json      and notices if its end was removed since\n  \
                        remit verify ./backup                 a backup instead of the data folder\n  \
                        remit verify ./audit --key 5f3c…      an export, offline, signed by the key that you know\n  \
                        remit verify ./audit --against ./old  and notices if the log's end was removed since then\n  \
                        remit verify --server 127.0.0.1:8700  the log of a running server\n\n\
                        Exit code 5 says that something is wrong; the first bad position is named."
)]
pub(crate) struct VerifyArguments {
    /// A folder that `remit export` or `remit backup` made, instead of the data folder
    #[arg(value_name = "EXPORT", conflicts_with = "data")]
    pub(crate) backup: Option<PathBuf>,
    /// A head that was written down earlier, or an earlier export or backup: the log must still go
    /// that far, with the same events
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,
    /// The public key that must have signed the export: 64 hexadecimal digits
    #[arg(long, value_name = "KEY", requires = "backup")]
    pub(crate) key: Option<PublicKey>,
    /// Print only the head, as JSON for a later --against
    #[arg(long)]
    pub(crate) head: bool,
}

/// `remit export`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  remit export --out ./audit                       everything, and a log can be made of it\n  \
                        remit export --out ./march --from 2026-03-01 --to 2026-04-01\n  \
                        remit export --out ./run --run 0193a1b2          one run, and the hashes of all else\n  \
                        remit verify ./audit                             proves it anywhere, without the data folder\n\n\
                        An export that was interrupted goes on when the same command is given again; until it is whole it \
                        has another name. It holds the text of threads: keep it as safe as the data folder. What is erased \
                        later is still in it."
)]
pub(crate) struct ExportArguments {
    /// A folder that does not exist yet; with --server, a name in the server's folder for backups
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Only this thread
    #[arg(long, value_name = "THREAD")]
    pub(crate) thread: Option<ThreadId>,
    /// Only this run
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<RunId>,
    /// Only threads of this user
    #[arg(long, value_name = "USER")]
    pub(crate) owner: Option<UserId>,
    /// Only what was recorded at this time or later: 2026-03-01 or 2026-03-01T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) from: Option<Timestamp>,
    /// Only what was recorded before this time
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) to: Option<Timestamp>,
    /// Only these types, separated by commas
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub(crate) event_types: Option<Vec<String>>,
    /// Also the large outputs that its events name, in plain: files named by their SHA-256
    #[arg(long)]
    pub(crate) with_blobs: bool,
    /// Throw away what an interrupted export left there
    #[arg(long)]
    pub(crate) restart: bool,
    /// The signing key: 64 hexadecimal digits [default: log.signing_key of the configuration, else
    /// keys/export.key in the data folder, made when it is first needed]
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
}

/// `remit import`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  remit import ./audit --data ./again --master-key ./remit-data/keys/master.key\n\nThe new log \
                        has the same events, positions, seqs and hashes. Only an export without filters can be imported, and \
                        only with the master key of the log that was exported. Idempotency keys and the threads' files are \
                        not in an export: use `remit backup` to move a log."
)]
pub(crate) struct ImportArguments {
    /// A folder that `remit export` made
    #[arg(value_name = "EXPORT")]
    pub(crate) export: PathBuf,
    /// The master key of the log that was exported [default: that of the configuration]
    #[arg(long, value_name = "FILE")]
    pub(crate) master_key: Option<PathBuf>,
}

/// `remit replay`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  remit replay --seq 40                 the newest thread, as it was after its event 40\n  \
                        remit replay --task-id call_2 --step  one delegation, event by event\n  remit replay --run 0193a1b2 \
                        --step --json   every state, one on each line\n  remit replay --check                  what was \
                        recorded is what the agents ask for\n\nWhile stepping: Enter goes on, b goes back, a number goes to \
                        that seq, q ends. Nothing is performed: a replay only folds what was recorded. Exit code 5 of \
                        --check says that a recorded effect is another one than its agent asks for."
)]
pub(crate) struct ReplayArguments {
    /// Which thread and run.
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Only this delegation: its task id, or its delegation id or the beginning of either
    #[arg(long, value_name = "TASK", conflicts_with = "check")]
    pub(crate) task_id: Option<ToolCallId>,
    /// Fold up to this seq of the thread [default: its last; with --step, where stepping begins]
    #[arg(long, value_name = "SEQ", value_parser = moment, allow_negative_numbers = true, conflicts_with = "check")]
    pub(crate) seq: Option<u64>,
    /// Show the state after every event
    #[arg(long, conflicts_with = "check")]
    pub(crate) step: bool,
    /// Fold recorded outcomes through the agents, and compare the effects [default: of all threads]
    #[arg(long)]
    pub(crate) check: bool,
}

/// `remit tail`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  remit tail --server 127.0.0.1:8700\n  remit tail --server 127.0.0.1:8700 --event-types \
                        run.status,subagent.end --json\n  remit tail --after-position 0        all that is in the data \
                        folder\n\nA server is followed until Ctrl-C, over its restarts too, without gaps or repeats. A data \
                        folder that nobody holds is printed from its beginning, and that is all: nothing comes while this \
                        command has it."
)]
pub(crate) struct TailArguments {
    /// Which thread and run [default: all]
    #[arg(long, value_name = "THREAD")]
    pub(crate) thread: Option<ThreadId>,
    /// Only this run
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<RunId>,
    /// Only this task: the provider's id, or a delegation's
    #[arg(long, value_name = "TASK")]
    pub(crate) task_id: Option<ToolCallId>,
    /// Only these types, separated by commas
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub(crate) event_types: Option<Vec<String>>,
    /// Begin after this position of the log [default: of a server, its end]
    #[arg(long, value_name = "POSITION", value_parser = count, allow_negative_numbers = true)]
    pub(crate) after_position: Option<u64>,
}

/// A point in time; a day alone is its beginning in UTC.
fn instant(text: &str) -> Result<Timestamp, &'static str> {
    let parsed = text.parse().or_else(|_| format!("{text}T00:00:00Z").parse()).ok();
    parsed.ok_or("it must be a time such as 2026-03-01T12:00:00Z, or a day such as 2026-03-01")
}

/// `remit doctor`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  remit doctor\n  remit doctor --repair            shows what would be cut, and asks\n  \
                        remit doctor --repair --yes      for scripts\n\nOnly a torn end of the record that was \
                        never acknowledged is ever cut, and a copy of it is kept. Then the index is made anew from \
                        the record, and keys that an older copy of the key file brought back of what was erased are \
                        destroyed again. Nothing else is changed."
)]
pub(crate) struct DoctorArguments {
    /// Cut a torn end off the record, make the index anew, and destroy revived keys again
    #[arg(long)]
    pub(crate) repair: bool,
    /// Cut without asking
    #[arg(long, requires = "repair")]
    pub(crate) yes: bool,
}

/// `remit backup`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  remit backup --out /backups/2026-11-30\n  remit backup --server 127.0.0.1:8700 --out monday     \
                        of a running server, in its folder server.backups\n\nThe backup has the log, the keys of its \
                        threads, without those that were erased, and the files of threads, each as it was at some moment \
                        during the backup. Files are plain in it. A master key that was generated in the data folder is in \
                        it too, so that it can be restored: keep such a backup where nobody else can read it."
)]
pub(crate) struct BackupArguments {
    /// A folder that does not exist yet, or a backup of the same log, to which what is new is added;
    /// with --server, a new name in the server's folder for backups
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Leave out the files of threads
    #[arg(long)]
    pub(crate) without_files: bool,
}

/// `remit restore`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  remit restore /backups/2026-11-30 --data ./restored\n\nThe new data folder is verified as \
                        a whole before it is there. Views are made again when it is first used."
)]
pub(crate) struct RestoreArguments {
    /// A folder that `remit backup` made
    #[arg(value_name = "DIR")]
    pub(crate) backup: PathBuf,
}

/// `remit rebuild`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  remit rebuild                         all views, with one read of the log\n  remit rebuild \
                        ledger --check          says whether the ledger is what the log says\n\nViews answer as before \
                        until the new ones take their place. What was interrupted goes on where it was.\nExit code 5 \
                        says that a view differs; the first row that does is shown, and nothing is changed."
)]
pub(crate) struct RebuildArguments {
    /// The view [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Compare the view with what the log says, instead of replacing it
    #[arg(long)]
    pub(crate) check: bool,
}

/// `remit bench`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  remit bench append --writers 64 --seconds 10\n  remit bench append --batch 25 --json\n  \
                        remit bench read --events 100000\n\nA folder for measuring is made in --data, or else in this \
                        folder, and removed again: it should be on the disk that will have the log. Build with \
                        --release."
)]
pub(crate) struct BenchArguments {
    /// What to measure.
    #[command(subcommand)]
    pub(crate) what: Bench,
}

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Durable appends, beside a raw file on the same disk
    Append(BenchAppend),
    /// Opening a log, and pages of one task in it
    Read(BenchLog),
    /// Reading the whole log in order, and verifying it
    Replay(BenchLog),
    /// Making all views from a log of agents at work
    Rebuild(BenchLog),
    /// Agents at work: what Remit takes of a turn, beside the model and the tool
    Agents(BenchAgents),
}

/// `remit bench append`.
#[derive(Debug, Args)]
pub(crate) struct BenchAppend {
    /// Writers, each of which waits until its events are durable
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub(crate) writers: u32,
    /// Events in one append
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) batch: u32,
    /// How long to measure, the log and the raw file together
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub(crate) seconds: u64,
    /// Content and metadata of one event
    #[arg(long, value_name = "BYTES", default_value_t = 1_024)]
    pub(crate) event_bytes: u32,
}

/// `remit bench agents`.
#[derive(Debug, Args)]
pub(crate) struct BenchAgents {
    /// Leads that work at once
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    /// What each of them delegates
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(crate) delegations: u32,
    /// Model calls of each subagent
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=25))]
    pub(crate) turns: u32,
    /// Subagents that work at once
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) max_running: u32,
    /// How long the model takes for a reply, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub(crate) model_ms: u64,
}

/// `remit bench read` and `remit bench replay`.
#[derive(Debug, Args)]
pub(crate) struct BenchLog {
    /// Events in the log that is made for it, of 1,024 bytes each
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) events: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_an_instant_or_a_day() {
        for (text, expected) in [
            ("2026-03-01", Some("2026-03-01T00:00:00Z")),
            ("2026-03-01T12:00:00Z", Some("2026-03-01T12:00:00Z")),
            ("2026-03-01T12:00:00+02:00", Some("2026-03-01T10:00:00Z")),
            ("2026-03-01T12:00:00", None),
            ("March", None),
            ("", None),
        ] {
            let expected: Option<Timestamp> = expected.map(|text| text.parse().unwrap());
            assert_eq!(instant(text).ok(), expected, "{text}");
        }
    }
}
