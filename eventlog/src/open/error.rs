//! Why a folder was not opened.

use std::{
    io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use crate::{
    engine::EngineError, format::FormatError, position::Position, secret::InvalidKey, store::StoreError,
};

/// Why the log was not opened. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file or folder could not be used.
    #[error("could not {action} {}", .path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// Another process has the folder open.
    #[error("{}", held_text(folder, *pid, command, *since, address.as_deref()))]
    Held {
        /// The folder.
        folder: PathBuf,
        /// The process that has it.
        pid: u32,
        /// Its command line.
        command: String,
        /// Since when.
        since: Timestamp,
        /// Where it listens, if it is a server.
        address: Option<String>,
    },
    /// Another process has just opened the folder and has not said who it is.
    #[error("{} is held by another process that is just starting; try again, or stop it", .folder.display())]
    HeldByUnknown {
        /// The folder.
        folder: PathBuf,
    },
    /// The index cannot be opened, nor made anew.
    #[error("could not open the index of the log in {}", .folder.display())]
    Engine {
        /// The folder.
        folder: PathBuf,
        /// Why it failed.
        #[source]
        source: EngineError,
    },
    /// The log was written by a program that this one does not understand.
    #[error("could not open the log in {}", .folder.display())]
    Format {
        /// The folder.
        folder: PathBuf,
        /// What is wrong.
        #[source]
        source: FormatError,
    },
    /// The log could not be read.
    #[error("could not find the end of the log")]
    Store(#[source] StoreError),
    /// Durable events are gone: the log ends before where it is known to have been.
    #[error(
        "the log in {} ends at position {log}, but had durably reached position {noted}: the events \
         between are lost; keep the folder as it is, and restore a backup or run `remit doctor`",
        .folder.display()
    )]
    HeadBehind {
        /// The folder.
        folder: PathBuf,
        /// Where the log ends.
        log: Position,
        /// Where it is known to have been.
        noted: Position,
    },
    /// The record is damaged, and not at its end: commits stand behind the damage, or a part of the
    /// record is missing.
    #[error(
        "the segment {} is damaged at byte {at}, where position {position} is ({what}), and commits \
         stand behind the damage; it was left as it is: keep it, and restore a backup, or run `remit \
         verify` to see what is whole",
        .path.display()
    )]
    SegmentDamaged {
        /// The file.
        path: PathBuf,
        /// Where in it.
        at: u64,
        /// The first position that cannot be read.
        position: Position,
        /// What is wrong there.
        what: String,
    },
    /// The log is of an earlier version, and was only to be looked at.
    #[error(
        "the log in {} has the format of an earlier version: start the server on it once, which brings \
         it to the present one",
        .folder.display()
    )]
    OldFormat {
        /// The folder.
        folder: PathBuf,
    },
    /// The log of an earlier version could not be brought to the present one. It was left as it is.
    #[error("could not bring the log in {} to the present format; it was left as it is", .folder.display())]
    Migration {
        /// The folder.
        folder: PathBuf,
        /// Why it failed.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The events up to the noted head are not those that were there.
    #[error(
        "the log in {} is another one than was there when it reached position {noted}: its chain differs; \
         keep the folder as it is, and restore a backup or run `remit doctor`",
        .folder.display()
    )]
    HeadDiffers {
        /// The folder.
        folder: PathBuf,
        /// Where the chains differ.
        noted: Position,
    },
    /// The noted head is unreadable, so nothing says whether the log is whole.
    #[error(
        "the head file {} is damaged, so nothing says whether the log is whole; \
         run `remit verify` on a copy, then remove the file",
        .path.display()
    )]
    WatermarkDamaged {
        /// The file.
        path: PathBuf,
    },
    /// The log has sealed events, and the file with their keys is gone.
    #[error(
        "the key file {} is missing, and the log has events that were sealed with its keys; \
         keep the folder as it is, and restore a backup into a new one",
        .path.display()
    )]
    KeysLost {
        /// The file.
        path: PathBuf,
    },
    /// There are keys of threads, and no log: it was removed.
    #[error(
        "the log in {} is missing, and there are keys of threads that it had; keep the folder as it is, and \
         restore a backup into a new one",
        .folder.display()
    )]
    RecordLost {
        /// The folder.
        folder: PathBuf,
    },
    /// The file with the keys was cut, or its beginning is damaged.
    #[error("the key file {} is damaged; keep the folder as it is, and restore a backup into a new one", .path.display())]
    KeysDamaged {
        /// The file.
        path: PathBuf,
    },
    /// Keys were wrapped with a master key that is gone.
    #[error(
        "the master key {} is missing, and the keys of threads are wrapped with it; put back the one that was \
         used, or say in log.master_key where it is",
        .path.display()
    )]
    MasterKeyLost {
        /// Where a generated key would be.
        path: PathBuf,
    },
    /// The file that the master key is to come from is not there.
    #[error(
        "there is no master key in {}, where log.master_key says it is; put back the one that was used, or, for \
         a new data folder, make one there, for example with `openssl rand -hex 32`",
        .path.display()
    )]
    MasterKeyMissing {
        /// Where it would be.
        path: PathBuf,
    },
    /// Keys were wrapped with another master key.
    #[error(
        "the master key from {given} is not the one that the keys in {} are wrapped with; say in log.master_key \
         where the one is that was used",
        .path.display()
    )]
    MasterKeyWrong {
        /// The file with the wrapped keys.
        path: PathBuf,
        /// Where the master key was taken from.
        given: String,
    },
    /// The file of the master key holds something else.
    #[error("the master key {} cannot be used", .path.display())]
    MasterKeyInvalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: InvalidKey,
    },
    /// The writer's thread could not be started.
    #[error("could not start the log's writer")]
    Writer(#[source] io::Error),
}

fn held_text(folder: &Path, pid: u32, command: &str, since: Timestamp, address: Option<&str>) -> String {
    let folder = folder.display();
    let who = format!("{folder} is held by process {pid} (`{command}`, since {since})");
    match address {
        Some(address) => format!("{who}; stop it, or pass --server {address} to speak to it"),
        None => format!("{who}; stop it, or pass --server URL to speak to it if it is a server"),
    }
}
