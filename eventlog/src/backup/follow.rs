//! Following the chains through a backup, without a log: whatever is in it is what was recorded, or
//! the first bad position is named.

use std::{collections::HashMap, path::Path};

use super::{BackupError, COMMITS_FILE, EVENTS_FILE, Manifest, entries, entries::EntryReader, thread_files};
use crate::{
    chain::{self, Hash},
    codec::record::{self, HASH_BYTES, Outline},
    engine::Pair,
    keys,
    position::{Position, Seq},
    store::{Commit, Head, StoreError, Tail},
    stream_id::StreamId,
    verify::{Damage, DamageKind, ExportedHead, Progress, Report, VerifyRequest},
};

/// Events between two reports of progress.
const PROGRESS_EVENTS: u64 = 1_024;

/// Is shown each event with what it says in the clear, and each commit.
pub(super) trait Visitor {
    fn event(&mut self, outline: &Outline, pair: Pair) -> Result<(), BackupError>;
    fn commit(&mut self, pair: Pair) -> Result<(), BackupError>;
}

/// Proves that a backup is what was recorded: every hash, chain, commit and file.
pub fn verify_backup(folder: &Path, request: VerifyRequest<'_>) -> Result<Report, BackupError> {
    struct Measure(u64);
    impl Visitor for Measure {
        fn event(&mut self, _: &Outline, (_, record): Pair) -> Result<(), BackupError> {
            self.0 += record.len() as u64;
            Ok(())
        }
        fn commit(&mut self, _: Pair) -> Result<(), BackupError> {
            Ok(())
        }
    }
    let manifest = Manifest::read(folder)?;
    for file in manifest.files.iter().filter(|file| ![EVENTS_FILE, COMMITS_FILE].contains(&&*file.name)) {
        entries::check(folder, file)?;
    }
    thread_files::check(folder, &manifest)?;
    let mut measure = Measure(0);
    let tails = match follow(folder, &manifest, &mut measure, request) {
        Ok(tails) => tails,
        Err(BackupError::Damaged(damage)) => return Ok(Report::of_damage(damage)),
        Err(error) => return Err(error),
    };
    Ok(Report {
        head: manifest.head().into(),
        events: manifest.events,
        commits: manifest.commits,
        streams: tails.len() as u64,
        record_bytes: measure.0,
        blobs: 0,
        damage: None,
    })
}

/// Shows everything in order, each event after it was found to be right. Gives the ends of streams.
pub(super) fn follow(
    folder: &Path,
    manifest: &Manifest,
    visitor: &mut dyn Visitor,
    request: VerifyRequest<'_>,
) -> Result<HashMap<StreamId, Tail>, BackupError> {
    let mut events = EntryReader::open(folder, manifest.file(folder, EVENTS_FILE)?)?;
    let VerifyRequest { exported, mut progress } = request;
    let commits = EntryReader::open(folder, manifest.file(folder, COMMITS_FILE)?)?;
    let mut walk = Walk::new(commits, exported);
    while let Some(pair) = events.next()? {
        let outline = walk.event(&pair)?;
        visitor.event(&outline, pair)?;
        if let Some(commit) = walk.commit()? {
            visitor.commit(commit)?;
        }
        if let Some(progress) = &mut progress
            && walk.head.position.get().is_multiple_of(PROGRESS_EVENTS)
        {
            progress(Progress { position: walk.head.position, head: manifest.position });
        }
    }
    walk.finish(folder, manifest)
}

/// The state after the last event.
struct Walk {
    commits: EntryReader,
    /// A head that the log must have passed.
    exported: Option<ExportedHead>,
    head: Head,
    tails: HashMap<StreamId, Tail>,
    /// The commit that the next event is in, once it was read.
    open: Option<(Commit, Pair)>,
    commit_count: u64,
}

impl Walk {
    fn new(commits: EntryReader, exported: Option<ExportedHead>) -> Self {
        Self { commits, exported, head: Head::EMPTY, tails: HashMap::new(), open: None, commit_count: 0 }
    }

