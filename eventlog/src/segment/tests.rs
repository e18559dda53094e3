//! Frames, segments, and what is found of them after a crash at any byte.

use std::{fs, os::unix::fs::FileExt, path::PathBuf};

use jiff::Timestamp;
use proptest::prelude::*;

use super::{
    frame::{Frame, FrameKey, Header},
    survey::{Ending, Fit, survey},
    *,
};
use crate::{
    chain::{self, Hash},
    keys::location::Location,
    store::{Commit, Head, KeyUse},
};

/// A record as far as segments know: some bytes, and a hash at the end.
fn record(number: u64, length: usize) -> Vec<u8> {
    let byte = u8::try_from(number % 200).unwrap() + 1;
    [vec![byte; length], blake3::hash(&number.to_be_bytes()).as_bytes().to_vec()].concat()
}

/// Writes commits, and knows what they were.
struct Written {
    appender: Appender,
    segments: Segments,
    head: Head,
    /// Every record and where it is.
    records: Vec<(Location, Vec<u8>)>,
}

impl Written {
    fn new(segments: Segments, end: u64, head: Head) -> Self {
        let appender = Appender::new(segments.clone(), end).unwrap();
        Self { appender, segments, head, records: Vec::new() }
    }

    fn on_disk(folder: &Path) -> Self {
        Self::new(Segments::open(folder).unwrap(), 0, Head::EMPTY)
    }

    fn commit(&mut self, lengths: &[usize]) -> u64 {
        let (mut bytes, mut chain, first) = (Vec::new(), self.head.chain, self.head.position.next());
        frame::begin(&mut bytes);
        let mut offsets = Vec::new();
        for (number, length) in (first.get()..).zip(lengths) {
            let record = record(number, *length);
            chain = fold(chain, &record);
            offsets.push((bytes.len() as u64 + 4, record.clone()));
            frame::put_record(&mut bytes, &record);
        }
        let position = Position::new(self.head.position.get() + lengths.len() as u64);
        let commit = Commit { first, last: position, chain, committed_at: Timestamp::UNIX_EPOCH };
        let address = self.appender.place(bytes.len()).unwrap();
        assert!(frame::finish(&mut bytes, address, &commit, 0));
        self.appender.append(&bytes).unwrap();
        self.head = Head { position, chain };
        self.records.extend(offsets.into_iter().map(|(offset, record)| {
            let length = u32::try_from(record.len()).unwrap();
            (Location { address: address + offset, length }, record)
        }));
        address
    }

    fn check(&self, segments: &Segments) {
        let found = survey(segments, Some(self.head)).unwrap();
        assert_eq!((found.head, found.ending, found.noted), (self.head, Ending::Clean, Fit::Passed));
        let mut walk = Walk::new(segments.clone(), 0, Some(Position::new(1)));
        let mut read = Vec::new();
        while let Some(frame) = walk.next().unwrap() {
            read.extend(frame.records().map(|(_, record)| record.to_vec()));
        }
        let expected: Vec<_> = self.records.iter().map(|(_, record)| record.clone()).collect();
        assert!(read == expected);
        for step in [1, 3] {
            let wanted: Vec<_> = self.records.iter().step_by(step).collect();
            let places: Vec<_> = wanted.iter().map(|(location, _)| *location).collect();
            let mut seen = 0;
            let mut show = |index: usize, bytes: &[u8]| {
                assert!(bytes == wanted[index].1);
                seen += 1;
                Ok::<_, SegmentError>(())
            };
            segments.read_many(&places, &mut show).unwrap();
            assert_eq!(seen, wanted.len());
        }
    }
}

