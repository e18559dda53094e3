//! Making a data folder of a backup.

use std::{fs, path::Path};

use super::{
    BackupError, IDEMPOTENCY_FILE, KEYS_FILE, MASTER_FILE, Manifest, MasterKeyPlace,
    entries::{self, EntryReader},
    follow::{self, Visitor},
    io_error, thread_files,
    unfinished::Unfinished,
};
use crate::{
    blob,
    codec::record::Outline,
    engine::{Batch, Durability, Engine, Pair},
    format,
    keys::{self, EVENTS, INDEX, TASKS},
    open::{ENGINE_FOLDER, KEYS_FOLDER, WATERMARK_FILE},
    options::Options,
    verify::{self, Index, Progress, Report, VerifyRequest},
    watermark::Watermark,
};

/// Bytes of keys and values that are written at once.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Makes a new data folder of a backup, verifies it as a whole, and only then puts it in its place.
/// The restored log has the same records, positions, seqs and hashes. `progress` is told of the
/// copying, and then of the verification.
pub fn restore(
    backup: &Path,
    data: &Path,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, BackupError> {
    let manifest = Manifest::read(backup)?;
    let unfinished = Unfinished::begin(data)?;
    copy_keys(backup, &manifest, &unfinished.folder)?;
    write_log(backup, &manifest, &unfinished.folder, progress)?;
    thread_files::restore(backup, &manifest, &unfinished.folder)?;
    blob::copy::copy(backup, &unfinished.folder).map_err(io_error("copy the blobs from", backup))?;
    note_head(&manifest, &unfinished.folder)?;
    let request = VerifyRequest { exported: Some(manifest.head().into()), progress: Some(progress) };
    let report = match verify::verify_folder(&unfinished.folder, options, request) {
        Err(verify::VerifyError::Open(error)) => return Err(BackupError::Keys(error)),
        verified => verified?,
    };
    if let Some(damage) = report.damage {
        return Err(BackupError::Damaged(damage));
    }
    unfinished.finish()?;
    Ok(report)
}

fn copy_keys(backup: &Path, manifest: &Manifest, folder: &Path) -> Result<(), BackupError> {
    let keys_folder = folder.join(KEYS_FOLDER);
    fs::create_dir(&keys_folder).map_err(io_error("create", &keys_folder))?;
    let master = match manifest.master_key {
        MasterKeyPlace::Included => Some(MASTER_FILE),
        MasterKeyPlace::Elsewhere => None,
    };
    for name in [KEYS_FILE].into_iter().chain(master) {
        entries::check(backup, manifest.file(backup, name)?)?;
        let to = folder.join(name);
        let copy = || {
            let mut file = entries::create(&to)?;
            std::io::copy(&mut fs::File::open(backup.join(name))?, &mut file)?;
            file.sync_all()
        };
        copy().map_err(io_error("copy a key file to", &to))?;
    }
    fs::File::open(&keys_folder).and_then(|folder| folder.sync_all()).map_err(io_error("sync", &keys_folder))
}

/// Writes what is in the backup, with the indexes that follow from it.
fn write_log(
    backup: &Path,
    manifest: &Manifest,
    folder: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), BackupError> {
    let engine = Engine::open(&folder.join(ENGINE_FOLDER), &keys::KEYSPACES)?;
    let mut writing = Writing { engine: &engine, batch: Batch::new(), bytes: 0 };
    let request = VerifyRequest { exported: None, progress: Some(progress) };
    let tails = follow::follow(backup, manifest, &mut writing, request)?;
    for (stream, tail) in &tails {
        writing.batch.put(INDEX, keys::stream::encode(stream), keys::stream::encode_value(tail));
    }
    let mut pairs = EntryReader::open(backup, manifest.file(backup, IDEMPOTENCY_FILE)?)?;
    while let Some((key, value)) = pairs.next()? {
        if !key.starts_with(&keys::idempotency::all()) {
            return Err(entries::differs(&backup.join(IDEMPOTENCY_FILE), "it has other keys"));
        }
        writing.batch.put(INDEX, key, value);
    }
    writing.flush()?;
    // The last write is synced, and with it all before it.
    format::write(&engine, manifest.log_format)?;
    Ok(())
}

/// Puts events with their index entries, and commits.
struct Writing<'a> {
    engine: &'a Engine,
    batch: Batch,
    bytes: usize,
}

impl Writing<'_> {
    fn flush(&mut self) -> Result<(), BackupError> {
        self.bytes = 0;
        Ok(self.engine.commit(std::mem::take(&mut self.batch), Durability::Buffered)?)
    }
}

impl Visitor for Writing<'_> {
    fn event(&mut self, outline: &Outline, (key, record): Pair) -> Result<(), BackupError> {
        let batch = &mut self.batch;
        verify::index_entries(outline, &record, &mut |index, key, value| {
            let keyspace = match index {
                Index::Tasks => TASKS,
                Index::Streams | Index::Runs | Index::Keys => INDEX,
            };
            batch.put(keyspace, key, value);
        });
        self.bytes += record.len();
        self.batch.put(EVENTS, key, record);
        if self.bytes > BATCH_BYTES_MAX { self.flush() } else { Ok(()) }
    }

    fn commit(&mut self, (key, value): Pair) -> Result<(), BackupError> {
        self.batch.put(INDEX, key, value);
        Ok(())
    }
}

/// Notes how far the log goes, so that it is guarded from its first opening on.
fn note_head(manifest: &Manifest, folder: &Path) -> Result<(), BackupError> {
    let path = folder.join(WATERMARK_FILE);
    let note = || {
        let (mut watermark, _) = Watermark::open(&path)?;
        watermark.note(manifest.head())?;
        watermark.sync()
    };
    note().map_err(io_error("write", &path))
}
