//! Making a data folder of a whole export: the same events, positions, seqs and hashes.
//!
//! An export has the keys of threads and runs as they are in the key file, wrapped with the master
//! key of the log that was exported; without that key nobody can import. What no event says is not
//! in an export: which appends shared a commit, and idempotency keys, so that a repeat of an older
//! append is recorded again. A backup has those.

use std::{
    fs, io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    ExportError, KEYS_FILE, Manifest,
    check::{VerifyExport, verify_export},
    follow::{Follower, Step},
    io_error,
    output::OWNER_ONLY,
    place,
};
use crate::{
    blob,
    codec::{
        DecodeError,
        record::{self, HASH_BYTES, Type},
    },
    keyring::ScopeId,
    keys,
    open::{self, KEYS_FOLDER, LOG_FOLDER, OpenError, WATERMARK_FILE},
    options::Options,
    recorded::{EventHashes, RecordedEvent},
    seal::{Opened, Seal},
    secret::SecretKey,
    store::{Commit, CommitGroup, Head, LogStore, StoreError, StoredEvent, Tail},
    stream_id::StreamId,
    verify::{self, Progress, Report, VerifyError, VerifyRequest},
};

/// Events of one commit: one sync for each of them.
const EVENTS_PER_COMMIT: usize = 1_024;
/// Bytes of their records, beyond which a commit ends.
const BYTES_PER_COMMIT_MAX: usize = 4 * 1024 * 1024;

/// The file that the key file is, and the one that a generated master key is.
const KEY_FILES: [&str; 2] = ["threads", "master.key"];

/// What a folder is made of.
pub struct Import<'a> {
    /// The export.
    pub export: &'a Path,
    /// A folder that is not there yet.
    pub data: &'a Path,
    /// The master key that was generated in the folder of the log that was exported. It becomes the
    /// new folder's; none takes the one that the options give.
    pub master_key: Option<PathBuf>,
    /// How the log is opened.
    pub options: &'a Options,
    /// Is told of the checking, then of the copying, then of the verification.
    pub progress: &'a mut dyn FnMut(Progress),
}

/// Makes a new data folder of an export that was found to be right, verifies the folder as a whole,
/// and only then puts it in its place.
pub fn import(import: Import<'_>) -> Result<Report, ExportError> {
    let Import { export, data, master_key, options, progress } = import;
    let checked = verify_export(export, VerifyExport { progress: Some(progress), ..Default::default() })?;
    if let Some(damage) = checked.damage {
        return Err(ExportError::Damaged(Box::new(damage)));
    }
    let manifest = checked.manifest;
    check_importable(&manifest)?;
    let (target, folder) = place::beside(data)?;
    place::make_anew(&folder)?;
    let made = fill(&folder, export, &manifest, master_key.as_deref(), options, progress);
    if made.is_err() {
        // What remains is removed by the next attempt.
        drop(fs::remove_dir_all(&folder));
    }
    let report = made?;
    place::move_to(&folder, &target)?;
    Ok(report)
}

fn check_importable(manifest: &Manifest) -> Result<(), ExportError> {
    let missing = |reason| Err(ExportError::NotImportable { reason });
    if !manifest.is_whole() {
        return missing("it is filtered, and events are withheld");
    }
    if !manifest.has_keys() {
        return missing("it has no keys, because the log that was exported has no folder");
    }
    Ok(())
}

