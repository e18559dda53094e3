//! What is wrong with a folder is found without opening it, and nothing in it is changed.

use std::fs;

use super::*;
use crate::{EventLog, MasterKey, SecretKey, format, open::WATERMARK_FILE, sample};

/// A closed log of five commits.
async fn filled() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let log = EventLog::open(folder.path(), sample::options()).unwrap();
    for number in 1..=5 {
        sample::add(&log, &sample::thread("t"), [number]).await.unwrap();
    }
    log.close().await;
    folder
}

fn look(folder: &Path) -> Result<Inspection, OpenError> {
    inspect(folder, &sample::options())
}

#[tokio::test]
async fn a_whole_folder_is_described() {
    let folder = filled().await;
    let five = Some(Position::new(5));
    let found = look(folder.path()).unwrap();
    assert_eq!((found.format_version, found.head, found.noted), (Some(3), five, five));
    assert!(found.disk_bytes > 0 && free_bytes(folder.path()).unwrap() > 0);
    fs::remove_file(folder.path().join(WATERMARK_FILE)).unwrap();
    assert_eq!(look(folder.path()).unwrap().noted, None);
    assert!(!folder.path().join(WATERMARK_FILE).exists(), "looking makes nothing");
}

#[tokio::test]
async fn each_trouble_has_its_error() {
    let check = async |damage: &dyn Fn(&Path), is_expected: fn(&OpenError) -> bool| {
        let folder = filled().await;
        damage(folder.path());
        let error = look(folder.path()).unwrap_err();
        assert!(is_expected(&error), "{error}");
    };
    let head = |folder: &Path, bytes: &[u8]| fs::write(folder.join(WATERMARK_FILE), bytes).unwrap();
    check(&|folder| head(folder, &[7; 1_024]), |error| matches!(error, OpenError::WatermarkDamaged { .. }))
        .await;
    let keys_file = |folder: &Path, name: &str| folder.join("keys").join(name);
    check(&|folder| fs::remove_file(keys_file(folder, "threads")).unwrap(), |error| {
        matches!(error, OpenError::KeysLost { .. })
    })
    .await;
    check(&|folder| fs::remove_file(keys_file(folder, "master.key")).unwrap(), |error| {
        matches!(error, OpenError::MasterKeyLost { .. })
    })
    .await;
    check(&|folder| format::write_version(&folder.join("log"), 9).unwrap(), |error| {
        matches!(error, OpenError::Format { .. })
    })
    .await;
    check(&|folder| fs::write(folder.join("log/version"), "remit").unwrap(), |error| {
        matches!(error, OpenError::Format { .. })
    })
    .await;
    check(
        &|folder| {
            fs::remove_dir_all(folder.join("log")).unwrap();
            fs::remove_file(folder.join(WATERMARK_FILE)).unwrap();
        },
        |error| matches!(error, OpenError::RecordLost { .. }),
    )
    .await;
    let folder = filled().await;
    let wrong =
        Options { master_key: MasterKey::given(SecretKey::new([1; 32]), "a test"), ..sample::options() };
    let error = inspect(folder.path(), &wrong).unwrap_err();
    assert!(matches!(error, OpenError::MasterKeyWrong { .. }), "{error}");
    let log = EventLog::open(folder.path(), sample::options()).unwrap();
    assert!(matches!(look(folder.path()), Err(OpenError::Held { .. })));
    drop(log);
}

#[tokio::test]
async fn a_torn_end_is_left_alone_and_a_lost_one_is_named() {
    let folder = filled().await;
    let path = folder.path().join("log/segments/0000000000000000.seg");
    let whole = fs::read(&path).unwrap();
    let end = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    // The beginning of a commit that was never acknowledged.
    let mut torn = whole.clone();
    torn[end..end + 10].copy_from_slice(b"RMTFRAME\0\x01");
    fs::write(&path, &torn).unwrap();
    let found = look(folder.path()).unwrap();
    assert_eq!((found.head, found.noted), (None, Some(Position::new(5))));
    assert_eq!(fs::read(&path).unwrap(), torn, "looking cuts nothing");
    let mut lost = whole.clone();
    lost[end - 3..end].fill(0);
    fs::write(&path, &lost).unwrap();
    let error = look(folder.path()).unwrap_err();
    assert!(matches!(error, OpenError::HeadBehind { log, .. } if log == Position::new(4)), "{error}");
    let mut damaged = whole.clone();
    damaged[end / 2] ^= 1;
    fs::write(&path, &damaged).unwrap();
    assert!(matches!(look(folder.path()), Err(OpenError::SegmentDamaged { .. })));
    assert_eq!(fs::read(&path).unwrap(), damaged);
}
