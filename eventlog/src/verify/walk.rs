//! The walk over the whole log.
//!
//! ```text
//! reader ─ pages ─► link ─ jobs ─► workers (hashes, keys, what the indexes should hold)
//! two more threads add up what the indexes hold
//! ```

use std::{
    collections::HashSet,
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
    index::{Stored, Sums},
    link::{self, Link, Linked, Milestone},
};
use crate::{
    codec::record,
    engine::{Direction, Engine, EngineError, KeyRange, Pair},
    keyring::{Keyring, ScopeId},
    keys::{self, EVENTS},
    position::Position,
    store::{Head, StoreError},
};

/// Events that are read at once: about a megabyte.
const PAGE: usize = 1_024;
/// Pages and jobs that wait: enough to keep everybody busy, a few megabytes of memory.
const WAITING: usize = 4;
/// Workers at most. More than these wait for the reader.
const WORKERS_MAX: usize = 8;

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
    let stored =
        Stored { engine: subject.engine, head: subject.head.position, is_live: subject.is_live, stop: &stop };
    let mut link = Link::after(subject.engine, Head::EMPTY, milestones);
    let found = thread::scope(|scope| -> Result<Found, VerifyError> {
        let tasks = scope.spawn(move || stored.tasks());
        let others = scope.spawn(move || stored.streams_and_runs());
        let found = follow(subject, &mut link, &stop, &mut |position| {
            if let Some(progress) = &mut progress {
                progress(Progress { position, head: subject.head.position });
            }
        });
        if found.as_ref().map_or(true, |found| found.damage.is_some()) {
            stop.store(true, Ordering::Relaxed);
        }
        let (tasks, others) = (join(tasks)?, join(others)?);
        let mut found = found?;
        let mut sums = tasks?;
        sums.join(others?);
        found.stored = sums;
        Ok(found)
    })?;
    let damage = match found.damage {
        Some(damage) => Some(damage),
        None => check_indexes(subject, stored, &link, &found)?,
    };
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