fn fill(
    folder: &Path,
    export: &Path,
    manifest: &Manifest,
    master_key: Option<&Path>,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, ExportError> {
    let log_folder = folder.join(LOG_FOLDER);
    fs::create_dir(&log_folder).map_err(io_error("create", &log_folder))?;
    put_keys(folder, export, master_key)?;
    blob::copy::copy_all(export, folder).map_err(io_error("copy the blobs from", export))?;
    write_log(folder, export, manifest, options, progress)?;
    let request = VerifyRequest { exported: Some(manifest.head()), progress: Some(progress) };
    let report = match verify::verify_folder(folder, options, request) {
        Err(VerifyError::Open(error)) => return Err(ExportError::Keys(error)),
        verified => verified?,
    };
    match report.damage {
        Some(damage) => Err(ExportError::ImportDamaged(damage)),
        None => Ok(report),
    }
}

fn put_keys(folder: &Path, export: &Path, master_key: Option<&Path>) -> Result<(), ExportError> {
    let keys_folder = folder.join(KEYS_FOLDER);
    fs::create_dir(&keys_folder).map_err(io_error("create", &keys_folder))?;
    let from = [Some(export.join(KEYS_FILE)), master_key.map(Path::to_owned)];
    for (name, from) in KEY_FILES.iter().zip(from.into_iter().flatten()) {
        let to = keys_folder.join(name);
        let mut source = fs::File::open(&from).map_err(io_error("open", &from))?;
        let mut copy = || -> io::Result<()> {
            let mut options = fs::File::options();
            let mut file = options.write(true).create_new(true).mode(OWNER_ONLY).open(&to)?;
            io::copy(&mut source, &mut file)?;
            file.sync_all()
        };
        copy().map_err(io_error("copy a key file to", &to))?;
    }
    let synced = fs::File::open(&keys_folder).and_then(|folder| folder.sync_all());
    synced.map_err(io_error("sync", &keys_folder))
}

fn write_log(
    folder: &Path,
    export: &Path,
    manifest: &Manifest,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), ExportError> {
    let parts = open::open(folder, options).map_err(ExportError::Keys)?;
    let mut follower = Follower::open(export, true)?;
    let (store, mut group) = (parts.store, Group::default());
    loop {
        match follower.step()?.map_err(|damage| ExportError::Damaged(Box::new(damage.into())))? {
            Step::Event(event) => group.add(*event, follower.walk.head)?,
            Step::Withheld => {}
            Step::End => break,
        }
        if group.is_full() {
            group.write(store.as_ref())?;
            progress(Progress { position: follower.walk.head.position, head: manifest.position });
        }
    }
    group.write(store.as_ref())?;
    let path = folder.join(WATERMARK_FILE);
    if let Some(mut watermark) = parts.watermark {
        let noted = watermark.note(follower.walk.head).and_then(|()| watermark.sync());
        noted.map_err(|source| ExportError::Keys(OpenError::Io { action: "write", path, source }))?;
    }
    Ok(())
}

/// Events that are written at once.
#[derive(Default)]
struct Group {
    events: Vec<StoredEvent>,
    bytes: usize,
    head: Option<Head>,
    tails: std::collections::BTreeMap<StreamId, Tail>,
}

impl Group {
    fn is_full(&self) -> bool {
        self.events.len() >= EVENTS_PER_COMMIT || self.bytes >= BYTES_PER_COMMIT_MAX
    }

    fn add(&mut self, event: RecordedEvent, head: Head) -> Result<(), StoreError> {
        let tail = Tail { seq: event.seq, hash: event.hash, position: event.position };
        self.tails.insert(event.stream.clone(), tail);
        let stored = stored(event)?;
        self.bytes += stored.record.len();
        self.events.push(stored);
        self.head = Some(head);
        Ok(())
    }

    fn write(&mut self, store: &dyn LogStore) -> Result<(), StoreError> {
        let Self { events, head, tails, .. } = std::mem::take(self);
        let (Some(first), Some(last), Some(head)) = (events.first(), events.last(), head) else {
            return Ok(());
        };
        let commit = Commit {
            first: first.event.position,
            last: head.position,
            chain: head.chain,
            committed_at: last.event.recorded_at,
        };
        store.commit(CommitGroup { commit, events, tails: tails.into_iter().collect(), keys: Vec::new() })
    }
}

/// The event with its bytes and what it is indexed under.
fn stored(event: RecordedEvent) -> Result<StoredEvent, StoreError> {
    let mut bytes = record::encode(&event)?;
    bytes.extend_from_slice(&event.hash);
    if !event.is_erased() {
        let hashes = event.hashes();
        return Ok(StoredEvent { event: Arc::new(event), record: bytes, hashes });
    }
    let unreadable = |source: DecodeError| StoreError::Damaged { what: "an erased event".to_owned(), source };
    let outline = record::outline(&bytes).map_err(unreadable)?;
    debug_assert_eq!(bytes.len(), record::hashed(&bytes).len() + HASH_BYTES);
    let stream = ScopeId(keys::stream_entry::hash(&event.stream));
    let hashes = EventHashes { stream, run: outline.run, task: outline.task };
    // The index has the tag of its type, which is all that is left of it.
    let seal = match outline.event_type {
        Type::Tag(type_tag) => {
            Seal::Opened(Opened { nonce: [0; 24], type_tag, key: SecretKey::new([0; 32]) })
        }
        Type::Plain(_) => Seal::None,
    };
    Ok(StoredEvent { event: Arc::new(RecordedEvent { seal, ..event }), record: bytes, hashes })
}
