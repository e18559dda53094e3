//! The walk over the whole log.
//!
//! ```text
//! reader ─ frames ─► link ─ jobs ─► workers (hashes, keys, what the index should hold)
//! two more threads add up what the tables of the index hold
//! ```

use std::{
    collections::{HashMap, HashSet},
    num::NonZero,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
    thread::{self, ScopedJoinHandle},
};

use super::{
    Damage, DamageKind, Progress, Report, Subject, VerifyError, VerifyRequest,
    index::{self, Stored, Sums},
    link::{self, Link, Linked, Milestone},
};
use crate::{
    codec::record,
    keyring::{Keyring, ScopeId},
    keys,
    position::Position,
    segment::{
        SegmentError, Segments, Walk,
        frame::{Frame, Header},
    },
    store::{Head, StoreError, Tail},
    stream_id::StreamId,
};

/// Bytes of frames that are handed on at once.
const PAGE_BYTES: usize = 1024 * 1024;
/// Pages and jobs that wait: enough to keep everybody busy, a few megabytes of memory.
const WAITING: usize = 4;
/// Workers at most. More than these wait for the reader.
const WORKERS_MAX: usize = 8;

/// Frames with their bytes.
type Page = Vec<(Header, Arc<[u8]>)>;

/// Walks over the log, and names the first thing that is wrong.
pub(super) fn walk(subject: &Subject<'_>, request: VerifyRequest<'_>) -> Result<Report, VerifyError> {
    let VerifyRequest { exported, mut progress } = request;
    let exported = exported.map(|exported| Head { position: exported.position, chain: exported.chain });
    if let Some(damage) = too_short(subject, exported) {
        return Ok(Report { head: subject.head.into(), ..Report::of_damage(damage) });
    }
    let milestones = [(subject.noted, DamageKind::HeadDiffers), (exported, DamageKind::ExportDiffers)]
        .into_iter()
        .filter_map(|(head, differs)| head.map(|head| Milestone { head, differs }))
        .collect();
    let stop = AtomicBool::new(false);
    let stored = subject.index.map(|(index, checkpoint)| Stored { index, checkpoint, stop: &stop });
    let mut following =
        Following { link: Link::new(milestones), stored, tails: None, expected: Sums::default() };
    following.note_tails();
    let found = thread::scope(|scope| -> Result<Found, VerifyError> {
        let tasks = stored.map(|stored| scope.spawn(move || stored.tasks()));
        let others = stored.map(|stored| scope.spawn(move || stored.others()));
        let found = follow(subject, &mut following, &stop, &mut |position| {
            if let Some(progress) = &mut progress {
                progress(Progress { position, head: subject.head.position });
            }
        });
        if found.as_ref().map_or(true, |found| found.damage.is_some()) {
            stop.store(true, Ordering::Relaxed);
        }
        let mut sums = Sums::default();
        for adding in [tasks, others].into_iter().flatten() {
            sums.join(join(adding)??);
        }
        Ok(Found { stored: sums, ..found? })
    })?;
    let damage = match (found.damage.clone(), stored) {
        (None, Some(stored)) => check_index(subject, stored, &following, &found)?,
        (damage, _) => damage,
    };
    let link = &following.link;
    Ok(Report {
        head: subject.head.into(),
        events: damage.as_ref().map_or(link.position.get(), |damage| damage.position.get().saturating_sub(1)),
        commits: link.commit_count,
        streams: link.tails.len() as u64,
        record_bytes: found.record_bytes,
        blobs: 0,
        damage,
    })
}

/// Whether the log ends before it did.
fn too_short(subject: &Subject<'_>, exported: Option<Head>) -> Option<Damage> {
    let end = subject.head.position;
    let missing = |kind| Some(Damage { position: end.next(), kind });
    if let Some(noted) = subject.noted.filter(|noted| noted.position > end) {
        return missing(DamageKind::HeadBehind { noted: noted.position });
    }
    let exported = exported.filter(|exported| exported.position > end)?;
    missing(DamageKind::TailRemoved { exported: exported.position })
}

