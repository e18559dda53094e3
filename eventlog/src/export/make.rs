//! Making an export, from the beginning or from where an interruption left it.

use std::{
    collections::{HashMap, HashSet},
    ops::ControlFlow,
    path::Path,
};

use domain::ids::RunId;
use jiff::Timestamp;

use super::{
    EVENTS_FILE, ExportError, Filter, HASHES_FILE, KEYS_FILE, MANIFEST_FILE, Manifest, SIGNATURE_FILE,
    SigningKey,
    follow::{self, Follower, Step},
    io_error,
    line::{self, Entry},
    manifest::{self, write_file},
    output::{OWNER_ONLY, Output},
    outputs::{self, NamedOutputs},
    place::Place,
    walk::Walk,
};
use crate::{
    ReplayError,
    backup::FileEntry,
    blob::{self, copy::MayGoOn},
    chain::{self, Hash},
    format,
    log::EventLog,
    position::{Position, Seq},
    recorded::RecordedEvent,
    store::Head,
    stream_id::StreamId,
    verify::Progress,
};

/// Events that are read at once, so that nobody is held up for long.
const PAGE: usize = 1_024;
/// How often an export begins anew because threads were erased meanwhile, of which it has text.
const ATTEMPTS_MAX: u32 = 3;

/// Is told how far it is, and says whether to go on.
type OnProgress<'a> = dyn FnMut(Progress) -> ControlFlow<()> + 'a;

/// What is exported, and where to.
pub struct ExportRequest<'a> {
    /// A folder that is not there yet.
    pub target: &'a Path,
    /// Which events.
    pub filter: Filter,
    /// Whether the outputs that its events name are written beside them, in plain.
    pub with_blobs: bool,
    /// Whether what an interruption left there is thrown away.
    pub is_anew: bool,
    /// Signs it.
    pub key: &'a SigningKey,
    /// When.
    pub made_at: Timestamp,
    /// The program, with its version.
    pub made_by: String,
    /// Is told after every page, and says whether to go on. What is stopped is gone on with by the next
    /// export to the same place.
    pub progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
}

/// An export that is in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// What it holds.
    pub manifest: Manifest,
    /// The position up to which an earlier attempt had come; zero if there was none.
    pub resumed_after: Position,
}

/// Exports the log up to its present head, while others read and write. It takes as long as reading
/// the whole log: call it outside of async code. What an error or a crash leaves is gone on with by
/// the next call for the same place and filter.
pub fn export(log: &EventLog, mut request: ExportRequest<'_>) -> Result<Made, ExportError> {
    let place = Place::begin(request.target, &request.filter, request.is_anew)?;
    for attempt in 0..ATTEMPTS_MAX {
        let making = Making::begin(log, &request.filter, &place)?;
        let resumed_after = if attempt == 0 { making.walk.head.position } else { Position::ZERO };
        if let Some(manifest) = making.finish(&place, &mut request)? {
            place.finish()?;
            return Ok(Made { manifest, resumed_after });
        }
        place.clear()?;
    }
    Err(ExportError::ErasedMeanwhile { attempts: ATTEMPTS_MAX })
}

/// The state after the last event that was looked at.
struct Making<'a> {
    log: &'a EventLog,
    filter: Filter,
    events: Output,
    hashes: Option<Output>,
    walk: Walk,
    tails: HashMap<StreamId, (Seq, Hash)>,
    /// The runs of each stream whose text was written down.
    opened: HashMap<StreamId, HashSet<Option<RunId>>>,
    outputs: NamedOutputs,
}

impl<'a> Making<'a> {
    /// Goes on behind what is there and right.
    fn begin(log: &'a EventLog, filter: &Filter, place: &Place) -> Result<Self, ExportError> {
        let mut follower = Follower::open(&place.folder, filter.is_empty())?;
        let (mut opened, mut outputs) = (HashMap::new(), NamedOutputs::default());
        loop {
            match follower.step()? {
                Ok(Step::Event(event)) => {
                    note_opened(&mut opened, &event);
                    outputs.note(&event);
                }
                Ok(Step::Withheld) => {}
                // What is not right is written again, and all that follows it.
                Ok(Step::End) | Err(_) => break,
            }
        }
        if is_any_erased(log, &opened) {
            place.clear()?;
            (follower, opened) = (Follower::open(&place.folder, filter.is_empty())?, HashMap::new());
            outputs = NamedOutputs::default();
        }
        let Follower { events, hashes, walk, .. } = follower;
        let events = Output::after(&place.folder, EVENTS_FILE, events.as_ref())?;
        let hashes = match filter.is_empty() {
            true => None,
            false => Some(Output::after(&place.folder, HASHES_FILE, hashes.as_ref())?),
        };
        let tail = |entry: &super::StreamEntry| (entry.stream.clone(), (entry.last_seq, entry.hash));
        let tails = walk.streams.values().map(tail).collect();
        Ok(Self { log, filter: filter.clone(), events, hashes, walk, tails, opened, outputs })
    }

