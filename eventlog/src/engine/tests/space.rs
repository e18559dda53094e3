//! Space under keys that are written again and again.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::{Duration, Instant},
};

use crate::engine::{Access, Batch, Durability, Engine, Keyspace};

const ROWS: Keyspace = Keyspace { name: "rows", access: Access::Scanned };
const CHECKPOINTS: Keyspace = Keyspace { name: "checkpoints", access: Access::Pointed };
/// Field report 78: so many rows are updated so many times.
const KEYS: u64 = 1_000;
const UPDATES: u64 = 1_000_000;
const ROW_BYTES: usize = 500;
const ROWS_PER_COMMIT: u64 = 500;
/// A journal has this length from the start.
const JOURNAL_BYTES: u64 = 64 * 1024 * 1024;
/// How long the engine may take to remove files that it no longer counts.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// How often the folder is measured.
const MEASURES: u64 = 20;
/// Journals up to their limit, and tables that wait to be merged.
const BYTES_MAX: u64 = 320 * 1024 * 1024;

/// What the files of a folder take up on the disk.
fn allocated(folder: &Path) -> u64 {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        // The engine removes files while they are counted.
        let Ok(about) = fs::metadata(&path) else { continue };
        bytes += if about.is_dir() { allocated(&path) } else { about.blocks() * 512 };
    }
    bytes
}

/// A row that nothing can be saved of.
fn row(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; ROW_BYTES];
    blake3::Hasher::new().update(&number.to_be_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// The figure that operators see counts the whole length of a journal that is begun.
fn follows((bytes, counted): (u64, u64)) -> bool {
    counted.abs_diff(bytes) <= JOURNAL_BYTES
}

/// What is allocated, and what the engine counts. It may be removing files, so that the two are taken
/// again until they are of one moment.
fn measure(folder: &Path, engine: &Engine) -> (u64, u64) {
    let until = Instant::now() + WAIT_MAX;
    loop {
        let measured = (allocated(folder), engine.disk_bytes().unwrap());
        if follows(measured) || Instant::now() > until {
            return measured;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_million_updates_of_a_thousand_rows_take_no_more_space_than_the_first_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(&folder.path().join("rows"), &[ROWS, CHECKPOINTS]).unwrap();
    let mut measures = Vec::new();
    for commit in 0..UPDATES / ROWS_PER_COMMIT {
        let mut batch = Batch::new();
        for update in commit * ROWS_PER_COMMIT..(commit + 1) * ROWS_PER_COMMIT {
            batch.put(ROWS, (update % KEYS).to_be_bytes(), row(update));
        }
        batch.put(CHECKPOINTS, *b"checkpoint", commit.to_be_bytes());
        engine.commit(batch, Durability::Buffered).unwrap();
        if (commit + 1) % (UPDATES / ROWS_PER_COMMIT / MEASURES) == 0 {
            measures.push(measure(folder.path(), &engine));
        }
    }
    println!("on disk, and as the engine counts it: {measures:?}");
    // Space goes up and down with the engine's own work, which may lag: a folder that only grows has never
    // as little in its second half as it once had in its first.
    let bytes: Vec<u64> = measures.iter().map(|(bytes, _)| *bytes).collect();
    let (early, late) = bytes.split_at(bytes.len() / 2);
    assert!(late.iter().min() < early.iter().max(), "the folder grows: {measures:?}");
    assert!(bytes.iter().all(|bytes| *bytes < BYTES_MAX), "{measures:?}");
    assert!(measures.iter().all(|measured| follows(*measured)), "{measures:?}");
    for key in 0..KEYS {
        let last = UPDATES - KEYS + key;
        assert_eq!(engine.get(ROWS, &key.to_be_bytes()).unwrap(), Some(row(last)));
    }
    // Everything is still there after a start, which makes room.
    drop(engine);
    let engine = Engine::open(&folder.path().join("rows"), &[ROWS, CHECKPOINTS]).unwrap();
    assert_eq!(engine.get(ROWS, &7_u64.to_be_bytes()).unwrap(), Some(row(UPDATES - KEYS + 7)));
}
