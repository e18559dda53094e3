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
    /// Puts the folder back, with something else in one file.
    fn lay_out(&self, changed: &Path, content: &[u8]) {
        fs::remove_dir_all(self.folder.path()).unwrap();
        for (path, bytes) in &self.files {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, if path == changed { content } else { bytes }).unwrap();
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
        self.lay_out(&self.journal, journal);
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

impl Case {
    /// Opens with another head file or key file, and says whether everything can be read. What can be
    /// read is what was recorded; what cannot is refused, and not said to be gone.
    fn check_beside(&self, name: &str, content: &[u8], what: &str) -> bool {
        let path = self.folder.path().join(name);
        self.lay_out(&path, content);
        let Ok(log) = EventLog::open(self.folder.path(), sample::options()) else {
            assert_eq!(fs::read(&path).unwrap(), content, "{what}: a refused file was changed");
            return false;
        };
        match log.read_all(Position::ZERO, 9) {
            Ok(events) => assert_eq!(events, self.events, "{what}"),
            Err(_) => return false,
        }
        true
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

/// What a journal that was made at its full length has behind its last batch.
const UNUSED_BYTES: usize = 4_096;

#[tokio::test]
async fn no_journal_of_which_the_end_is_zeros_loses_an_acknowledged_event_silently() {
    let case = filled().await;
    let zeroed = |end: usize| {
        let mut journal = case.files[&case.journal].clone();
        let length = journal.len();
        journal[end..].fill(0);
        journal.resize(length + UNUSED_BYTES, 0);
        journal
    };
    let length = case.files[&case.journal].len();
    assert!(!case.check(&zeroed(length), "nothing changed"));
    let refused = refused(length, |case, end| case.check(&zeroed(end), &format!("zeros from {end} on")));
    assert_eq!(refused, length);
}

/// The places of a file that are changed in turn: all that are used, and some of the others.
fn places(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len()).filter(|at| bytes[*at] != 0 || at % 211 == 0).collect()
}

#[tokio::test]
async fn no_damage_beside_the_journal_is_taken_for_an_erasure_or_an_end() {
    let case = filled().await;
    // The newer of two notes is damaged, and the older one holds; or a key, and its events are refused.
    for (name, least_read, least_refused) in [("head", 100, 0), ("keys/threads", 300, 200)] {
        let content = |case: &Case| case.files[&case.folder.path().join(name)].clone();
        let bytes = content(&case);
        let places = places(&bytes);
        let unread = refused(places.len(), |case, index| {
            let at = places[index];
            let mut changed = content(case);
            changed[at] ^= 1 << (at % 8);
            !case.check_beside(name, &changed, &format!("byte {at} of {name} changed"))
        });
        let read = places.len() - unread;
        println!("{name}: {read} of {} read", places.len());
        assert!(read >= least_read && unread >= least_refused, "{name}: {read} read, {unread} refused");
        let cuts: Vec<usize> =
            (0..bytes.len()).filter(|end| end % 509 < 2 || *end < 200 && end % 7 == 0).collect();
        refused(cuts.len(), |case, index| {
            !case.check_beside(name, &content(case)[..cuts[index]], &format!("{name} cut at {}", cuts[index]))
        });
    }
}