fn follow(
    subject: &Subject<'_>,
    link: &mut Link<'_>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Position),
) -> Result<Found, VerifyError> {
    thread::scope(|scope| {
        let (pages, read) = mpsc::sync_channel(WAITING);
        let (jobs, taken) = mpsc::sync_channel(WAITING);
        let (engine, head, keyring) = (subject.engine, subject.head.position, subject.keyring);
        scope.spawn(move || read_pages(engine, head, &pages));
        let taken = Arc::new(Mutex::new(taken));
        let count = thread::available_parallelism().map_or(1, NonZero::get).min(WORKERS_MAX);
        let workers: Vec<_> = (0..count)
            .map(|_| {
                let taken = Arc::clone(&taken);
                scope.spawn(move || work(&taken, keyring, stop))
            })
            .collect();
        let followed = follow_pages(link, &read, &jobs, stop, progress);
        // Ends the reader and the workers.
        drop((read, jobs));
        let mut found = Found::default();
        for worker in workers {
            let worked = join(worker)?;
            found.expected.join(worked.expected);
            found.record_bytes += worked.record_bytes;
            found.damage = earlier(found.damage, worked.damage);
        }
        // Of two at one position, what the record itself says comes first.
        found.damage = earlier(found.damage, followed?.or_else(|| missing_end(subject, link)));
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

fn missing_end(subject: &Subject<'_>, link: &Link<'_>) -> Option<Damage> {
    let is_short = link.position < subject.head.position;
    is_short.then(|| Damage { position: link.position.next(), kind: DamageKind::Missing })
}

/// Reads the records up to the head.
fn read_pages(engine: &Engine, head: Position, pages: &SyncSender<Result<Vec<Pair>, EngineError>>) {
    let mut after = Position::ZERO;
    while after < head {
        let range = KeyRange::between(&keys::event::encode(after.next()), &keys::event::encode(head));
        let page = engine.view().page(EVENTS, &range, Direction::Forward, PAGE);
        let (is_end, count) = (!page.as_ref().is_ok_and(|page| page.len() == PAGE), PAGE as u64);
        if pages.send(page).is_err() || is_end {
            return;
        }
        // Where a record is missing, this is less than what was read: it is read twice, and the
        // missing one ends the walk.
        after = Position::new(after.get() + count);
    }
}

/// Follows the chains, and hands the records to the workers.
fn follow_pages(
    link: &mut Link<'_>,
    read: &Receiver<Result<Vec<Pair>, EngineError>>,
    jobs: &SyncSender<Vec<Linked>>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Position),
) -> Result<Option<Damage>, VerifyError> {
    while let Ok(page) = read.recv() {
        let mut job = Vec::with_capacity(PAGE);
        let damage = follow_page(link, page?, &mut job)?;
        // The workers are only gone when they are done for.
        if jobs.send(job).is_err() || damage.is_some() || stop.load(Ordering::Relaxed) {
            return Ok(damage);
        }
        progress(link.position);
    }
    Ok(None)
}

fn follow_page(
    link: &mut Link<'_>,
    page: Vec<Pair>,
    job: &mut Vec<Linked>,
) -> Result<Option<Damage>, StoreError> {
    for pair in page {
        match link.follow(pair)? {
            Ok(linked) => job.push(linked),
            Err(damage) => return Ok(Some(damage)),
        }
        if let Some(kind) = link.check_chain()? {
            return Ok(Some(Damage { position: link.position, kind }));
        }
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

fn work(jobs: &Mutex<Receiver<Vec<Linked>>>, keyring: &Keyring, stop: &AtomicBool) -> Worked {
    let mut worked = Worked::default();
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return worked };
        for linked in &job {
            if let Some(kind) = worked.check(linked, keyring) {
                let damage = Damage { position: linked.outline.position, kind };
                worked.damage = earlier(worked.damage.take(), Some(damage));
                stop.store(true, Ordering::Relaxed);
                break;
            }
        }
    }
}

impl Worked {
    fn check(&mut self, linked: &Linked, keyring: &Keyring) -> Option<DamageKind> {
        self.record_bytes += linked.record.len() as u64;
        if !link::hash_fits(linked) {
            return Some(DamageKind::HashDiffers);
        }
        self.expected.expect(&linked.outline, &linked.record);
        if !record::is_sealed(&linked.record) {
            return None;
        }
        let scope =
            linked.outline.run.unwrap_or_else(|| ScopeId(keys::stream_entry::hash(&linked.outline.stream)));
        let is_opened = !self.tried.insert(scope) || record::decode(&linked.record, keyring).is_ok();
        (!is_opened).then_some(DamageKind::KeyLost)
    }
}

/// What can be said when the records themselves are whole.
fn check_indexes(
    subject: &Subject<'_>,
    stored: Stored<'_>,
    link: &Link<'_>,
    found: &Found,
) -> Result<Option<Damage>, VerifyError> {
    if !subject.is_live && has_event_behind(subject)? {
        let position = subject.head.position.next();
        return Ok(Some(Damage { position, kind: DamageKind::Uncommitted }));
    }
    let index = stored.find_first(&found.expected, &found.stored)?;
    let tails = stored.check_tails(&link.tails)?;
    match earlier(index, tails) {
        Some(damage) => Ok(Some(damage)),
        None => Ok(stored.check_rest(link.tails.len())?),
    }
}

fn has_event_behind(subject: &Subject<'_>) -> Result<bool, EngineError> {
    let range = KeyRange::after(&keys::event::encode(subject.head.position), &keys::event::prefix());
    Ok(!subject.engine.view().page(EVENTS, &range, Direction::Forward, 1)?.is_empty())
}

/// A thread of the walk that panicked is a defect, and goes on as one.
fn join<T>(handle: ScopedJoinHandle<'_, T>) -> Result<T, VerifyError> {
    handle.join().map_err(|panic| std::panic::resume_unwind(panic))
}
