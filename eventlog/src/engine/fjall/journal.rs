//! The engine's journal, looked at before the engine does.
//!
//! Opening the engine cuts its journal at the first batch that it cannot read, whatever comes after
//! it. So damage in the middle of a journal would silently cost every batch behind it, and the
//! bytes with it. This reads the same format (fjall 3), changes nothing, and tells a torn end from
//! damage with whole batches behind it.
//!
//! ```text
//! start  1 · u32 items · u64 seqno
//! item   2 · u8 type · u8 compression · u64 keyspace · u16 key · u32 value · u32 stored value
//!        key · stored value
//! clear  4 · u64 keyspace
//! end    3 · u64 XXH3 of the items · "FJL" 3             (integers are little endian)
//! ```

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use xxhash_rust::xxh3::Xxh3;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const TRAILER: &[u8; 4] = b"FJL\x03";
const START_BYTES: usize = 13;
const BUFFER_BYTES: usize = 1024 * 1024;
const JOURNAL_EXTENSION: &str = "jnl";

/// One journal file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Journal {
    pub(crate) path: PathBuf,
    /// Where the whole batches end.
    pub(crate) valid_bytes: u64,
    /// Whole batches.
    pub(crate) batches: u64,
    pub(crate) end: JournalEnd,
}

/// What comes after the whole batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JournalEnd {
    /// Nothing but zeros.
    Clean,
    /// Bytes that are no whole batch: what a batch leaves that was being written.
    Torn {
        /// Up to the last that is not zero.
        bytes: u64,
    },
    /// Whole batches: something before them was changed.
    Damaged,
}

/// Looks at all journals in the engine's folder, oldest first, and shows the keys of whole batches.
pub(crate) fn scan(folder: &Path, visit: &mut dyn FnMut(&[u8])) -> io::Result<Vec<Journal>> {
    let mut journals = Vec::new();
    let mut last_seqno = None;
    for (_, path) in files(folder)? {
        journals.push(scan_file(path, &mut last_seqno, visit)?);
    }
    Ok(journals)
}

/// The journals by their numbers. None in a folder that is not there yet.
fn files(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        if let Some(number) = number
            && path.extension().is_some_and(|end| end == JOURNAL_EXTENSION)
        {
            files.push((number, path));
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn scan_file(
    path: PathBuf,
    last_seqno: &mut Option<u64>,
    visit: &mut dyn FnMut(&[u8]),
) -> io::Result<Journal> {
    let mut reader = Counted { inner: BufReader::with_capacity(BUFFER_BYTES, File::open(&path)?), read: 0 };
    let (mut valid_bytes, mut batches) = (0, 0);
    let mut is_out_of_order = false;
    while let Some(batch) = read_batch(&mut reader)? {
        if last_seqno.is_some_and(|last| batch.seqno <= last) {
            is_out_of_order = true;
            break;
        }
        *last_seqno = Some(batch.seqno);
        batch.keys.iter().for_each(|key| visit(key));
        (valid_bytes, batches) = (reader.read, batches + 1);
    }
    let rest = rest(reader.inner.into_inner(), valid_bytes)?;
    let end = match &*rest {
        _ if is_out_of_order || holds_batch(&rest)? => JournalEnd::Damaged,
        [] => JournalEnd::Clean,
        torn => JournalEnd::Torn { bytes: torn.len() as u64 },
    };
    Ok(Journal { path, valid_bytes, batches, end })
}

/// What comes after the whole batches, up to the last byte that is not zero.
pub(crate) fn rest(mut file: File, from: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(from))?;
    let mut rest = Vec::new();
    let (mut chunk, mut zeros) = (vec![0; BUFFER_BYTES], 0);
    loop {
        let count = file.read(&mut chunk)?;
        let read = chunk.get(..count).unwrap_or_default();
        if read.is_empty() {
            return Ok(rest);
        }
        let Some(last) = read.iter().rposition(|byte| *byte != 0) else {
            zeros += count;
            continue;
        };
        rest.resize(rest.len() + zeros, 0);
        rest.extend_from_slice(read.get(..=last).unwrap_or_default());
        zeros = count - last - 1;
    }
}

/// Whether a whole batch begins anywhere behind the first byte.
fn holds_batch(bytes: &[u8]) -> io::Result<bool> {
    for at in 1..bytes.len() {
        let (tag, first_item) = (bytes.get(at), bytes.get(at + START_BYTES));
        if tag != Some(&START) || !matches!(first_item, Some(&(ITEM | CLEAR))) {
            continue;
        }
        let mut reader = Counted { inner: bytes.get(at..).unwrap_or_default(), read: 0 };
        if read_batch(&mut reader)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

struct Batch {
    seqno: u64,
    keys: Vec<Vec<u8>>,
}

/// Reads one batch. None if there is none or it is not whole.
fn read_batch<R: Read>(reader: &mut Counted<R>) -> io::Result<Option<Batch>> {
    match try_batch(reader) {
        Ok(batch) => Ok(batch),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

fn try_batch<R: Read>(reader: &mut Counted<R>) -> io::Result<Option<Batch>> {
    let [tag] = reader.array()?;
    if tag != START {
        return Ok(None);
    }
    let items = u32::from_le_bytes(reader.array()?);
    let mut batch = Batch { seqno: u64::from_le_bytes(reader.array()?), keys: Vec::new() };
    let mut checksum = Xxh3::new();
    let mut value = Vec::new();
    for _ in 0..items {
        let [tag] = reader.array()?;
        checksum.update(&[tag]);
        match tag {
            ITEM => {
                let Some(key) = read_item(reader, &mut checksum, &mut value)? else {
                    return Ok(None);
                };
                batch.keys.push(key);
            }
            CLEAR => checksum.update(&reader.array::<8>()?),
            _ => return Ok(None),
        }
    }
    let [tag] = reader.array()?;
    let (expected, trailer) = (u64::from_le_bytes(reader.array()?), reader.array::<4>()?);
    let is_whole = tag == END && checksum.digest() == expected && trailer == *TRAILER;
    Ok(is_whole.then_some(batch))
}

/// Reads an item behind its tag, and gives its key.
fn read_item<R: Read>(
    reader: &mut Counted<R>,
    checksum: &mut Xxh3,
    value: &mut Vec<u8>,
) -> io::Result<Option<Vec<u8>>> {
    let head = reader.array::<20>()?;
    checksum.update(&head);
    let [value_type, compression, _, _, _, _, _, _, _, _, k0, k1, _, _, _, _, v0, v1, v2, v3] = head;
    if !matches!(value_type, 0..=2) || compression > 1 {
        return Ok(None);
    }
    let key_bytes = u16::from_le_bytes([k0, k1]);
    let mut key = Vec::new();
    reader.take_into(u64::from(key_bytes), &mut key)?;
    reader.take_into(u64::from(u32::from_le_bytes([v0, v1, v2, v3])), value)?;
    checksum.update(&key);
    checksum.update(value);
    Ok(Some(key))
}

/// A reader that knows how far it is.
struct Counted<R> {
    inner: R,
    read: u64,
}

impl<R: Read> Counted<R> {
    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes)?;
        self.read += N as u64;
        Ok(bytes)
    }

    /// Memory grows with what is there, not with what a damaged length says.
    fn take_into(&mut self, count: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
        bytes.clear();
        let read = self.inner.by_ref().take(count).read_to_end(bytes)? as u64;
        self.read += read;
        if read < count { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}
