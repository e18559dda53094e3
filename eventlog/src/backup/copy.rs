//! Copying the record up to a position, while others write behind it.

use std::{
    fs::{self, DirBuilder},
    io::{Seek, SeekFrom, Write},
    ops::ControlFlow,
    os::unix::fs::DirBuilderExt,
    path::Path,
};

use jiff::Timestamp;

use super::{
    BackupError, BackupRequest, FileEntry, KEYS_FILE, KEYS_FOLDER, MASTER_FILE, Manifest, MasterKeyPlace,
    SEGMENTS_FOLDER,
    check::{Proven, prove},
    files, io_error,
    manifest::{self, FILES_FOLDER, FIRST, files_root, keys_name},
    thread_files::{self, THREADS_FOLDER, ThreadFiles},
    unfinished::Unfinished,
};
use crate::{
    blob::{self, Blobs, copy::MayGoOn},
    durable, format,
    keyring::Keyring,
    segment::{Extent, Segments},
    store::{Head, LogStore as _, SegmentStore, StoreError},
    verify::Progress,
};

/// Read and written at once.
const CHUNK_BYTES: usize = 1024 * 1024;
const OWNER_ONLY: u32 = 0o700;

/// Copies the log up to its present head into a new folder, or adds what is new to a backup of it.
/// Everything up to a head is durable and never changes, so that nobody is held up.
pub(crate) fn copy(
    store: &SegmentStore,
    blobs: Option<&Blobs>,
    target: &Path,
    request: BackupRequest<'_>,
) -> Result<Manifest, BackupError> {
    let BackupRequest { taken_at, threads, progress } = request;
    let end = store.index().end();
    let taking = Taking { store, blobs, head: end.head, end: end.end, taken_at, threads };
    if Manifest::is_in(target) {
        return taking.add_to(target, progress);
    }
    let unfinished = Unfinished::begin(target)?;
    let manifest = taking.copy_to(&unfinished.folder, progress)?;
    unfinished.finish()?;
    Ok(manifest)
}

/// A backup that is being taken.
struct Taking<'a> {
    store: &'a SegmentStore,
    blobs: Option<&'a Blobs>,
    head: Head,
    /// The address behind the head.
    end: u64,
    taken_at: Timestamp,
    /// The files of threads.
    threads: Option<&'a Path>,
}

/// Is told how far a backup is, and says whether to go on.
type Told<'a> = dyn FnMut(Progress) -> ControlFlow<()> + 'a;

