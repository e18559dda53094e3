//! Nothing that was changed is given out as if it had not been.

use super::{super::chunk::CHUNK_BYTES, *};

/// Reads the blob, after its file was changed, and changes it back.
#[track_caller]
fn check_noticed(world: &World, blob: BlobRef, what: &str, change: impl FnOnce(&std::path::Path)) {
    let path = &world.settled()[0];
    let before = fs::read(path).unwrap();
    change(path);
    let read = world.read("t", blob);
    assert!(matches!(read, Err(BlobError::Damaged { .. })), "{what}: {read:?}");
    fs::write(path, before).unwrap();
}

#[tokio::test]
async fn every_byte_that_is_changed_and_every_cut_is_noticed() {
    let world = World::new().await;
    let blob = world.keep("t", "a", b"\xffthe small blob").await;
    let length = fs::metadata(&world.settled()[0]).unwrap().len();
    for at in 0..length {
        check_noticed(&world, blob, &format!("flip at {at}"), |path| flip(path, at));
        check_noticed(&world, blob, &format!("cut at {at}"), |path| {
            fs::OpenOptions::new().write(true).open(path).unwrap().set_len(at).unwrap();
        });
    }
    check_noticed(&world, blob, "a byte more", |path| {
        let longer = [fs::read(path).unwrap(), vec![0]].concat();
        fs::write(path, longer).unwrap();
    });
    assert_eq!(world.read("t", blob).unwrap(), b"\xffthe small blob");
}

#[tokio::test]
async fn chunks_cannot_be_swapped_repeated_or_left_out() {
    let world = World::new().await;
    let blob = world.keep("t", "a", &noise(3 * CHUNK_BYTES)).await;
    let whole = fs::read(&world.settled()[0]).unwrap();
    let (header, chunks) = whole.split_at(super::super::header::HEADER_BYTES);
    let chunks: Vec<_> = chunks.chunks(CHUNK_BYTES + 16).collect();
    assert_eq!(chunks.len(), 3);
    for order in [vec![1, 0, 2], vec![0, 2, 1], vec![0, 0, 2], vec![0, 1], vec![0, 1, 2, 2], vec![2]] {
        let parts: Vec<&[u8]> = std::iter::once(header).chain(order.iter().map(|at| chunks[*at])).collect();
        check_noticed(&world, blob, &format!("{order:?}"), |path| fs::write(path, parts.concat()).unwrap());
    }
    // A part of the blob that does not touch the damage is proven all the same.
    let path = world.settled()[0].clone();
    flip(&path, (header.len() + 10) as u64);
    let read = |range| {
        let mut reader = world.log.open_blob(&thread_id("t"), &blob.sha256).unwrap().only(range);
        reader.next_piece()
    };
    assert!(matches!(read(0..1), Err(BlobError::Damaged { .. })));
    let second = CHUNK_BYTES as u64..CHUNK_BYTES as u64 + 5;
    assert_eq!(read(second).unwrap().unwrap(), noise(3 * CHUNK_BYTES)[CHUNK_BYTES..CHUNK_BYTES + 5]);
}

#[tokio::test]
async fn a_blob_in_the_place_of_another_is_noticed() {
    let world = World::new().await;
    let one = world.keep("t", "a", b"the first blob").await;
    let one_path = world.settled()[0].clone();
    let other = world.keep("t", "a", b"the other blob").await;
    let other_path = world.settled().into_iter().find(|path| *path != one_path).unwrap();
    fs::copy(&one_path, &other_path).unwrap();
    assert!(matches!(world.read("t", other), Err(BlobError::Damaged { .. })));
    assert_eq!(world.read("t", one).unwrap(), b"the first blob");
}

#[tokio::test]
async fn a_damaged_blob_is_written_anew() {
    let world = World::new().await;
    let blob = world.keep("t", "a", b"the bytes").await;
    let path = world.settled()[0].clone();
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(7).unwrap();
    assert!(matches!(world.read("t", blob), Err(BlobError::Damaged { .. })));
    assert_eq!(world.keep("t", "a", b"the bytes").await, blob);
    assert_eq!(world.read("t", blob).unwrap(), b"the bytes");
    assert_eq!(world.staged(), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_missing_blob_is_damage_where_an_event_names_it() {
    let world = World::new().await;
    let blob = world.keep("t", "a", b"the bytes").await;
    fs::remove_file(&world.settled()[0]).unwrap();
    let missing = world.read("t", blob).unwrap_err();
    assert!(matches!(missing, BlobError::Missing { .. }) && crate::is_damage(&missing), "{missing}");
    let other = BlobRef { sha256: BlobDigest([7; 32]), ..blob };
    for (thread, blob) in [("t", other), ("u", blob), ("unknown", blob)] {
        let unknown = world.read(thread, blob).unwrap_err();
        assert!(matches!(unknown, BlobError::NotFound { .. }) && !crate::is_damage(&unknown), "{unknown}");
    }
}
