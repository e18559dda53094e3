//! The one writer: a thread that takes what is queued, plans it, commits it with one sync, and
//! answers all.
//!
//! Refusals are answered after the commit as well, since they may depend on events in it. After a
//! failed commit the log is poisoned: everybody gets that answer, and nothing is tried again.

use std::{error::Error, sync::Arc, time::Instant};

use domain::{
    causes::with_causes,
    ids::{RunHash, ThreadId},
};
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    append::{AppendError, Appended},
    condition::{Committed, Condition},
    erase::{self, EraseError},
    options::Clock,
    plan::{Checked, Planner, Verdict},
    position::Position,
    recorded::RecordedEvent,
    space::{Shortage, Space},
    store::{CommitGroup, LogStore},
    stream_id::StreamId,
    watermark::Watermark,
};

/// Appends that may wait for the writer. Enough to fill one commit while another is syncing; a
/// caller that finds it full waits, which passes the pressure on.
pub(crate) const WRITER_QUEUE: usize = 1_024;
/// Appends that share one commit at most, so that the first of them does not wait for ever.
const GROUP_APPENDS_MAX: usize = 1_024;
/// Bodies that share one commit at most. A group is passed once it is reached, so a group is
/// never larger than this and one append.
const GROUP_BYTES_MAX: usize = 16 * 1024 * 1024;

type Reply = oneshot::Sender<Result<Appended, AppendError>>;

/// What is sent to the writer.
pub(crate) enum Request {
    /// Record this.
    Append(Box<AppendRequest>),
    /// Record what was queued before, then destroy a key.
    Erase(Box<EraseRequest>),
    /// Record what was queued before, then stop. The sender is dropped when all is released.
    Close(oneshot::Sender<()>),
}

/// An append and where its answer goes.
pub(crate) struct AppendRequest {
    pub(crate) checked: Checked,
    pub(crate) reply: Reply,
}

/// A thread, or a run on it, that is to be erased, and where the answer goes.
pub(crate) struct EraseRequest {
    pub(crate) thread_id: ThreadId,
    pub(crate) run: Option<RunHash>,
    pub(crate) reply: oneshot::Sender<Result<bool, EraseError>>,
}

/// What is to be done after a group.
enum Then {
    Continue,
    Erase(Box<EraseRequest>),
    Close(oneshot::Sender<()>),
}

/// Everything that the writer's thread owns.
pub(crate) struct Writer {
    pub(crate) queue: mpsc::Receiver<Request>,
    pub(crate) store: Arc<dyn LogStore>,
    pub(crate) planner: Planner,
    pub(crate) head: watch::Sender<Position>,
    pub(crate) condition: Arc<Condition>,
    pub(crate) clock: Clock,
    pub(crate) watermark: Option<Watermark>,
    /// None if nothing is written to a disk.
    pub(crate) space: Option<Space>,
}

impl Writer {
    /// Writes until it is told to close or nobody is left to write for.
    pub(crate) fn run(mut self) {
        let on_panic = PoisonOnPanic(Arc::clone(&self.condition));
        let mut closing = None;
        while closing.is_none()
            && let Some(first) = self.queue.blocking_recv()
        {
            let (appends, then) = self.gather(first);
            self.write(appends);
            match then {
                Then::Continue => {}
                Then::Erase(request) => self.erase(*request),
                Then::Close(done) => closing = Some(done),
            }
        }
        self.finish();
        drop(on_panic);
        drop(self);
        drop(closing);
    }

    /// Takes what is queued, up to the size of a group.
    fn gather(&mut self, first: Request) -> (Vec<AppendRequest>, Then) {
        let (mut appends, mut bytes) = (Vec::new(), 0);
        let mut next = Some(first);
        while let Some(request) = next {
            match request {
                Request::Close(done) => return (appends, Then::Close(done)),
                Request::Erase(request) => return (appends, Then::Erase(request)),
                Request::Append(append) => {
                    bytes += append.checked.body_bytes();
                    appends.push(*append);
                }
            }
            let is_full = appends.len() >= GROUP_APPENDS_MAX || bytes >= GROUP_BYTES_MAX;
            next = if is_full { None } else { self.queue.try_recv().ok() };
        }
        (appends, Then::Continue)
    }

    /// Destroys keys between two groups, so that no group has events that were sealed before and
    /// are committed after.
    fn erase(&self, request: EraseRequest) {
        let EraseRequest { thread_id, run, reply } = request;
        drop(reply.send(erase::erase(&*self.store, &thread_id, run)));
    }