    /// Checks one event.
    fn event(&mut self, (key, record): &Pair) -> Result<Outline, BackupError> {
        let position = self.head.position.next();
        let bad = |kind| BackupError::Damaged(Damage { position, kind });
        let unreadable = |reason: String| bad(DamageKind::Unreadable { reason });
        if *key != keys::event::encode(position) {
            return Err(bad(DamageKind::Missing));
        }
        let outline = record::outline(record).map_err(|error| unreadable(error.to_string()))?;
        if outline.position != position {
            return Err(bad(DamageKind::Displaced { found: outline.position }));
        }
        let (hashed, hash) =
            record.split_last_chunk::<HASH_BYTES>().ok_or_else(|| unreadable("it has no hash".to_owned()))?;
        let before = self.tails.get(&outline.stream);
        let expected = before.map_or(Seq::ZERO, |tail| tail.seq).next();
        if outline.seq != expected {
            let (stream, found) = (outline.stream, outline.seq);
            return Err(bad(DamageKind::SeqGap { stream, expected, found }));
        }
        let previous: Hash = before.map_or(chain::START, |tail| tail.hash);
        if chain::event_hash(&previous, hashed) != *hash {
            return Err(bad(DamageKind::HashDiffers));
        }
        self.tails.insert(outline.stream.clone(), Tail { seq: outline.seq, hash: *hash, position });
        self.head = Head { position, chain: chain::log_chain(&self.head.chain, hash) };
        let passed = self.exported.filter(|exported| exported.position == position);
        if passed.is_some_and(|exported| exported.chain != self.head.chain) {
            return Err(bad(DamageKind::ExportDiffers));
        }
        Ok(outline)
    }

    /// The commit that ends with the last event, if one does.
    fn commit(&mut self) -> Result<Option<Pair>, BackupError> {
        let position = self.head.position;
        let bad = |kind| Err(BackupError::Damaged(Damage { position, kind }));
        let (commit, pair) = match self.open.take() {
            Some(open) => open,
            None => match self.next_commit()? {
                None => return bad(DamageKind::Uncommitted),
                Some((commit, _)) if commit.first != position => return bad(DamageKind::CommitMissing),
                Some(next) => next,
            },
        };
        if commit.last != position {
            self.open = Some((commit, pair));
            return Ok(None);
        }
        if commit.chain != self.head.chain {
            return bad(DamageKind::ChainDiffers);
        }
        self.commit_count += 1;
        Ok(Some(pair))
    }

    fn next_commit(&mut self) -> Result<Option<(Commit, Pair)>, BackupError> {
        let Some(pair) = self.commits.next()? else { return Ok(None) };
        let damaged = |source| StoreError::Damaged { what: "a commit".to_owned(), source };
        let last: Position = keys::commit::decode(&pair.0).map_err(damaged)?;
        let commit = keys::commit::decode_value(last, &pair.1).map_err(damaged)?;
        Ok(Some((commit, pair)))
    }

    /// Compares the end with what the manifest says.
    fn finish(mut self, folder: &Path, manifest: &Manifest) -> Result<HashMap<StreamId, Tail>, BackupError> {
        if self.open.is_some() || self.next_commit()?.is_some() {
            let position = self.head.position.next();
            return Err(BackupError::Damaged(Damage { position, kind: DamageKind::Missing }));
        }
        if self.head != manifest.head() {
            return Err(Manifest::differs(folder, "the events end elsewhere, or with another chain"));
        }
        if self.commit_count != manifest.commits {
            return Err(Manifest::differs(folder, "it has another number of commits"));
        }
        let end = self.head.position;
        if let Some(exported) = self.exported.filter(|exported| exported.position > end) {
            let kind = DamageKind::TailRemoved { exported: exported.position };
            return Err(BackupError::Damaged(Damage { position: end.next(), kind }));
        }
        Ok(self.tails)
    }
}
