//! Every byte of a segment changed in turn, and the segment cut at every length: the log opens with
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
    segment: PathBuf,
    events: Vec<RecordedEvent>,
}

/// A closed log of three acknowledged commits, the second of two events with run and task.
async fn filled() -> Case {
    let folder = folder();
    let log = EventLog::open(folder.path(), sample::options()).unwrap();
    sample::add(&log, &sample::thread("t"), [1]).await.unwrap();
    let mut event = sample::note(2);
    event.scope =
        Scope { run_id: Some(sample::run_id("r")), task_id: Some(sample::task_id("c")), delegation_id: None };
    let append = sample::to(&sample::thread("t"), Expected::Any, vec![event.clone(), event]);
    log.append(append).await.unwrap();
    sample::add(&log, &sample::thread("t"), [3]).await.unwrap();
    let events = log.read_all(Position::ZERO, 9).unwrap();
    log.close().await;
    let segment = folder.path().join("log/segments").join(format!("{:016x}.seg", 0));
    // The zeros behind the record are the same whatever they are: a few are enough, and quicker.
    let bytes = fs::read(&segment).unwrap();
    let short = trimmed(&bytes).len() + 100;
    fs::write(&segment, &bytes[..short]).unwrap();
    let files = files(folder.path());
    Case { folder, files, segment, events }
}

impl Case {
    /// Puts the folder back, with another segment.
    fn lay_out(&self, segment: &[u8]) {
        fs::remove_dir_all(self.folder.path()).unwrap();
        for (path, bytes) in &self.files {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, if *path == self.segment { segment } else { bytes }).unwrap();
        }
    }

    /// Opens, and says whether that was refused. What opens must have everything.
    fn check(&self, segment: &[u8], what: &str) -> bool {
        self.lay_out(segment);
        match EventLog::open(self.folder.path(), sample::options()) {
            Err(_) => {
                assert_eq!(
                    fs::read(&self.segment).unwrap(),
                    segment,
                    "{what}: a refused segment was changed"
                );
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

/// Without the zeros at the end, which say nothing in a segment.
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
async fn no_changed_byte_of_a_segment_loses_an_acknowledged_event_silently() {
    let case = filled().await;
    let length = case.files[&case.segment].len();
    let refused = refused(length, |case, at| {
        let mut segment = case.files[&case.segment].clone();
        // Each byte in one of eight ways, so that each bit of each field has its turn.
        segment[at] ^= 1 << (at % 8);
        case.check(&segment, &format!("byte {at} changed"))
    });
    // A byte behind the end is a torn commit that nobody was told of: it is dropped.
    assert_eq!(refused, length - 100, "of {length}");
}

#[tokio::test]
async fn no_cut_of_a_segment_loses_an_acknowledged_event_silently() {
    let case = filled().await;
    let length = case.files[&case.segment].len();
    assert!(!case.check(&case.files[&case.segment], "nothing changed"));
    let refused = refused(length, |case, end| {
        let segment = &case.files[&case.segment][..end];
        case.check(segment, &format!("cut at {end}"))
    });
    // Zeros that are cut off behind the end are no loss.
    assert_eq!(refused, length - 100, "of {length}");
}
