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
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
};

use xxhash_rust::xxh3::xxh3_64;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const TRAILER: &[u8; 4] = b"FJL\x03";
const START_BYTES: usize = 13;
const ITEM_HEAD_BYTES: usize = 21;
const CLEAR_BYTES: usize = 9;
const END_BYTES: usize = 13;
/// What is read of a journal at once.
const WINDOW_BYTES: u64 = 1024 * 1024;
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
    let mut bytes = Window::over(File::open(&path)?);
    let (mut valid_bytes, mut batches) = (0, 0);
    let mut is_out_of_order = false;
    while let Some(batch) = read_batch(&mut bytes)? {
        if last_seqno.is_some_and(|last| batch.seqno <= last) {
            is_out_of_order = true;
            break;
        }
        *last_seqno = Some(batch.seqno);
        for key in &batch.keys {
            visit(bytes.slice(key.clone()));
        }
        (valid_bytes, batches) = (valid_bytes + batch.bytes as u64, batches + 1);
        bytes.advance(batch.bytes);
    }
    let rest = rest(File::open(&path)?, valid_bytes)?;
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
        if read_batch(&mut Window::over(bytes.get(at..).unwrap_or_default()))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A whole batch at the beginning of a window.
struct Batch {
    seqno: u64,
    /// Its length.
    bytes: usize,
    /// Where its keys are.
    keys: Vec<Range<usize>>,
}

/// Reads the batch at the beginning of the window. None if there is none or it is not whole.
fn read_batch<R: Read>(bytes: &mut Window<R>) -> io::Result<Option<Batch>> {
    match try_batch(bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        read => read,
    }
}

fn try_batch<R: Read>(bytes: &mut Window<R>) -> io::Result<Option<Batch>> {
    let [tag] = bytes.array(0)?;
    if tag != START {
        return Ok(None);
    }
    let items = u32::from_le_bytes(bytes.array(1)?);
    let mut batch = Batch { seqno: u64::from_le_bytes(bytes.array(5)?), bytes: 0, keys: Vec::new() };
    let mut at = START_BYTES;
    for _ in 0..items {
        match bytes.array(at)? {
            [ITEM] => {
                let Some(item) = read_item(bytes, at)? else {
                    return Ok(None);
                };
                batch.keys.push(item.key);
                at = item.end;
            }
            [CLEAR] => {
                bytes.array::<CLEAR_BYTES>(at)?;
                at += CLEAR_BYTES;
            }
            _ => return Ok(None),
        }
    }
    let ([tag], expected) = (bytes.array(at)?, u64::from_le_bytes(bytes.array(at + 1)?));
    let trailer: [u8; 4] = bytes.array(at + 9)?;
    let checksum = xxh3_64(bytes.slice(START_BYTES..at));
    batch.bytes = at + END_BYTES;
    Ok((tag == END && checksum == expected && trailer == *TRAILER).then_some(batch))
}

/// An item within a batch.
struct Item {
    key: Range<usize>,
    end: usize,
}

fn read_item<R: Read>(bytes: &mut Window<R>, at: usize) -> io::Result<Option<Item>> {
    let head = bytes.array::<ITEM_HEAD_BYTES>(at)?;
    let [_, value_type, compression, _, _, _, _, _, _, _, _, k0, k1, _, _, _, _, v0, v1, v2, v3] = head;
    if !matches!(value_type, 0..=2) || compression > 1 {
        return Ok(None);
    }
    let start = at + ITEM_HEAD_BYTES;
    let key = start..start + usize::from(u16::from_le_bytes([k0, k1]));
    let end = key.end.saturating_add(u32::from_le_bytes([v0, v1, v2, v3]) as usize);
    bytes.need(end)?;
    Ok(Some(Item { key, end }))
}

/// The part of a file that is looked at, read as far as it is needed.
struct Window<R> {
    inner: R,
    bytes: Vec<u8>,
    start: usize,
}

impl<R: Read> Window<R> {
    fn over(inner: R) -> Self {
        Self { inner, bytes: Vec::new(), start: 0 }
    }

    /// Reads until the window has this many bytes. It grows with what is there, not with what a
    /// damaged length says.
    fn need(&mut self, count: usize) -> io::Result<()> {
        while self.bytes.len() - self.start < count {
            if self.start > 0 {
                self.bytes.drain(..self.start);
                self.start = 0;
            }
            if self.inner.by_ref().take(WINDOW_BYTES).read_to_end(&mut self.bytes)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    fn array<const N: usize>(&mut self, at: usize) -> io::Result<[u8; N]> {
        self.need(at + N)?;
        let found = self.slice(at..at + N).first_chunk().copied();
        found.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Bytes that were needed before.
    fn slice(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(self.start + range.start..self.start + range.end).unwrap_or_default()
    }

    /// Moves the window behind its first bytes.
    fn advance(&mut self, count: usize) {
        self.start += count;
    }
}