fn fold(chain: Hash, record: &[u8]) -> Hash {
    chain::log_chain(&chain, record.last_chunk().unwrap())
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

proptest! {
    #[test]
    fn a_frame_is_read_back_and_no_changed_byte_passes(
        lengths in prop::collection::vec(0_usize..200, 1..6),
        keys in prop::collection::vec((any::<[u8; 32]>(), any::<bool>()), 0..4),
        address: u64, chain: [u8; 32], at: prop::sample::Index, bit in 0_u8..8,
    ) {
        let first = Position::new(7);
        let last = Position::new(6 + lengths.len() as u64);
        let commit = Commit { first, last, chain, committed_at: Timestamp::UNIX_EPOCH };
        let records: Vec<_> = lengths.iter().enumerate().map(|(at, length)| record(at as u64, *length)).collect();
        let keys: Vec<_> = keys.into_iter().map(|(hash, is_keyed)| FrameKey {
            hash, key_use: KeyUse { digest: hash, is_keyed, first, count: 1 },
        }).collect();
        let mut bytes = Vec::new();
        frame::begin(&mut bytes);
        records.iter().for_each(|record| frame::put_record(&mut bytes, record));
        keys.iter().for_each(|key| frame::put_key(&mut bytes, key));
        prop_assert!(frame::finish(&mut bytes, address, &commit, keys.len()));
        let header = Header::decode(&bytes, address).unwrap();
        prop_assert_eq!(header.commit(), commit);
        prop_assert_eq!(header.frame_bytes(), bytes.len() as u64);
        let frame = Frame::check(header, &bytes).unwrap();
        let read: Vec<_> = frame.records().map(|(offset, record)| {
            assert_eq!(&bytes[offset as usize..][..record.len()], record);
            record.to_vec()
        }).collect();
        prop_assert_eq!(read, records);
        prop_assert_eq!(frame.keys().collect::<Vec<_>>(), keys);
        prop_assert!(Header::decode(&bytes, address.wrapping_add(1)).is_err(), "a moved frame is none");
        let mut changed = bytes.clone();
        changed[at.index(bytes.len())] ^= 1 << bit;
        let passes = Header::decode(&changed, address)
            .is_ok_and(|header| header.frame_bytes() == changed.len() as u64
                && Frame::check(header, &changed).is_ok());
        prop_assert!(!passes);
    }

    #[test]
    fn any_bytes_are_a_header_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Header::decode(&bytes, 0);
    }
}

#[test]
fn the_record_grows_over_segments_and_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    for mut written in [Written::on_disk(folder.path()), Written::new(Segments::in_memory(), 0, Head::EMPTY)]
    {
        // Small and large, and one that is larger than a segment would be.
        for round in 0..60 {
            written.commit(&[10, 70_000, 300]);
            written.commit(&[round; 20]);
        }
        written.commit(&[9_000_000]);
        written.commit(&[1]);
        written.check(&written.segments);
    }
    let extents = Segments::open(folder.path()).unwrap().extents();
    assert!(extents.len() >= 4, "{extents:?}");
    assert!(extents.windows(2).all(|pair| pair[0].end() == pair[1].first), "{extents:?}");
    let sizes: Vec<_> = extents.iter().map(|extent| extent.bytes / SEGMENT_BYTES_MIN).collect();
    assert_eq!(sizes[..3], [1, 1, 2], "as large as the log so far");
}

/// What is left free at the end of a segment is never taken for a frame, however little it is.
#[test]
fn a_segment_may_end_with_any_number_of_free_bytes() {
    // Header, and length and hash of one record.
    let around = frame::HEADER_BYTES + 4 + 32;
    let segment = usize::try_from(SEGMENT_BYTES_MIN).unwrap();
    for free in (0..=frame::HEADER_BYTES + 1).rev().step_by(3).chain(0..10) {
        let folder = tempfile::tempdir().unwrap();
        let mut written = Written::on_disk(folder.path());
        written.commit(&[10]);
        // Small ones at the end, so that what is read ahead goes up to it.
        let small = [20, 30];
        let others = [10, small[0], small[1]].iter().map(|length| around + length).sum::<usize>();
        written.commit(&[segment - others - around - free]);
        written.commit(&[small[0]]);
        written.commit(&[small[1]]);
        written.commit(&[40]);
        written.commit(&[50]);
        assert_eq!(names(folder.path()).len(), 2, "{free} bytes are free");
        written.check(&written.segments);
        written.check(&Segments::open(folder.path()).unwrap());
    }
}

#[test]
fn a_record_that_is_opened_again_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut written = Written::on_disk(folder.path());
    for round in 0..40 {
        written.commit(&[40_000, round]);
        let (head, records) = (written.head, std::mem::take(&mut written.records));
        let segments = Segments::open(folder.path()).unwrap();
        let end = survey(&segments, None).unwrap().end;
        drop(written);
        written = Written::new(segments, end, head);
        written.records = records;
    }
    written.check(&written.segments);
    written.check(&Segments::open(folder.path()).unwrap());
}

/// A segment is made under another name, so that what a crash leaves of one is no part of the record.
#[test]
fn an_unfinished_segment_is_thrown_away() {
    let folder = tempfile::tempdir().unwrap();
    let mut written = Written::on_disk(folder.path());
    written.commit(&[100]);
    drop(written.appender);
    fs::write(folder.path().join("0000000000100000.unfinished"), [0; 5_000]).unwrap();
    let segments = Segments::open(folder.path()).unwrap();
    let found = survey(&segments, Some(written.head)).unwrap();
    assert_eq!((found.ending, found.noted), (Ending::Clean, Fit::Passed));
    let again = Appender::new(segments, found.end).unwrap();
    assert_eq!(names(folder.path()), ["0000000000000000.seg"]);
    drop(again);
}