impl Taking<'_> {
    fn copy_to(&self, folder: &Path, progress: &mut Told<'_>) -> Result<Manifest, BackupError> {
        create_folder(&folder.join(SEGMENTS_FOLDER))?;
        create_folder(&folder.join(KEYS_FOLDER))?;
        self.take(folder, &[], Proven::BEGINNING, FIRST, progress)
    }

    /// Adds to what is there, once it is known to be the beginning of this log.
    fn add_to(&self, folder: &Path, progress: &mut Told<'_>) -> Result<Manifest, BackupError> {
        let before = Manifest::read(folder)?;
        let other = || BackupError::OtherLog { folder: folder.to_owned() };
        let same = match before.position {
            position if position > self.head.position => return Err(other()),
            position if before.head() == Head::EMPTY => (position, Head::EMPTY.chain),
            position => {
                let commit = self.store.commit_at(position)?.ok_or_else(other)?;
                (commit.last, commit.chain)
            }
        };
        if (before.position, before.chain) != same {
            return Err(other());
        }
        let end = before.segments().map(|file| file.bytes).sum();
        let from = Proven { head: before.head(), end, commits: before.commits };
        let number = before.keys_number().unwrap_or_default() + 1;
        let kept: Vec<FileEntry> = before.segments().cloned().collect();
        let manifest = self.take(folder, &kept, from, number, progress)?;
        remove_others(folder, number)?;
        Ok(manifest)
    }

    fn take(
        &self,
        folder: &Path,
        kept: &[FileEntry],
        from: Proven,
        number: u64,
        progress: &mut Told<'_>,
    ) -> Result<Manifest, BackupError> {
        let root = files_root(folder, number);
        if number != FIRST {
            begin_root(&root)?;
        }
        let segments = self.store.segments();
        let begun = Progress { position: from.head.position, head: self.head.position };
        let mut files = Vec::new();
        for (index, extent) in segments.extents().into_iter().enumerate() {
            if extent.first < self.end {
                let kept = kept.get(index);
                files.push(copy_segment(segments, extent, self.end, folder, kept, &mut || progress(begun))?);
            }
        }
        // The copy is what is proven.
        let record = Segments::open(&folder.join(SEGMENTS_FOLDER)).map_err(StoreError::from)?;
        let proven = prove(&record, from, self.head.position, progress)?;
        let told = Progress { position: self.head.position, head: self.head.position };
        let may_go_on: &mut MayGoOn<'_> = &mut || progress(told);
        let copied = self.threads.map(|from| thread_files::copy(from, &root, may_go_on)).transpose()?;
        let blob_files = match self.blobs {
            Some(blobs) => self.copy_blobs(blobs, &record, folder, number, may_go_on)?,
            None => Vec::new(),
        };
        // The keys come last: see the module.
        let (master_key, keys) = copy_keys(self.store.keyring(), folder, number)?;
        files.extend(keys);
        let threads: Option<ThreadFiles> =
            copied.map(|copied| copied.finish(&root, self.store.keyring())).transpose()?;
        let manifest = Manifest {
            format: manifest::FORMAT,
            log_format: format::FORMAT_VERSION,
            position: self.head.position,
            chain: self.head.chain,
            events: self.head.position.get(),
            commits: proven.commits,
            taken_at: self.taken_at,
            master_key,
            files,
            threads,
            blobs: blob_files,
        };
        manifest.write(folder)?;
        Ok(manifest)
    }

    /// Copies the blobs and proves that those that events name are there and whole.
    fn copy_blobs(
        &self,
        blobs: &Blobs,
        record: &Segments,
        folder: &Path,
        number: u64,
        may_go_on: &mut MayGoOn<'_>,
    ) -> Result<Vec<FileEntry>, BackupError> {
        let root = files_root(folder, number);
        let before = (number != FIRST).then(|| files_root(folder, number - 1));
        let copied = blob::copy::copy(blobs.data(), &root, before.as_deref(), may_go_on);
        if copied.map_err(io_error("copy the blobs to", &root))?.is_break() {
            return Err(BackupError::Stopped);
        }
        let keyring = self.store.keyring();
        if let Some(damage) = blob::check::first_damage(record, self.head.position, keyring, &root)? {
            return Err(BackupError::LogDamaged(damage));
        }
        let names = blob::copy::files(&root).map_err(io_error("list the blobs in", &root))?;
        let within = files_root(Path::new(""), number);
        names.iter().map(|name| files::describe(folder, &within.join(name).to_string_lossy())).collect()
    }
}

/// Makes room for files that are copied anew. What a backup that was cut off left there does not count.
fn begin_root(root: &Path) -> Result<(), BackupError> {
    if root.exists() {
        fs::remove_dir_all(root).map_err(io_error("remove", root))?;
    }
    create_folder(root)
}

/// Copies a segment up to an address, behind what is there of it.
fn copy_segment(
    segments: &Segments,
    extent: Extent,
    end: u64,
    folder: &Path,
    kept: Option<&FileEntry>,
    may_go_on: &mut MayGoOn<'_>,
) -> Result<FileEntry, BackupError> {
    let name = format!("{SEGMENTS_FOLDER}/{:016x}.seg", extent.first);
    let until = end.min(extent.end());
    let there = kept.map_or(0, |kept| kept.bytes);
    if let Some(kept) = kept.filter(|kept| extent.first + kept.bytes == until) {
        return Ok(kept.clone());
    }
    let path = folder.join(&name);
    if let Some(kept) = kept {
        files::check(folder, kept)?;
    }
    let mut file = files::open_to_add(&path).map_err(io_error("open", &path))?;
    // What a backup that was cut off had added is written again.
    let begin = |file: &mut fs::File| file.set_len(there).and_then(|()| file.seek(SeekFrom::Start(there)));
    begin(&mut file).map_err(io_error("write", &path))?;
    let (mut at, mut buffer) = (extent.first + there, vec![0; CHUNK_BYTES]);
    while at < until {
        let want = usize::try_from(until - at).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        let count = segments.read_at(at, buffer.get_mut(..want).unwrap_or_default());
        let count = count.map_err(StoreError::from)?;
        if count == 0 {
            let ended = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            return Err(io_error("read", &segments.place_of(at).0)(ended));
        }
        file.write_all(buffer.get(..count).unwrap_or_default()).map_err(io_error("write", &path))?;
        at += count as u64;
        if may_go_on().is_break() {
            return Err(BackupError::Stopped);
        }
    }
    file.sync_all().map_err(io_error("write", &path))?;
    sync_folder(&folder.join(SEGMENTS_FOLDER))?;
    files::describe(folder, &name)
}

