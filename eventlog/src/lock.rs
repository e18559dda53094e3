//! One process per folder, and the others are told who it is.
//!
//! The lock is the operating system's, so it ends with the process. The file's text only says who
//! holds it: `{"pid", "command", "since", "address"}`.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::Path,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Holders describe themselves in far less; more is not read.
const HOLDER_BYTES_MAX: u64 = 8 * 1024;
/// A command line is shortened to this for the file.
const COMMAND_CHARS_MAX: usize = 200;

/// Who holds a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// The program and what it does.
    pub command: String,
    /// Since when.
    pub since: Timestamp,
    /// Where it listens, if it is a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// Holds a folder until it is dropped.
pub(crate) struct FolderLock {
    file: File,
    holder: Holder,
}

/// What became of the attempt.
pub(crate) enum Acquired {
    /// The folder is ours.
    Held(FolderLock),
    /// Another process has it; none if it has not yet written who it is.
    ByOther(Option<Holder>),
}

impl FolderLock {
    /// Takes the lock if nobody has it.
    pub(crate) fn acquire(path: &Path, since: Timestamp) -> io::Result<Acquired> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Acquired::ByOther(read_holder(&mut file))),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let holder = Holder { pid: std::process::id(), command: command(), since, address: None };
        let mut lock = Self { file, holder };
        lock.write()?;
        Ok(Acquired::Held(lock))
    }

    /// Notes where this process listens.
    pub(crate) fn set_address(&mut self, address: &str) -> io::Result<()> {
        self.holder.address = Some(address.to_owned());
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        let mut text = serde_json::to_string(&self.holder).map_err(io::Error::other)?;
        text.push('\n');
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())
    }
}

fn read_holder(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.take(HOLDER_BYTES_MAX).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// The program and what it does. The rest of the command line stays out of the folder: it may be a
/// prompt, and what is said on a thread must be nowhere in plain.
fn command() -> String {
    let mut words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let program = words.next().unwrap_or_default();
    let is_plain = |word: &String| word.chars().all(|letter| letter.is_ascii_lowercase());
    let command = [program].into_iter().chain(words.find(is_plain)).collect::<Vec<_>>().join(" ");
    command.chars().take(COMMAND_CHARS_MAX).collect()
}
