//! Making a data folder of a backup.

use std::{fs, path::Path};

use super::{
    BackupError, KEYS_FILE, MASTER_FILE, Manifest, files, io_error, manifest::files_root, thread_files,
    unfinished::Unfinished,
};
use crate::{
    blob, format,
    open::{self, KEYS_FOLDER, LOG_FOLDER, WATERMARK_FILE, recover},
    options::Options,
    segment::Segments,
    store::StoreError,
    verify::{self, Progress, Report, VerifyRequest},
    watermark::Watermark,
};

/// Makes a new data folder of a backup, verifies it as a whole, and only then puts it in its place.
/// The restored log has the same records, positions, seqs and hashes. `progress` is told of the
/// verification.
pub fn restore(
    backup: &Path,
    data: &Path,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, BackupError> {
    let manifest = Manifest::read(backup)?;
    let unfinished = Unfinished::begin(data)?;
    for file in &manifest.files {
        files::check_length(&backup.join(&file.name), file)?;
    }
    let report = super::check::verify_record(backup, &manifest, VerifyRequest::default())?;
    if let Some(damage) = report.damage {
        return Err(BackupError::Damaged(damage));
    }
    copy_keys(backup, &manifest, &unfinished.folder)?;
    write_log(backup, &manifest, &unfinished.folder)?;
    let files = files_root(backup, manifest.number());
    thread_files::restore(&files, &manifest, &unfinished.folder)?;
    blob::copy::copy_all(&files, &unfinished.folder).map_err(io_error("copy the blobs from", &files))?;
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
    files::copy(backup, manifest.keys(backup)?, &keys_folder.join(KEYS_FILE))?;
    if let Some(master) = manifest.master(backup)? {
        files::copy(backup, master, &keys_folder.join(MASTER_FILE))?;
    }
    fs::File::open(&keys_folder).and_then(|folder| folder.sync_all()).map_err(io_error("sync", &keys_folder))
}

/// Writes the record, and makes the index of it.
fn write_log(backup: &Path, manifest: &Manifest, folder: &Path) -> Result<(), BackupError> {
    let log_folder = folder.join(LOG_FOLDER);
    let to = open::segments_folder(&log_folder);
    fs::create_dir_all(&to).map_err(io_error("create", &to))?;
    for file in manifest.segments() {
        let name = Path::new(&file.name).file_name().unwrap_or_default();
        files::copy(backup, file, &to.join(name))?;
    }
    let sync = || {
        fs::File::open(&to)?.sync_all()?;
        format::write(&log_folder)?;
        fs::File::open(folder)?.sync_all()
    };
    sync().map_err(io_error("sync", &log_folder))?;
    let segments = Segments::open(&to).map_err(StoreError::from)?;
    let index = recover::rebuild(&log_folder, &segments, manifest.head()).map_err(BackupError::Keys)?;
    Ok(index.flush()?)
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
