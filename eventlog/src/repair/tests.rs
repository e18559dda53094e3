//! Torn ends are cut after they were shown, and nothing that was acknowledged is.

use std::fs;

use super::*;
use crate::{EventLog, sample};

/// A closed log of five commits, its journal at its real length, and that journal.
async fn filled() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    for number in 1..=6 {
        // Opening again cuts the unused end off the journal.
        let log = EventLog::open(folder.path(), sample::options()).unwrap();
        if number <= 5 {
            sample::add(&log, &sample::thread("t"), [number]).await.unwrap();
        }
        log.close().await;
    }
    let scanned = JournalScan::of(&folder.path().join(ENGINE_FOLDER)).unwrap();
    let path = scanned.journals.last().unwrap().path.clone();
    let bytes = fs::read(&path).unwrap();
    (folder, path, bytes)
}

fn plan(folder: &Path) -> RepairPlan {
    plan_repair(folder, &sample::options()).unwrap()
}

/// Bytes of a batch that was being written when the power went: its beginning, a hole, its end.
fn with_hole(journal: &[u8]) -> Vec<u8> {
    let mut torn = journal[journal.len() - 500..].to_vec();
    torn[..13].copy_from_slice(&[1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    torn[13..60].fill(0);
    [journal, &torn].concat()
}

#[tokio::test]
async fn a_whole_log_needs_no_repair() {
    let (folder, _, _) = filled().await;
    assert_eq!(plan(folder.path()), RepairPlan::Nothing);
}

#[tokio::test]
async fn an_unacknowledged_end_is_shown_and_cut_and_kept() {
    let (folder, path, whole) = filled().await;
    fs::write(&path, with_hole(&whole)).unwrap();
    let RepairPlan::Cut(cut) = plan(folder.path()) else { panic!() };
    let expected = Cut {
        folder: folder.path().to_owned(),
        journal: path.clone(),
        keep_bytes: whole.len() as u64,
        cut_bytes: 500,
        last_position: Some(Position::new(5)),
        noted: Some(Position::new(5)),
    };
    assert_eq!(cut, expected);
    assert_eq!(fs::read(&path).unwrap().len(), whole.len() + 500, "planning changes nothing");
    let kept = apply(&cut, &sample::options()).unwrap();
    assert_eq!(fs::read(kept).unwrap(), with_hole(&whole)[whole.len()..]);
    assert_eq!(plan(folder.path()), RepairPlan::Nothing);
    assert!(matches!(apply(&cut, &sample::options()), Err(RepairError::Changed { .. })));
    let log = EventLog::open(folder.path(), sample::options()).unwrap();
    assert_eq!(sample::add(&log, &sample::thread("t"), [6]).await.unwrap().position(), Position::new(6));
}

#[tokio::test]
async fn acknowledged_events_are_never_cut() {
    let (folder, path, whole) = filled().await;
    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    let RepairPlan::Refused { reason } = plan(folder.path()) else { panic!() };
    assert_eq!(reason, "position 5: the log ends before it, and had durably reached position 5");
    assert!(matches!(
        EventLog::open(folder.path(), sample::options()),
        Err(OpenError::HeadBehind { log, .. }) if log == Position::new(4)
    ));
    assert_eq!(fs::read(&path).unwrap().len(), whole.len() - 3, "what is left stays");
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    fs::write(&path, &damaged).unwrap();
    let RepairPlan::Refused { reason } = plan(folder.path()) else { panic!() };
    assert!(reason.contains("with later commits behind the damage"), "{reason}");
    let error = EventLog::open(folder.path(), sample::options()).err().unwrap();
    assert!(matches!(error, OpenError::JournalDamaged { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), damaged);
}

#[tokio::test]
async fn a_cut_that_costs_events_is_undone() {
    let (folder, path, whole) = filled().await;
    // The plan is made without the head file, and applied when it is there again.
    let head = folder.path().join(WATERMARK_FILE);
    let noted = fs::read(&head).unwrap();
    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    fs::remove_file(&head).unwrap();
    let RepairPlan::Cut(cut) = plan(folder.path()) else { panic!() };
    fs::write(&head, noted).unwrap();
    let cut = Cut { noted: Some(Position::new(5)), ..cut };
    assert!(matches!(apply(&cut, &sample::options()), Err(RepairError::Changed { .. })));
    assert!(matches!(check_repaired(&cut), Err(RepairError::Acknowledged { .. })));
    put_back(&path, cut.keep_bytes, &whole[cut.keep_bytes as usize..]).unwrap();
    assert_eq!(EventLog::open(folder.path(), sample::options()).unwrap().head(), Position::new(5));
}
