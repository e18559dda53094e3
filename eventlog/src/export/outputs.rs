//! The outputs that exported events name, in plain, for whoever asked for them. Each is a file under
//! the SHA-256 of its bytes, which is what the event says, so that nobody needs a key to see that it is
//! the one.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
};

use aws_lc_rs::digest::{Context, SHA256};
use domain::ids::ThreadId;

use super::{ExportError, io_error, output::OWNER_ONLY, place::OWNER_ONLY_FOLDER};
use crate::{
    BlobDigest,
    backup::FileEntry,
    blob::{self, BlobError, BlobReader, copy::MayGoOn},
    log::EventLog,
    recorded::RecordedEvent,
};

const FOLDER: &str = "outputs";
/// Ends the name of a file that is not whole yet.
const PART: &str = "part";
/// Read at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// Digests that events name, each with a thread that has the blob.
#[derive(Default)]
pub(super) struct NamedOutputs(BTreeMap<BlobDigest, ThreadId>);

impl NamedOutputs {
    /// Notes what an event names.
    pub(super) fn note(&mut self, event: &RecordedEvent) {
        let Some(thread_id) = event.stream.thread_id() else { return };
        for named in blob::named(event) {
            self.0.entry(named.sha256).or_insert_with(|| thread_id.clone());
        }
    }

    /// Writes all of them, and says what was written. What an earlier attempt wrote stays.
    pub(super) fn write(
        &self,
        log: &EventLog,
        folder: &Path,
        may_go_on: &mut MayGoOn<'_>,
    ) -> Result<Vec<FileEntry>, ExportError> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let place = folder.join(FOLDER);
        let made = fs::DirBuilder::new().recursive(true).mode(OWNER_ONLY_FOLDER).create(&place);
        made.map_err(io_error("create", &place))?;
        let mut files = Vec::with_capacity(self.0.len());
        for (sha256, thread_id) in &self.0 {
            let name = format!("{FOLDER}/{sha256}");
            let path = folder.join(&name);
            if read(&path)?.is_none_or(|found| found.sha256 != *sha256) {
                let unreadable = |source| ExportError::Output { sha256: *sha256, source };
                let blob = log.open_blob(thread_id, sha256).map_err(unreadable)?;
                copy(blob, &path, may_go_on)?.map_err(unreadable)?;
            }
            let Some(found) = read(&path)? else {
                return Err(io_error("read", &path)(io::ErrorKind::NotFound.into()));
            };
            files.push(FileEntry { name, bytes: found.bytes, blake3: found.blake3 });
        }
        File::open(&place).and_then(|place| place.sync_all()).map_err(io_error("write", &place))?;
        Ok(files)
    }
}

/// Removes what an earlier attempt left that was asked for them, where this one is not.
pub(super) fn remove_unwanted(folder: &Path, is_wanted: bool) -> Result<(), ExportError> {
    let place = folder.join(FOLDER);
    if is_wanted {
        return Ok(());
    }
    match fs::remove_dir_all(&place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("remove", &place)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Whether a file of this name is in the folder, as the name of an output.
pub(super) fn is_in(name: &str) -> bool {
    let digest = name.strip_prefix(FOLDER).and_then(|rest| rest.strip_prefix('/'));
    digest.is_some_and(|digest| digest.parse::<BlobDigest>().is_ok())
}

/// Whether the file is there, is what the manifest says, and has the digest that is its name.
pub(super) fn is_right(folder: &Path, file: &FileEntry) -> Result<bool, ExportError> {
    let found = read(&folder.join(&file.name))?;
    Ok(found.is_some_and(|found| {
        (found.bytes, found.blake3) == (file.bytes, file.blake3)
            && file.name == format!("{FOLDER}/{}", found.sha256)
    }))
}

/// What a file holds.
struct Found {
    bytes: u64,
    blake3: [u8; 32],
    sha256: BlobDigest,
}

/// None if it is not there.
fn read(path: &Path) -> Result<Option<Found>, ExportError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("open", path)(error)),
    };
    let (mut blake3, mut sha256, mut buffer) =
        (blake3::Hasher::new(), Context::new(&SHA256), vec![0; BUFFER_BYTES]);
    loop {
        let length = file.read(&mut buffer).map_err(io_error("read", path))?;
        let piece = buffer.get(..length).unwrap_or_default();
        if piece.is_empty() {
            let (bytes, blake3) = (blake3.count(), *blake3.finalize().as_bytes());
            return Ok(Some(Found { bytes, blake3, sha256: BlobDigest::of(sha256) }));
        }
        blake3.update(piece);
        sha256.update(piece);
    }
}

/// The file has its name when all of it is on disk.
fn copy(
    mut blob: BlobReader,
    path: &Path,
    may_go_on: &mut MayGoOn<'_>,
) -> Result<Result<(), BlobError>, ExportError> {
    let part = path.with_extension(PART);
    let writing = io_error("write", &part);
    let options = File::options().write(true).create(true).truncate(true).mode(OWNER_ONLY).open(&part);
    let mut file = options.map_err(&writing)?;
    loop {
        match blob.next_piece() {
            Ok(Some(piece)) => file.write_all(&piece).map_err(&writing)?,
            Ok(None) => break,
            Err(error) => return Ok(Err(error)),
        }
        if may_go_on().is_break() {
            return Err(ExportError::Stopped);
        }
    }
    file.sync_all().map_err(&writing)?;
    fs::rename(&part, path).map_err(io_error("finish", path))?;
    Ok(Ok(()))
}
