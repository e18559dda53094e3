//! Copying what is stored up to a position, while others write behind it.

use std::{ops::ControlFlow, path::Path};

use super::{
    BackupError, BackupRequest, COMMITS_FILE, EVENTS_FILE, FileEntry, IDEMPOTENCY_FILE, KEYS_FILE,
    MASTER_FILE, Manifest, MasterKeyPlace,
    entries::{self, EntryWriter},
    io_error, manifest, thread_files,
    unfinished::Unfinished,
};
use crate::{
    blob::{self, Blobs},
    chain,
    codec::record::HASH_BYTES,
    engine::{Direction, Engine, KeyRange},
    format,
    keyring::Keyring,
    keys::{self, EVENTS, INDEX},
    position::Position,
    store::{Head, StoreError},
    verify::{Damage, DamageKind, Progress},
};

/// Pairs that are read at once, so that nobody is held up for long.
const PAGE: usize = 1_024;

/// Copies the log up to a head into a new folder. Everything up to a head is durable and never
/// changes, so that no snapshot is held while copying.
pub(crate) fn copy(
    engine: &Engine,
    keyring: &Keyring,
    head: Head,
    blobs: Option<&Blobs>,
    target: &Path,
    request: BackupRequest<'_>,
) -> Result<Manifest, BackupError> {
    let BackupRequest { taken_at, threads, progress } = request;
    let unfinished = Unfinished::begin(target)?;
    let folder = &unfinished.folder;
    let events = copy_events(engine, head, folder, progress)?;
    let (commits, commit_count) =
        copy_index(engine, folder, COMMITS_FILE, &keys::commit::prefix(), &mut |key, _| {
            Ok(keys::commit::decode(key).map_err(damaged("a commit"))? <= head.position)
        })?;
    let (idempotency, _) =
        copy_index(engine, folder, IDEMPOTENCY_FILE, &keys::idempotency::all(), &mut |_, value| {
            let key_use = keys::idempotency::decode_value(value).map_err(damaged("an idempotency key"))?;
            Ok(key_use.first <= head.position)
        })?;
    let copied = Progress { position: head.position, head: head.position };
    let mut may_go_on = || progress(copied);
    let threads = threads.map(|from| thread_files::copy(from, folder, &mut may_go_on)).transpose()?;
    if let Some(blobs) = blobs {
        blob::copy::copy(blobs.data(), folder).map_err(io_error("copy the blobs to", folder))?;
    }
    // The keys come last: see the module.
    let (master_key, keys) = copy_keys(keyring, folder)?;
    let mut files = vec![events, commits, idempotency];
    files.extend(keys);
    let threads = threads.map(|copied| copied.finish(folder, keyring)).transpose()?;
    let manifest = Manifest {
        format: manifest::FORMAT,
        log_format: format::FORMAT_VERSION,
        position: head.position,
        chain: head.chain,
        events: head.position.get(),
        commits: commit_count,
        taken_at,
        master_key,
        files,
        threads,
    };
    manifest.write(folder)?;
    unfinished.finish()?;
    Ok(manifest)
}

/// Copies every record, and proves on the way that they are those that the chain of the log covers.
fn copy_events(
    engine: &Engine,
    head: Head,
    folder: &Path,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<FileEntry, BackupError> {
    let mut out = EntryWriter::create(folder, EVENTS_FILE)?;
    let (mut position, mut log_chain) = (Position::ZERO, chain::START);
    while position < head.position {
        let first = keys::event::encode(position.next());
        let range = KeyRange::between(&first, &keys::event::encode(head.position));
        let page = engine.view().page(EVENTS, &range, Direction::Forward, PAGE)?;
        let missing = |position: Position| {
            BackupError::LogDamaged(Damage { position: position.next(), kind: DamageKind::Missing })
        };
        if page.is_empty() {
            return Err(missing(position));
        }
        for (key, record) in page {
            let hash = record.last_chunk::<HASH_BYTES>();
            let Some(hash) = hash.filter(|_| key == keys::event::encode(position.next())) else {
                return Err(missing(position));
            };
            log_chain = chain::log_chain(&log_chain, hash);
            out.put(&key, &record)?;
            position = position.next();
        }
        if progress(Progress { position, head: head.position }).is_break() {
            return Err(BackupError::Stopped);
        }
    }
    if log_chain != head.chain {
        return Err(BackupError::LogDamaged(Damage { position, kind: DamageKind::ChainDiffers }));
    }
    out.finish()
}

/// Says whether a pair is of the log up to the head.
type IsMeant<'a> = dyn FnMut(&[u8], &[u8]) -> Result<bool, BackupError> + 'a;

/// Copies the pairs of one kind that are meant. Gives their number too.
fn copy_index(
    engine: &Engine,
    folder: &Path,
    name: &'static str,
    prefix: &[u8],
    is_meant: &mut IsMeant<'_>,
) -> Result<(FileEntry, u64), BackupError> {
    let mut out = EntryWriter::create(folder, name)?;
    let (mut count, mut range) = (0, KeyRange::prefix(prefix));
    loop {
        let page = engine.view().page(INDEX, &range, Direction::Forward, PAGE)?;
        for (key, value) in &page {
            if is_meant(key, value)? {
                out.put(key, value)?;
                count += 1;
            }
        }
        match page.last() {
            Some((last, _)) if page.len() == PAGE => range = KeyRange::after(last, prefix),
            Some(_) | None => break,
        }
    }
    Ok((out.finish()?, count))
}

fn copy_keys(
    keyring: &Keyring,
    folder: &Path,
) -> Result<(MasterKeyPlace, impl Iterator<Item = FileEntry> + use<>), BackupError> {
    let keys_folder = folder.join("keys");
    std::fs::create_dir(&keys_folder).map_err(io_error("create", &keys_folder))?;
    let (keys, master) = (folder.join(KEYS_FILE), folder.join(MASTER_FILE));
    let mut keys_file = entries::create(&keys).map_err(io_error("create", &keys))?;
    let copied = keyring.copy_to(&mut keys_file).map_err(io_error("copy the keys to", &keys))?;
    let generated = copied.ok_or(BackupError::Unsupported)?.generated_master;
    let keys = entries::describe(folder, KEYS_FILE)?;
    let Some(from) = generated else {
        return Ok((MasterKeyPlace::Elsewhere, [Some(keys), None].into_iter().flatten()));
    };
    let copy_master = || {
        let mut file = entries::create(&master)?;
        std::io::copy(&mut std::fs::File::open(&from)?, &mut file)?;
        file.sync_all()
    };
    copy_master().map_err(io_error("copy the master key to", &master))?;
    let master = entries::describe(folder, MASTER_FILE)?;
    Ok((MasterKeyPlace::Included, [Some(keys), Some(master)].into_iter().flatten()))
}

fn damaged(what: &'static str) -> impl Fn(crate::DecodeError) -> BackupError {
    move |source| StoreError::Damaged { what: what.to_owned(), source }.into()
}