    /// Writes the rest, and signs it. None if text of it was erased meanwhile.
    fn finish(
        mut self,
        place: &Place,
        request: &mut ExportRequest<'_>,
    ) -> Result<Option<Manifest>, ExportError> {
        let exported = self.log.exported_head()?;
        let head = Head { position: exported.position, chain: exported.chain };
        self.copy(head, request.progress)?;
        if self.walk.head != head {
            return Err(ExportError::OtherLog { folder: place.folder.clone() });
        }
        let Self { log, filter, events, hashes, walk, opened, outputs, .. } = self;
        let mut files = vec![events.finish()?];
        files.extend(hashes.map(Output::finish).transpose()?);
        let reached = Progress { position: head.position, head: head.position };
        outputs::remove_unwanted(&place.folder, request.with_blobs)?;
        let outputs = if request.with_blobs { outputs } else { NamedOutputs::default() };
        let outputs = match outputs.write(log, &place.folder, &mut || (request.progress)(reached)) {
            Err(ExportError::Output { .. }) if is_any_erased(log, &opened) => return Ok(None),
            written => written?,
        };
        // The keys come last, so that none is missing that an event needs.
        let mut blobs = Vec::new();
        if filter.is_empty() {
            blobs = copy_blobs(log, head.position, &place.folder, &mut || (request.progress)(reached))?;
            files.extend(copy_keys(log, &place.folder)?);
        }
        if is_any_erased(log, &opened) {
            return Ok(None);
        }
        let manifest = Manifest {
            format: manifest::FORMAT,
            log_format: format::FORMAT_VERSION,
            made_at: request.made_at,
            made_by: request.made_by.clone(),
            filter,
            position: head.position,
            chain: head.chain,
            events: walk.events,
            erased: walk.erased,
            withheld: head.position.get() - walk.events,
            streams: walk.streams.into_values().collect(),
            files,
            blobs,
            outputs,
            public_key: request.key.public_key(),
        };
        sign(&manifest, request.key, &place.folder)?;
        Ok(Some(manifest))
    }

    /// Reads on up to a head. Each event is checked against the one before it.
    fn copy(&mut self, head: Head, progress: &mut OnProgress<'_>) -> Result<(), ExportError> {
        let mut replay = self.log.replay(self.walk.head.position)?;
        while self.walk.head.position < head.position {
            let page = replay.next_page(PAGE).map_err(ExportError::LogDamaged)?;
            if page.is_empty() {
                let missing = ReplayError::Missing { position: self.walk.next_position() };
                return Err(ExportError::LogDamaged(missing));
            }
            for event in page.iter().take_while(|event| event.position <= head.position) {
                self.put(event)?;
            }
            let reached = Progress { position: self.walk.head.position, head: head.position };
            if progress(reached).is_break() {
                return Err(ExportError::Stopped);
            }
        }
        Ok(())
    }

    fn put(&mut self, event: &RecordedEvent) -> Result<(), ExportError> {
        let previous = self.previous(event)?;
        match self.tails.get_mut(&event.stream) {
            Some(tail) => *tail = (event.seq, event.hash),
            None => drop(self.tails.insert(event.stream.clone(), (event.seq, event.hash))),
        }
        let is_here = self.filter.admits(event);
        if let Some(hashes) = &mut self.hashes {
            hashes.put(&Entry { is_here, hash: event.hash }.compose())?;
        }
        if !is_here {
            self.walk.pass(&event.hash);
            return Ok(());
        }
        let unwritable = |source| ExportError::Unwritable { position: event.position, source };
        self.events.put(&line::compose(event, &previous).map_err(unwritable)?)?;
        note_opened(&mut self.opened, event);
        self.outputs.note(event);
        self.walk.take(event);
        Ok(())
    }