/// What the walk found.
#[derive(Default)]
struct Found {
    damage: Option<Damage>,
    record_bytes: u64,
    expected: Sums,
    stored: Sums,
}

/// What is followed in order.
struct Following<'a> {
    link: Link,
    stored: Option<Stored<'a>>,
    /// The ends of streams as of the index's checkpoint, once it was passed.
    tails: Option<HashMap<StreamId, Tail>>,
    /// Commits and idempotency keys that the index should hold.
    expected: Sums,
}

impl Following<'_> {
    fn note_tails(&mut self) {
        if let Some(stored) = self.stored
            && stored.checkpoint.head.position == self.link.position
        {
            self.tails = Some(self.link.tails.clone());
        }
    }

    fn follow(&mut self, page: Page, job: &mut Vec<Linked>) -> Option<Damage> {
        for (header, bytes) in page {
            let frame = Frame { header, bytes: &bytes };
            if let Err((position, kind)) = self.link.follow(&frame, &bytes, job) {
                return Some(Damage { position, kind });
            }
            if self.stored.is_some_and(|stored| stored.covers(self.link.position)) {
                let expected = &mut self.expected;
                index::commit_entries(&frame, &mut |index, key, value| expected.add(index, key, value));
            }
            self.note_tails();
        }
        None
    }
}

fn follow(
    subject: &Subject<'_>,
    following: &mut Following<'_>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Position),
) -> Result<Found, VerifyError> {
    let stored = following.stored;
    thread::scope(|scope| {
        let (pages, read) = mpsc::sync_channel(WAITING);
        let (jobs, taken) = mpsc::sync_channel(WAITING);
        let (segments, head, keyring) = (subject.segments, subject.head.position, subject.keyring);
        scope.spawn(move || read_pages(segments, head, &pages));
        let taken = Arc::new(Mutex::new(taken));
        let count = thread::available_parallelism().map_or(1, NonZero::get).min(WORKERS_MAX);
        let workers: Vec<_> = (0..count)
            .map(|_| {
                let taken = Arc::clone(&taken);
                scope.spawn(move || work(&taken, keyring, stored, stop))
            })
            .collect();
        let followed = follow_pages(following, &read, &jobs, stop, progress);
        // Ends the reader and the workers.
        drop((read, jobs));
        let mut found = Found { expected: following.expected, ..Found::default() };
        for worker in workers {
            let worked = join(worker)?;
            found.expected.join(worked.expected);
            found.record_bytes += worked.record_bytes;
            found.damage = earlier(found.damage, worked.damage);
        }
        // Of two at one position, what the record itself says comes first.
        found.damage = earlier(found.damage, followed?.or_else(|| missing_end(subject, &following.link)));
        Ok(found)
    })
}

/// The earlier of two; of two at one position the first.
fn earlier(one: Option<Damage>, other: Option<Damage>) -> Option<Damage> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.position < one.position { other } else { one }),
        (one, other) => one.or(other),
    }
}

fn missing_end(subject: &Subject<'_>, link: &Link) -> Option<Damage> {
    let is_short = link.position < subject.head.position;
    is_short.then(|| Damage { position: link.position.next(), kind: DamageKind::Missing })
}

/// Reads the frames up to the head.
fn read_pages(segments: &Segments, head: Position, pages: &SyncSender<Result<Page, SegmentError>>) {
    let mut walk = Walk::new(segments.clone(), 0, Some(Position::new(1)));
    let (mut page, mut bytes, mut last) = (Page::new(), 0, Position::ZERO);
    while last < head {
        match walk.next() {
            Ok(Some(frame)) => {
                last = frame.header.commit().last;
                bytes += frame.bytes.len();
                page.push((frame.header, Arc::from(frame.bytes)));
            }
            Ok(None) => break,
            Err(error) => {
                // What was read before it is looked at first; nobody may be left to be told.
                drop(pages.send(Ok(page)).and_then(|()| pages.send(Err(error))));
                return;
            }
        }
        if bytes >= PAGE_BYTES {
            bytes = 0;
            if pages.send(Ok(std::mem::take(&mut page))).is_err() {
                return;
            }
        }
    }
    drop(pages.send(Ok(page)));
}

