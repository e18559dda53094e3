//! Every byte of a journal changed in turn, and the journal cut at every length: the log opens with
//! all that was acknowledged, or says that it does not.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::{EventLog, Expected, Position, RecordedEvent, Scope, VerifyRequest, sample};

/// In memory where the system has such a folder: thousands of openings would wait for a disk.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Every file of a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    files
}

struct Case {
    folder: tempfile::TempDir,
    files: BTreeMap<PathBuf, Vec<u8>>,
    journal: PathBuf,
    events: Vec<RecordedEvent>,
}

/// A closed log of three acknowledged commits, the second of two events with run and task.
async fn filled() -> Case {
    let folder = folder();
    let open = || EventLog::open(folder.path(), sample::options()).unwrap();
    let log = open();
    sample::add(&log, &sample::thread("t"), [1]).await.unwrap();
    let mut event = sample::note(2);
    event.scope =
        Scope { run_id: Some(sample::run_id("r")), task_id: Some(sample::task_id("c")), delegation_id: None };
    let append = sample::to(&sample::thread("t"), Expected::Any, vec![event.clone(), event]);
    log.append(append).await.unwrap();
    sample::add(&log, &sample::thread("t"), [3]).await.unwrap();
    log.close().await;
    // Opening again cuts the unused end off the journal.
    let log = open();
    let events = log.read_all(Position::ZERO, 9).unwrap();
    log.close().await;
    let files = files(folder.path());
    let is_journal = |path: &&PathBuf| path.extension().is_some_and(|end| end == "jnl");
    let journal = files.keys().filter(is_journal).max().unwrap().clone();
    Case { folder, files, journal, events }
}

impl Case {
    /// Puts the folder back, with another journal.
    fn lay_out(&self, journal: &[u8]) {
        fs::remove_dir_all(self.folder.path()).unwrap();
        for (path, bytes) in &self.files {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, if *path == self.journal { journal } else { bytes }).unwrap();
        }
    }

    /// What is left of the journal, with a torn end that was copied before the engine cut it.
    fn left(&self) -> Vec<u8> {
        let mut bytes = fs::read(&self.journal).unwrap();
        let is_copy = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("torn-");
        let copies = files(self.folder.path()).into_iter().filter(|(path, _)| is_copy(path));
        bytes.extend(copies.flat_map(|(_, bytes)| bytes));
        trimmed(&bytes).to_vec()
    }

    /// Opens, and says whether that was refused. What opens must have everything.
    fn check(&self, journal: &[u8], what: &str) -> bool {
        self.lay_out(journal);
        match EventLog::open(self.folder.path(), sample::options()) {
            Err(_) => {
                assert_eq!(self.left(), trimmed(journal), "{what}: a refused journal was changed");
                true
            }
            Ok(log) => {
                assert_eq!(log.read_all(Position::ZERO, 9).unwrap(), self.events, "{what}");
                assert_eq!(log.verify(VerifyRequest::default()).unwrap().damage, None, "{what}");
                false
            }
        }
    }
}

/// Without the zeros at the end, which say nothing in a journal.
fn trimmed(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &bytes[..end]
}

/// Runs the cases on all cores, each on a folder of its own, and counts what was refused.
fn refused(count: usize, check: impl Fn(&Case, usize) -> bool + Sync) -> usize {
    let (next, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                let case = runtime.block_on(filled());
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        break;
                    }
                    refused.fetch_add(usize::from(check(&case, index)), Ordering::Relaxed);
                }
            });
        }
    });
    refused.into_inner()
}

#[tokio::test]
async fn no_changed_byte_of_a_journal_loses_an_acknowledged_event_silently() {
    let case = filled().await;
    let length = case.files[&case.journal].len();
    let refused = refused(length, |case, at| {
        let mut journal = case.files[&case.journal].clone();
        // Each byte in one of eight ways, so that each bit of each field has its turn.
        journal[at] ^= 1 << (at % 8);
        case.check(&journal, &format!("byte {at} changed"))
    });
    // A changed seqno that stays in order is no harm; everything else is refused.
    assert!(refused > length * 9 / 10, "{refused} of {length} were refused");
}

#[tokio::test]
async fn no_cut_of_a_journal_loses_an_acknowledged_event_silently() {
    let case = filled().await;
    let length = case.files[&case.journal].len();
    assert!(!case.check(&case.files[&case.journal], "nothing changed"));
    let refused = refused(length, |case, end| {
        let journal = &case.files[&case.journal][..end];
        case.check(journal, &format!("cut at {end}"))
    });
    assert_eq!(refused, length);
}