    /// Plans, commits and answers one group.
    fn write(&mut self, appends: Vec<AppendRequest>) {
        if let Some(reason) = self.condition.poison_reason() {
            return answer_poisoned(appends.into_iter().map(|append| append.reply), &reason);
        }
        let appends = self.refuse_for_space(appends);
        let now = (self.clock)();
        let answers: Vec<(Reply, Verdict)> = appends
            .into_iter()
            .map(|append| (append.reply, self.planner.admit(append.checked, now)))
            .collect();
        let Some(group) = self.planner.take_group(now) else {
            return answer(answers, &[]);
        };
        let events: Vec<_> = group.events.iter().map(|stored| Arc::clone(&stored.event)).collect();
        match self.commit(group, &answers) {
            Ok(()) => {
                answer(answers, &events);
                self.mark();
            }
            Err(reason) => answer_poisoned(answers.into_iter().map(|(reply, _)| reply), &reason),
        }
    }

    /// Answers what there is no room for, and gives the rest. The registry's appends are small, and
    /// erasures, which free space, begin with one.
    fn refuse_for_space(&mut self, appends: Vec<AppendRequest>) -> Vec<AppendRequest> {
        let Some(shortage) = self.space.as_mut().and_then(Space::shortage) else {
            return appends;
        };
        let is_let_through = |append: &AppendRequest| *append.checked.stream() == StreamId::Registry;
        let (taken, refused): (Vec<_>, Vec<_>) = appends.into_iter().partition(is_let_through);
        for append in refused {
            let Shortage { folder, free_bytes, reserve_bytes } = shortage.clone();
            drop(append.reply.send(Err(AppendError::DiskFull { folder, free_bytes, reserve_bytes })));
        }
        taken
    }

    /// Commits the group and publishes the new head, or poisons the log.
    fn commit(&mut self, group: CommitGroup, answers: &[(Reply, Verdict)]) -> Result<(), Arc<str>> {
        let last = group.commit.last;
        let events = group.events.len() as u64;
        let record_bytes = group.events.iter().map(|stored| stored.record.len() as u64).sum();
        let appends =
            answers.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Accepted(_))).count() as u64;
        let started = Instant::now();
        if let Err(error) = self.store.keyring().save() {
            return Err(self.poison("the keys of new threads and runs could not be saved", &error));
        }
        if let Err(error) = self.store.commit(group) {
            return Err(self.poison("a commit failed", &error));
        }
        let sync_micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.condition.count(Committed { appends, events, record_bytes, sync_micros });
        self.head.send_replace(last);
        Ok(())
    }

    /// Notes the head outside the log. It may lag behind the log, never the other way round.
    fn mark(&mut self) {
        let head = self.planner.head();
        if let Some(watermark) = &mut self.watermark
            && let Err(error) = watermark.note(head)
        {
            self.poison("the head watermark could not be written", &error);
        }
    }

    fn finish(&mut self) {
        self.queue.close();
        while let Some(request) = self.queue.blocking_recv() {
            match request {
                Request::Append(append) => drop(append.reply.send(Err(AppendError::Closed))),
                Request::Erase(request) => drop(request.reply.send(Err(EraseError::Closed))),
                Request::Close(done) => drop(done),
            }
        }
        if let Some(watermark) = &self.watermark
            && let Err(error) = watermark.sync()
        {
            self.poison("the head watermark could not be synced", &error);
        }
    }

    fn poison(&self, what: &str, error: &dyn Error) -> Arc<str> {
        let reason = format!("{what}: {}", with_causes(error));
        tracing::error!(%reason, "the log takes no more writes");
        self.condition.poison(&reason)
    }
}

/// A caller that went away misses its answer; what it appended stays.
fn answer(answers: Vec<(Reply, Verdict)>, events: &[Arc<RecordedEvent>]) {
    for (reply, verdict) in answers {
        let of = |range: std::ops::Range<usize>| events.get(range).unwrap_or_default().to_vec();
        drop(reply.send(match verdict {
            Verdict::Accepted(range) => Ok(Appended { events: of(range), is_repeat: false }),
            Verdict::RepeatPlanned(range) => Ok(Appended { events: of(range), is_repeat: true }),
            Verdict::RepeatRecorded(appended) => Ok(appended),
            Verdict::Refused(error) => Err(error),
        }));
    }
}

fn answer_poisoned(replies: impl Iterator<Item = Reply>, reason: &Arc<str>) {
    for reply in replies {
        drop(reply.send(Err(AppendError::Poisoned { reason: Arc::clone(reason) })));
    }
}

/// A writer that panicked has answered nobody, and nobody knows what it wrote.
struct PoisonOnPanic(Arc<Condition>);

impl Drop for PoisonOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.poison("the writer stopped by a defect");
        }
    }
}