fn copy_keys(
    keyring: &Keyring,
    folder: &Path,
    number: u64,
) -> Result<(MasterKeyPlace, impl Iterator<Item = FileEntry> + use<>), BackupError> {
    let (keys_name, master_name) = (keys_name(number, KEYS_FILE), keys_name(number, MASTER_FILE));
    let (keys, master) = (folder.join(&keys_name), folder.join(&master_name));
    let keys_folder = folder.join(KEYS_FOLDER).join(number.to_string());
    if keys_folder.exists() {
        fs::remove_dir_all(&keys_folder).map_err(io_error("remove", &keys_folder))?;
    }
    create_folder(&keys_folder)?;
    let mut keys_file = files::create(&keys).map_err(io_error("create", &keys))?;
    let copied = keyring.copy_to(&mut keys_file).map_err(io_error("copy the keys to", &keys))?;
    let generated = copied.ok_or(BackupError::Unsupported)?.generated_master;
    let keys = files::describe(folder, &keys_name)?;
    let master = match &generated {
        None => None,
        Some(from) => {
            let copy_master = || {
                let mut file = files::create(&master)?;
                std::io::copy(&mut fs::File::open(from)?, &mut file)?;
                file.sync_all()
            };
            copy_master().map_err(io_error("copy the master key to", &master))?;
            Some(files::describe(folder, &master_name)?)
        }
    };
    sync_folder(&keys_folder)?;
    sync_folder(&folder.join(KEYS_FOLDER))?;
    let place = if master.is_some() { MasterKeyPlace::Included } else { MasterKeyPlace::Elsewhere };
    Ok((place, [Some(keys), master].into_iter().flatten()))
}

/// Removes the keys and the files of threads of the backups before.
fn remove_others(folder: &Path, number: u64) -> Result<(), BackupError> {
    let remove = |within: &Path| {
        if !within.exists() {
            return Ok(());
        }
        for entry in fs::read_dir(within)? {
            let entry = entry?;
            if entry.file_name().to_str() != Some(&number.to_string()) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    };
    for within in [folder.join(KEYS_FOLDER), folder.join(FILES_FOLDER)] {
        remove(&within).map_err(io_error("remove the backup before from", &within))?;
    }
    if number != FIRST {
        blob::copy::remove(folder).map_err(io_error("remove the blobs before from", folder))?;
    }
    let (threads, list) = (folder.join(THREADS_FOLDER), folder.join(thread_files::LIST_FILE));
    if threads.exists() {
        fs::remove_dir_all(&threads).map_err(io_error("remove", &threads))?;
    }
    if list.exists() {
        fs::remove_file(&list).map_err(io_error("remove", &list))?;
    }
    // What is removed stays so after a power loss.
    [KEYS_FOLDER, FILES_FOLDER]
        .map(|name| folder.join(name))
        .iter()
        .chain([&folder.to_owned()])
        .try_for_each(|folder| if folder.exists() { sync_folder(folder) } else { Ok(()) })
}

fn create_folder(folder: &Path) -> Result<(), BackupError> {
    let create = || DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(folder);
    create().map_err(io_error("create", folder))
}

fn sync_folder(folder: &Path) -> Result<(), BackupError> {
    durable::sync_folder(folder).map_err(io_error("sync", folder))
}
