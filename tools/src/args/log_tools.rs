//! The tools of the log itself: proving it, looking what is wrong, copying it, and measuring it.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `remit verify`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  remit verify                          every record, hash, commit and index entry\n  \
                        remit verify --head > head.json       and writes down how far the log goes\n  \
                        remit verify --against head.json      and notices if its end was removed since\n  \
                        remit verify ./backup                 a backup instead of the data folder\n\n\
                        Exit code 5 says that something is wrong; the first bad position is named."
)]
pub(crate) struct VerifyArguments {
    /// A folder that `remit backup` made, instead of the data folder
    #[arg(value_name = "BACKUP", conflicts_with = "data")]
    pub(crate) backup: Option<PathBuf>,
    /// A head that was written down earlier: the log must still go that far, with the same events
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,
    /// Print only the head, as JSON for a later --against
    #[arg(long)]
    pub(crate) head: bool,
}

/// `remit doctor`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  remit doctor\n  remit doctor --repair            shows what would be cut, and asks\n  \
                        remit doctor --repair --yes      for scripts\n\nOnly a torn end of the record that was \
                        never acknowledged is ever cut, and a copy of it is kept. Then the index is made anew from \
                        the record. Nothing else is changed."
)]
pub(crate) struct DoctorArguments {
    /// Cut a torn end off the record, and make the index anew
    #[arg(long)]
    pub(crate) repair: bool,
    /// Cut without asking
    #[arg(long, requires = "repair")]
    pub(crate) yes: bool,
}

/// `remit backup`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  remit backup --out /backups/2026-11-30\n\nThe backup has the log and the keys of its \
                        threads, without those that were erased. A master key that was generated in the data folder \
                        is in it too, so that it can be restored: keep such a backup where nobody else can read it. \
                        The files of threads, in {data}/threads, are not in it."
)]
pub(crate) struct BackupArguments {
    /// A folder that does not exist yet
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
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

/// `remit bench read` and `remit bench replay`.
#[derive(Debug, Args)]
pub(crate) struct BenchLog {
    /// Events in the log that is made for it, of 1,024 bytes each
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) events: u64,
}