/// Follows the chains, and hands the records to the workers.
fn follow_pages(
    following: &mut Following<'_>,
    read: &Receiver<Result<Page, SegmentError>>,
    jobs: &SyncSender<Vec<Linked>>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Position),
) -> Result<Option<Damage>, VerifyError> {
    while let Ok(page) = read.recv() {
        let page = match page {
            Ok(page) => page,
            Err(SegmentError::Damaged { path, at, what, .. }) => {
                let segment = path.display().to_string();
                let kind = DamageKind::Segment { segment, at, what: what.to_string() };
                return Ok(Some(Damage { position: following.link.position.next(), kind }));
            }
            Err(error) => return Err(StoreError::from(error).into()),
        };
        let mut job = Vec::new();
        let damage = following.follow(page, &mut job);
        // The workers are only gone when they are done for.
        if jobs.send(job).is_err() || damage.is_some() || stop.load(Ordering::Relaxed) {
            return Ok(damage);
        }
        progress(following.link.position);
    }
    Ok(None)
}

/// What one worker found.
#[derive(Default)]
struct Worked {
    damage: Option<Damage>,
    record_bytes: u64,
    expected: Sums,
    /// Scopes whose key was tried.
    tried: HashSet<ScopeId>,
}

fn work(
    jobs: &Mutex<Receiver<Vec<Linked>>>,
    keyring: Option<&Keyring>,
    stored: Option<Stored<'_>>,
    stop: &AtomicBool,
) -> Worked {
    let mut worked = Worked::default();
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return worked };
        for linked in &job {
            if let Some(kind) = worked.check(linked, keyring, stored) {
                let damage = Damage { position: linked.outline.position, kind };
                worked.damage = earlier(worked.damage.take(), Some(damage));
                stop.store(true, Ordering::Relaxed);
                break;
            }
        }
    }
}

impl Worked {
    fn check(
        &mut self,
        linked: &Linked,
        keyring: Option<&Keyring>,
        stored: Option<Stored<'_>>,
    ) -> Option<DamageKind> {
        let record = linked.record();
        self.record_bytes += record.len() as u64;
        if !link::hash_fits(linked) {
            return Some(DamageKind::HashDiffers);
        }
        if stored.is_some_and(|stored| stored.covers(linked.outline.position)) {
            let sums = &mut self.expected;
            index::event_entries(&linked.outline, linked.location, record, &mut |index, key, value| {
                sums.add(index, key, value);
            });
        }
        let keyring = keyring.filter(|_| record::is_sealed(record))?;
        let scope =
            linked.outline.run.unwrap_or_else(|| ScopeId(keys::stream_entry::hash(&linked.outline.stream)));
        let is_opened = !self.tried.insert(scope) || record::decode(record, keyring).is_ok();
        (!is_opened).then_some(DamageKind::KeyLost)
    }
}

/// What can be said when the records themselves are whole.
fn check_index(
    subject: &Subject<'_>,
    stored: Stored<'_>,
    following: &Following<'_>,
    found: &Found,
) -> Result<Option<Damage>, VerifyError> {
    let entries = stored.find_first(subject.segments, &found.expected, &found.stored)?;
    let tails = match &following.tails {
        Some(tails) => stored.check_tails(tails)?,
        // Every walk without damage passes the checkpoint.
        None => None,
    };
    Ok(earlier(entries, tails))
}

/// A thread of the walk that panicked is a defect, and goes on as one.
fn join<T>(handle: ScopedJoinHandle<'_, T>) -> Result<T, VerifyError> {
    handle.join().map_err(|panic| std::panic::resume_unwind(panic))
}
