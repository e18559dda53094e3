//! What the tests of blobs have in common.

use std::{fs, os::unix::fs::FileExt, path::PathBuf};

use tempfile::TempDir;

use super::{place::Place, *};
use crate::{Append, EventLog, Expected, Json, NewEvent, Scope, Seq, sample};

mod collecting;
mod copies;
mod damage;
mod erasing;
mod keeping;
mod verifying;

/// A log in a folder, with runs `a` and `b` on the threads `t` and `u`.
struct World {
    folder: TempDir,
    log: EventLog,
}

fn thread_id(thread: &str) -> ThreadId {
    ThreadId::new(thread).unwrap()
}

fn scope(thread: &str, run: &str) -> BlobScope {
    let run_id = (!run.is_empty()).then(|| sample::run_id(run));
    BlobScope { thread_id: thread_id(thread), run_id }
}

fn in_run(run: &str, event: NewEvent) -> NewEvent {
    let run_id = (!run.is_empty()).then(|| sample::run_id(run));
    NewEvent { scope: Scope { run_id, ..Scope::default() }, ..event }
}

/// An event that names blobs.
fn naming(run: &str, blobs: &[BlobRef]) -> NewEvent {
    let metadata = serde_json::json!({ "blobs": blobs });
    let event = NewEvent {
        event_type: "llm.tool.result".to_owned(),
        metadata: Json::parse(&metadata.to_string()).unwrap(),
        ..sample::note(1)
    };
    in_run(run, event)
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = EventLog::open(folder.path(), sample::options()).unwrap();
        for thread in ["t", "u"] {
            let events = ["", "a", "b"].map(|run| in_run(run, sample::note(1))).to_vec();
            log.append(sample::to(&sample::thread(thread), Expected::Any, events)).await.unwrap();
        }
        Self { folder, log }
    }

    /// Writes a blob in pieces of uneven size.
    fn put(&self, thread: &str, run: &str, bytes: &[u8]) -> Kept {
        let mut writer = self.log.write_blob(&scope(thread, run), 0, OverMax::Refuse);
        let mut rest = bytes;
        for piece in (1..).map(|step| step * 7_919 % 90_001) {
            let (now, later) = rest.split_at(rest.len().min(piece));
            writer.write(now);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        writer.finish()
    }

    /// Writes a blob that must be kept.
    fn stage(&self, thread: &str, run: &str, bytes: &[u8]) -> BlobRef {
        self.put(thread, run, bytes).blob.unwrap().unwrap()
    }

    async fn name(&self, thread: &str, run: &str, blobs: &[BlobRef]) {
        let append = sample::to(&sample::thread(thread), Expected::Any, vec![naming(run, blobs)]);
        self.log.append(append).await.unwrap();
    }

    /// Writes a blob, and has an event name it.
    async fn keep(&self, thread: &str, run: &str, bytes: &[u8]) -> BlobRef {
        let blob = self.stage(thread, run, bytes);
        self.name(thread, run, &[blob]).await;
        blob
    }

    fn read(&self, thread: &str, blob: BlobRef) -> Result<Vec<u8>, BlobError> {
        read(&self.log, thread, blob)
    }

    /// Closes the log and opens it again.
    async fn reopened(self, between: impl FnOnce(&Self)) -> Self {
        self.log.clone().close().await;
        between(&self);
        let log = EventLog::open(self.folder.path(), sample::options()).unwrap();
        Self { log, ..self }
    }

    fn place(&self) -> Place {
        Place::in_data(self.folder.path())
    }

    /// Every file below the folder of blobs that is not staged, without keys.
    fn settled(&self) -> Vec<PathBuf> {
        self.files().into_iter().filter(|path| path.extension().is_none()).collect()
    }

    fn files(&self) -> Vec<PathBuf> {
        let (place, mut files) = (self.place(), Vec::new());
        for thread in place.threads().unwrap() {
            for scope in place.scopes(thread).unwrap() {
                let folder = place.scope(thread, scope);
                files.extend(place::names_in(&folder).unwrap().into_iter().map(|name| folder.join(name)));
            }
        }
        files
    }

    fn staged(&self) -> Vec<PathBuf> {
        let folder = self.place().staged_folder();
        place::names_in(&folder).unwrap().into_iter().map(|name| folder.join(name)).collect()
    }
}

fn read(log: &EventLog, thread: &str, blob: BlobRef) -> Result<Vec<u8>, BlobError> {
    let mut reader = log.open_blob(&thread_id(thread), &blob.sha256)?;
    assert_eq!(reader.blob(), blob);
    let mut bytes = Vec::new();
    while let Some(piece) = reader.next_piece()? {
        bytes.extend(piece);
    }
    Ok(bytes)
}

/// Bytes that are no text and no run of the same.
fn noise(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at.wrapping_mul(2_654_435_761) >> 7) as u8).collect()
}

fn flip(path: &std::path::Path, at: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}