/// Three commits in one segment, and where each ends.
fn three() -> (tempfile::TempDir, PathBuf, Vec<Head>, Vec<u64>) {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let mut written = Written::on_disk(folder.path());
    let (mut heads, mut ends) = (vec![Head::EMPTY], vec![0]);
    for lengths in [&[30][..], &[10, 60], &[5]] {
        written.commit(lengths);
        heads.push(written.head);
        ends.push(written.appender.end());
    }
    let path = folder.path().join(name(0));
    // Fewer zeros behind the end, which are the same wherever they are.
    fs::File::options().write(true).open(&path).unwrap().set_len(ends[3] + 2_000).unwrap();
    (folder, path, heads, ends)
}

/// What a crash between write and sync leaves of the third commit: any part of it, in any order.
#[test]
fn a_torn_end_is_found_at_every_length() {
    let (folder, path, heads, ends) = three();
    let whole = fs::read(&path).unwrap();
    for cut in ends[2]..ends[3] {
        let mut bytes = whole.clone();
        bytes[cut as usize..ends[3] as usize].fill(0);
        fs::write(&path, &bytes).unwrap();
        let segments = Segments::open(folder.path()).unwrap();
        let found = survey(&segments, Some(heads[2])).unwrap();
        let is_clean = is_zero(&bytes[ends[2] as usize..]);
        assert_eq!((found.head, found.end, found.noted), (heads[2], ends[2], Fit::Passed));
        assert_eq!(found.ending == Ending::Clean, is_clean, "cut at {cut}");
        assert!(!matches!(found.ending, Ending::Damaged { .. }), "cut at {cut}");
        assert_eq!(survey(&segments, Some(heads[3])).unwrap().noted, Fit::Behind);
        segments.erase_from(found.end).unwrap();
        let again = survey(&segments, Some(heads[2])).unwrap();
        assert_eq!((again.head, again.ending), (heads[2], Ending::Clean));
    }
    // The end of the commit without its beginning.
    let mut bytes = whole.clone();
    bytes[ends[2] as usize..ends[2] as usize + 20].fill(0);
    fs::write(&path, &bytes).unwrap();
    let found = survey(&Segments::open(folder.path()).unwrap(), Some(heads[2])).unwrap();
    assert!(matches!(found.ending, Ending::Torn { .. }) && found.head == heads[2]);
}

#[test]
fn no_changed_byte_and_no_cut_passes_unseen() {
    let (folder, path, heads, ends) = three();
    let whole = fs::read(&path).unwrap();
    let look = || survey(&Segments::open(folder.path()).unwrap(), Some(heads[3])).unwrap();
    for at in 0..ends[3] as usize {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&path, &bytes).unwrap();
        let (found, number) = (look(), ends.iter().filter(|end| **end <= at as u64).count() - 1);
        assert_eq!((found.head, found.noted), (heads[number], Fit::Behind), "byte {at}");
        let is_damaged = matches!(found.ending, Ending::Damaged { .. });
        // The last commit has nothing behind it that would tell damage from a torn end.
        assert!(is_damaged || number == 2, "byte {at}: {found:?}");
    }
    for end in 0..ends[3] as usize {
        fs::write(&path, &whole[..end]).unwrap();
        assert_eq!(look().noted, Fit::Behind, "cut at {end}");
    }
    fs::write(&path, &whole).unwrap();
    let other = Head { chain: [7; 32], ..heads[2] };
    let found = survey(&Segments::open(folder.path()).unwrap(), Some(other)).unwrap();
    assert_eq!(found.noted, Fit::Differs);
}

#[test]
fn a_missing_or_short_segment_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let mut written = Written::on_disk(folder.path());
    for _ in 0..50 {
        written.commit(&[100_000]);
    }
    let (head, extents) = (written.head, written.segments.extents());
    drop(written);
    assert!(extents.len() > 3);
    let is_damaged = || {
        let found = survey(&Segments::open(folder.path()).unwrap(), Some(head)).unwrap();
        matches!(found.ending, Ending::Damaged { flaw: Flaw::Gap, .. })
    };
    assert!(!is_damaged());
    for extent in &extents[..2] {
        let path = folder.path().join(name(extent.first));
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_len(extent.bytes - 1).unwrap();
        assert!(is_damaged());
        file.set_len(extent.bytes).unwrap();
        file.write_all_at(&[0], extent.bytes - 1).unwrap();
        fs::rename(&path, folder.path().join("aside")).unwrap();
        assert!(is_damaged());
        fs::rename(folder.path().join("aside"), &path).unwrap();
    }
    assert!(!is_damaged());
}