    /// The hash before an event in its stream.
    fn previous(&self, event: &RecordedEvent) -> Result<Hash, ExportError> {
        let before = event.seq.get() - 1;
        if before == 0 {
            return Ok(chain::START);
        }
        match self.tails.get(&event.stream) {
            Some((seq, hash)) if seq.get() == before => Ok(*hash),
            // It was passed before an interruption.
            Some(_) | None => {
                let found = self.log.read_stream(&event.stream, Seq::new(before - 1), 1)?;
                let missing = || ReplayError::Missing { position: event.position };
                Ok(found.first().ok_or_else(missing).map_err(ExportError::LogDamaged)?.hash)
            }
        }
    }
}

fn note_opened(opened: &mut HashMap<StreamId, HashSet<Option<RunId>>>, event: &RecordedEvent) {
    if event.is_erased() {
        return;
    }
    if opened.get(&event.stream).is_none_or(|runs| !runs.contains(&event.scope.run_id)) {
        opened.entry(event.stream.clone()).or_default().insert(event.scope.run_id.clone());
    }
}

/// Whether text that was written down belongs to a thread or run that is erased now.
fn is_any_erased(log: &EventLog, opened: &HashMap<StreamId, HashSet<Option<RunId>>>) -> bool {
    let threads = opened.iter().filter_map(|(stream, runs)| Some((stream.thread_id()?, runs)));
    threads.into_iter().any(|(thread_id, runs)| {
        let is_erased = |run_id: &RunId| log.is_run_erased(thread_id, run_id);
        log.is_erased(thread_id) || runs.iter().flatten().any(is_erased)
    })
}

/// Copies the blobs of a log that has a folder, sealed as they are. One that an event names and that is
/// not whole ends the export.
fn copy_blobs(
    log: &EventLog,
    head: Position,
    folder: &Path,
    may_go_on: &mut MayGoOn<'_>,
) -> Result<Vec<FileEntry>, ExportError> {
    let Some(blobs) = log.blobs() else { return Ok(Vec::new()) };
    let copied = blob::copy::copy(blobs.data(), folder, None, may_go_on);
    if copied.map_err(io_error("copy the blobs to", folder))?.is_break() {
        return Err(ExportError::Stopped);
    }
    if let Some(damage) = log.first_damaged_blob(head, folder)? {
        return Err(ExportError::BlobDamaged(damage));
    }
    let names = blob::copy::files(folder).map_err(io_error("list the blobs in", folder))?;
    let described = names.iter().map(|name| describe(folder, &name.to_string_lossy()));
    described.filter_map(Result::transpose).collect()
}

/// What a file of the export holds; none if it is gone.
fn describe(folder: &Path, name: &str) -> Result<Option<FileEntry>, ExportError> {
    let described = follow::hash_of(&folder.join(name))?;
    Ok(described.map(|(bytes, blake3)| FileEntry { name: name.to_owned(), bytes, blake3 }))
}

/// Copies the wrapped keys of a log that has a folder.
fn copy_keys(log: &EventLog, folder: &Path) -> Result<Option<FileEntry>, ExportError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let path = folder.join(KEYS_FILE);
    let mut options = std::fs::File::options();
    let file = options.write(true).create(true).truncate(true).mode(OWNER_ONLY).open(&path);
    let mut file = file.map_err(io_error("create", &path))?;
    let copied = log.keyring().copy_to(&mut file).map_err(io_error("copy the keys to", &path))?;
    if copied.is_none() {
        std::fs::remove_file(&path).map_err(io_error("remove", &path))?;
        return Ok(None);
    }
    describe(folder, KEYS_FILE)
}

fn sign(manifest: &Manifest, key: &SigningKey, folder: &Path) -> Result<(), ExportError> {
    let unwritable = |source| ExportError::Unwritable { position: manifest.position, source };
    let bytes = manifest.to_bytes().map_err(unwritable)?;
    write_file(&folder.join(MANIFEST_FILE), &bytes)?;
    write_file(&folder.join(SIGNATURE_FILE), &key.sign(&bytes).map_err(unwritable)?)
}
