//! Torn ends are cut after they were shown, and nothing that was acknowledged is.

use std::fs;

use super::*;
use crate::{EventLog, sample};

/// A closed log of five commits, the segment that they are in, and its written bytes.
async fn filled() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let log = EventLog::open(folder.path(), sample::options()).unwrap();
    for number in 1..=5 {
        sample::add(&log, &sample::thread("t"), [number]).await.unwrap();
    }
    log.close().await;
    let path = folder.path().join("log/segments/0000000000000000.seg");
    let bytes = fs::read(&path).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    (folder, path, bytes[..end].to_vec())
}

/// Writes the beginning of a segment, and zeros behind it.
fn lay_out(path: &Path, bytes: &[u8]) {
    let mut segment = vec![0; 1024 * 1024];
    segment[..bytes.len()].copy_from_slice(bytes);
    fs::write(path, segment).unwrap();
}

fn plan(folder: &Path) -> RepairPlan {
    plan_repair(folder, &sample::options()).unwrap()
}

/// Bytes of a commit that was being written when the power went: its beginning, a hole, its end.
fn with_hole(record: &[u8]) -> Vec<u8> {
    let mut torn = record[record.len() - 300..].to_vec();
    torn[..8].copy_from_slice(b"RMTFRAME");
    torn[13..60].fill(0);
    [record, &torn].concat()
}

#[tokio::test]
async fn a_whole_log_needs_no_repair() {
    let (folder, _, _) = filled().await;
    assert_eq!(plan(folder.path()), RepairPlan::Nothing);
}

#[tokio::test]
async fn an_unacknowledged_end_is_shown_and_cut_and_kept() {
    let (folder, path, whole) = filled().await;
    lay_out(&path, &with_hole(&whole));
    let RepairPlan::Cut(cut) = plan(folder.path()) else { panic!() };
    let expected = Cut {
        folder: folder.path().to_owned(),
        segment: path.clone(),
        keep_bytes: whole.len() as u64,
        cut_bytes: 300,
        last_position: Position::new(5),
        noted: Some(Position::new(5)),
    };
    assert_eq!(cut, expected);
    let torn = with_hole(&whole);
    assert_eq!(fs::read(&path).unwrap()[..torn.len()], torn, "planning changes nothing");
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
    lay_out(&path, &whole[..whole.len() - 3]);
    let RepairPlan::Refused { reason } = plan(folder.path()) else { panic!() };
    assert_eq!(reason, "position 5: the log ends before it, and had durably reached position 5");
    assert!(matches!(
        EventLog::open(folder.path(), sample::options()),
        Err(OpenError::HeadBehind { log, .. }) if log == Position::new(4)
    ));
    assert_eq!(fs::read(&path).unwrap()[..whole.len() - 3], whole[..whole.len() - 3], "what is left stays");
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    lay_out(&path, &damaged);
    let RepairPlan::Refused { reason } = plan(folder.path()) else { panic!() };
    assert!(reason.starts_with("position 3: the segment "), "{reason}");
    let error = EventLog::open(folder.path(), sample::options()).err().unwrap();
    assert!(matches!(error, OpenError::SegmentDamaged { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap()[..damaged.len()], damaged);
    let refused = rebuild_index(folder.path(), &sample::options()).unwrap_err();
    assert!(matches!(refused, RepairError::RecordDamaged { .. }), "{refused}");
}

#[tokio::test]
async fn a_plan_that_no_longer_holds_is_not_applied() {
    let (folder, path, whole) = filled().await;
    // The plan is made without the head file, and applied when it is there again.
    let head = folder.path().join("head");
    let noted = fs::read(&head).unwrap();
    lay_out(&path, &whole[..whole.len() - 3]);
    fs::remove_file(&head).unwrap();
    let RepairPlan::Cut(cut) = plan(folder.path()) else { panic!() };
    fs::write(&head, noted).unwrap();
    assert!(matches!(apply(&cut, &sample::options()), Err(RepairError::Changed { .. })));
    lay_out(&path, &whole);
    assert_eq!(EventLog::open(folder.path(), sample::options()).unwrap().head(), Position::new(5));
}

#[tokio::test]
async fn an_index_is_made_anew() {
    let (folder, _, _) = filled().await;
    assert_eq!(rebuild_index(folder.path(), &sample::options()).unwrap(), Position::new(5));
    let log = EventLog::open(folder.path(), sample::options()).unwrap();
    assert_eq!(log.read_stream(&sample::thread("t"), crate::Seq::ZERO, 9).unwrap().len(), 5);
    assert!(log.verify(crate::VerifyRequest::default()).unwrap().is_whole());
}
