//! What is written comes back, once for each thread, and within bounds.

use std::os::unix::fs::MetadataExt;

use aws_lc_rs::digest::{SHA256, digest};
use proptest::prelude::*;

use super::{super::chunk::CHUNK_BYTES, *};

fn sha256(bytes: &[u8]) -> String {
    hex::encode(digest(&SHA256, bytes))
}

#[tokio::test]
async fn blobs_around_the_bounds_of_chunks_come_back() {
    let world = World::new().await;
    for length in [0, 1, 2, 100, 7_919]
        .into_iter()
        .chain([1, 2, 3].into_iter().flat_map(|n| (n * CHUNK_BYTES - 2)..=(n * CHUNK_BYTES + 2)))
    {
        let bytes = noise(length);
        let kept = world.put("t", "a", &bytes);
        let blob = kept.blob.unwrap().unwrap();
        assert_eq!((blob, blob.bytes), (kept.whole, length as u64));
        assert_eq!(blob.sha256.to_string(), sha256(&bytes));
        world.name("t", "a", &[blob]).await;
        assert_eq!(world.read("t", blob).unwrap(), bytes, "{length}");
    }
    assert_eq!(world.staged(), Vec::<PathBuf>::new());
    assert_eq!(world.log.blob_stats().staged, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_range_of_a_blob_is_that_part_of_it(
        length in 0..3 * CHUNK_BYTES, ranges in prop::collection::vec((0_u64..200_000, 0_u64..200_000), 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (bytes, world) = (noise(length), runtime.block_on(World::new()));
        let blob = runtime.block_on(world.keep("t", "a", &bytes));
        prop_assert_eq!(world.read("t", blob).unwrap(), bytes.clone());
        for (start, end) in ranges {
            let mut reader = world.log.open_blob(&thread_id("t"), &blob.sha256).unwrap().only(start..end);
            let expected: Vec<u8> =
                bytes.iter().copied().skip(start as usize).take(end.saturating_sub(start) as usize).collect();
            prop_assert_eq!(reader.remaining(), expected.len() as u64);
            let mut read = Vec::new();
            while let Some(piece) = reader.next_piece().unwrap() {
                prop_assert!(!piece.is_empty() && piece.len() <= CHUNK_BYTES);
                read.extend(piece);
            }
            prop_assert_eq!(read, expected);
        }
    }
}

#[tokio::test]
async fn the_same_bytes_are_stored_once_within_a_thread() {
    let world = World::new().await;
    let bytes = noise(100_000);
    let blob = world.keep("t", "a", &bytes).await;
    assert_eq!(world.keep("t", "a", &bytes).await, blob);
    assert_eq!(world.stage("t", "a", &bytes), blob);
    assert_eq!((world.settled().len(), world.staged().len()), (1, 0));
    // Twice before an event names it.
    let other = world.stage("t", "a", b"another");
    assert_eq!(world.stage("t", "a", b"another"), other);
    assert_eq!(world.staged().len(), 1);
    world.name("t", "a", &[other]).await;
    // In another run, and in none: the same file, with keys of their own.
    for run in ["b", ""] {
        world.keep("t", run, &bytes).await;
    }
    let large = |path: &PathBuf| fs::metadata(path).unwrap().len() > 50_000;
    let files: Vec<_> = world.settled().into_iter().filter(large).collect();
    let inodes: std::collections::BTreeSet<_> =
        files.iter().map(|path| fs::metadata(path).unwrap().ino()).collect();
    assert_eq!((files.len(), inodes.len()), (3, 1));
    assert_eq!(world.read("t", blob).unwrap(), bytes);
    assert_eq!(world.log.blob_stats().written, 2);
    assert_eq!(world.log.blob_stats().found, 5);
}

#[tokio::test]
async fn across_threads_nothing_is_shared_or_alike() {
    let world = World::new().await;
    let bytes = noise(1_000);
    let blob = world.keep("t", "a", &bytes).await;
    assert!(matches!(world.read("u", blob), Err(BlobError::NotFound { .. })));
    world.keep("u", "a", &bytes).await;
    let files = world.settled();
    let names: std::collections::BTreeSet<_> = files.iter().filter_map(|path| path.file_name()).collect();
    assert_eq!((files.len(), names.len()), (2, 2));
    let contents: Vec<_> = files.iter().map(|path| fs::read(path).unwrap()).collect();
    assert_ne!(contents[0], contents[1]);
    for content in &contents {
        assert!(!content.windows(16).any(|window| window == &bytes[..16]));
    }
    let text = blob.sha256.to_string();
    assert!(!files.iter().any(|path| path.to_string_lossy().contains(&text[..16])));
}

#[tokio::test]
async fn what_is_too_large_is_refused_or_cut() {
    let world = World::new().await;
    let bytes = noise(700_000);
    let write = |over_max| {
        let mut writer = world.log.write_blob(&scope("t", "a"), 0, over_max).at_most(100_000);
        bytes.chunks(30_000).for_each(|piece| writer.write(piece));
        writer
    };
    let refused = write(OverMax::Refuse);
    assert!(matches!(refused.failure(), Some(BlobError::TooLarge)));
    assert_eq!(world.staged(), Vec::<PathBuf>::new());
    assert!(matches!(refused.finish().blob, Err(BlobError::TooLarge)));
    let kept = write(OverMax::KeepBeginning).finish();
    assert_eq!((kept.whole.bytes, kept.whole.sha256.to_string()), (700_000, sha256(&bytes)));
    let blob = kept.blob.unwrap().unwrap();
    assert_eq!((blob.bytes, blob.sha256.to_string()), (100_000, sha256(&bytes[..100_000])));
    world.name("t", "a", &[blob]).await;
    assert_eq!(world.read("t", blob).unwrap(), bytes[..100_000]);
    // At exactly the limit nothing is cut.
    let mut exact = world.log.write_blob(&scope("t", "a"), 0, OverMax::Refuse).at_most(700_000);
    exact.write(&bytes);
    assert_eq!(exact.finish().blob.unwrap().unwrap().bytes, 700_000);
}

#[tokio::test]
async fn a_few_bytes_are_digested_and_not_kept() {
    let world = World::new().await;
    for (length, is_kept) in [(0, false), (99, false), (100, true)] {
        let mut writer = world.log.write_blob(&scope("t", "a"), 100, OverMax::Refuse);
        writer.write(&noise(length));
        let kept = writer.finish();
        assert_eq!(kept.whole.sha256.to_string(), sha256(&noise(length)));
        assert_eq!(kept.blob.unwrap().is_some(), is_kept, "{length}");
    }
}

#[tokio::test]
async fn a_log_in_memory_keeps_nothing_and_digests_all() {
    let log = sample::memory_log();
    let mut writer = log.write_blob(&scope("t", "a"), 0, OverMax::Refuse);
    writer.write(b"abc");
    let kept = writer.finish();
    assert_eq!(kept.whole.sha256.to_string(), sha256(b"abc"));
    assert!(matches!(kept.blob, Err(BlobError::NoFolder)));
    assert!(matches!(log.open_blob(&thread_id("t"), &kept.whole.sha256), Err(BlobError::NoFolder)));
}

#[tokio::test]
async fn what_has_no_key_yet_keeps_nothing() {
    let world = World::new().await;
    for (thread, run) in [("t", "unknown"), ("unknown", "a"), ("unknown", "")] {
        let refused = world.put(thread, run, b"bytes").blob;
        assert!(matches!(refused, Err(BlobError::NoKey { .. })), "{thread} {run}: {refused:?}");
    }
    assert_eq!(world.staged(), Vec::<PathBuf>::new());
}

// Field report 102: what is masked in an event is masked in a blob.
#[tokio::test]
async fn secrets_are_masked_before_they_are_digested_and_written() {
    let world = World::new().await;
    let text = "start\npassword=hunter2hunter2\n".to_owned() + &"a line of text\n".repeat(40_000);
    let kept = world.put("t", "a", text.as_bytes());
    let blob = kept.blob.unwrap().unwrap();
    world.name("t", "a", &[blob]).await;
    let read = String::from_utf8(world.read("t", blob).unwrap()).unwrap();
    assert!(
        !read.contains("hunter2") && read.contains("password=[redacted:password:sha256="),
        "{}",
        &read[..99]
    );
    assert_eq!((kept.whole, blob.sha256.to_string()), (blob, sha256(read.as_bytes())));
    assert!(read.ends_with("a line of text\n"));
}

#[tokio::test]
async fn a_writer_that_is_dropped_leaves_nothing() {
    let world = World::new().await;
    let mut writer = world.log.write_blob(&scope("t", "a"), 0, OverMax::Refuse);
    writer.write(&noise(500_000));
    assert_eq!(world.staged().len(), 1);
    drop(writer);
    assert_eq!(world.staged(), Vec::<PathBuf>::new());
}
