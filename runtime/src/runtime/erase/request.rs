//! Asking for an erasure: what is there to be erased, and the record that it is to be.

use std::borrow::Cow;

use domain::{
    event::{ErasureReason, ErasureRequested, RegistryEvent},
    ids::{ErasureId, RunHash, RunId, ThreadId, UserId},
};
use eventlog::{EventFilter, EventLog, ReadError, Seal, Seq, StreamId};

use super::{Erasing, Runtime};
use crate::{
    erasure::{self, Erasure, ErasureState},
    registry::Registrar,
    request::EraseError,
};

/// Streams that are listed at once while an owner's threads are looked for.
const STREAMS_PAGE: usize = 256;
/// Events that are read at once while the first is looked for that can be read.
const EVENTS_PAGE: usize = 64;

/// What one erasure is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Target {
    Thread(ThreadId),
    Run(ThreadId, RunId),
}

impl Target {
    const fn thread_id(&self) -> &ThreadId {
        match self {
            Self::Thread(thread_id) | Self::Run(thread_id, _) => thread_id,
        }
    }

    fn run_hash(&self) -> Option<RunHash> {
        match self {
            Self::Thread(_) => None,
            Self::Run(thread_id, run_id) => Some(eventlog::run_hash(thread_id, run_id)),
        }
    }
}

impl Runtime {
    /// Joins an erasure of the same that is under way, or begins one. `known` are the erasures as
    /// they were a moment ago, for whoever asks for many.
    pub(super) async fn request(
        &self,
        target: Target,
        reason: ErasureReason,
        known: Option<&[Erasure]>,
    ) -> Result<Erasing, EraseError> {
        let _one_at_a_time = self.erasing.lock(target.thread_id()).await;
        let (thread_id, run) = (target.thread_id(), target.run_hash());
        // Looked at before the registry: a job that is gone from here has recorded its end.
        if let Some(under_way) = self.jobs.join(thread_id, run) {
            return Ok(under_way);
        }
        let is_begun =
            |one: &Erasure| (&one.thread_id, one.run) == (thread_id, run) && one.state != ErasureState::Done;
        let known = known.filter(|known| !known.iter().any(is_begun));
        let all = match known {
            Some(known) => Cow::Borrowed(known),
            None => Cow::Owned(self.read(erasure::read_all).await?),
        };
        let erasure = match all.iter().find(|one| is_begun(one)) {
            Some(begun) => begun.clone(),
            None => self.request_erasure(&target, reason, &all).await?,
        };
        Ok(self.carry_out_aside(erasure))
    }

    /// All threads of an owner that are there now. One that cannot be erased does not keep the others
    /// from being erased.
    pub(super) async fn request_all_of(&self, owner: UserId) -> Result<Vec<Erasing>, EraseError> {
        let of = owner.clone();
        let threads = self.read(move |log| Ok(threads_of(log, &of)?)).await?;
        if threads.is_empty() {
            return Err(EraseError::UnknownOwner(owner));
        }
        let known = self.read(erasure::read_all).await?;
        let (mut begun, mut refused) = (Vec::with_capacity(threads.len()), None);
        for thread_id in threads {
            match self.request(Target::Thread(thread_id), ErasureReason::Owner, Some(&known)).await {
                Ok(one) => begun.push(one),
                // Somebody else erased it meanwhile.
                Err(EraseError::UnknownThread(_)) => {}
                Err(error @ EraseError::InPlain(_)) => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        refused.map_or(Ok(begun), Err)
    }

    /// Records that something is to be erased. `known` are the erasures before it.
    pub(in super::super) async fn request_erasure(
        &self,
        target: &Target,
        reason: ErasureReason,
        known: &[Erasure],
    ) -> Result<Erasure, EraseError> {
        let thread_id = target.thread_id().clone();
        let requested = ErasureRequested {
            erasure_id: ErasureId::from_uuid(self.services.ids.uuid()),
            run_hash: target.run_hash(),
            reason,
            events: self.extent(target, known)?,
            requested_at: self.services.clock.now(),
            thread_id: thread_id.clone(),
        };
        self.register(&thread_id, RegistryEvent::ErasureRequested(requested.clone())).await?;
        Ok(Erasure::begun(requested))
    }

    /// How many events there are to be erased, without those that were erased before. What is not there,
    /// or no more, is unknown.
    fn extent(&self, target: &Target, known: &[Erasure]) -> Result<u64, EraseError> {
        let log = &self.services.log;
        let thread_id = target.thread_id();
        let stream = StreamId::Thread(thread_id.clone());
        let unknown_thread = || EraseError::UnknownThread(thread_id.clone());
        if log.is_erased(thread_id) {
            return Err(unknown_thread());
        }
        let events = log.stream_tail(&stream)?.ok_or_else(unknown_thread)?.get();
        let (first, events) = match target {
            Target::Thread(_) => {
                let erased = erasure::erased_by_runs(known, thread_id);
                (log.read_stream(&stream, Seq::ZERO, 1)?, events.saturating_sub(erased))
            }
            Target::Run(_, run_id) => {
                let first = log.read_run(thread_id, run_id, &EventFilter::default(), Seq::ZERO, 1)?;
                if first.is_empty() {
                    return Err(EraseError::UnknownRun(run_id.clone()));
                }
                (first, log.run_events(eventlog::run_hash(thread_id, run_id))?)
            }
        };
        match first.first().map(|event| &event.seal) {
            Some(Seal::None) => Err(EraseError::InPlain(thread_id.clone())),
            Some(Seal::Opened(_) | Seal::Erased(_)) | None => Ok(events),
        }
    }

    /// Records a fact in the registry.
    pub(super) async fn register(
        &self,
        thread_id: &ThreadId,
        event: RegistryEvent,
    ) -> Result<(), EraseError> {
        let (log, ids, clock) = (&self.services.log, &*self.services.ids, &*self.services.clock);
        Ok(Registrar { log, ids, clock }.record(thread_id, event).await?)
    }
}

/// The threads that are the owner's.
fn threads_of(log: &EventLog, owner: &UserId) -> Result<Vec<ThreadId>, ReadError> {
    let (mut found, mut after) = (Vec::new(), None::<StreamId>);
    loop {
        let page = log.streams(after.as_ref(), STREAMS_PAGE)?;
        let Some(last) = page.last() else { return Ok(found) };
        after = Some(last.stream.clone());
        for thread_id in page.into_iter().filter_map(|summary| summary.stream.thread_id().cloned()) {
            if owner_of(log, &thread_id)?.is_some_and(|theirs| theirs == *owner) {
                found.push(thread_id);
            }
        }
    }
}

/// Whose thread it is: that of its first event that can be read. None if there is no such event.
pub(super) fn owner_of(log: &EventLog, thread_id: &ThreadId) -> Result<Option<UserId>, ReadError> {
    if log.is_erased(thread_id) {
        return Ok(None);
    }
    let (stream, mut after) = (StreamId::Thread(thread_id.clone()), Seq::ZERO);
    loop {
        let page = log.read_stream(&stream, after, EVENTS_PAGE)?;
        let Some(last) = page.last() else { return Ok(None) };
        after = last.seq;
        if let Some(first) = page.into_iter().find(|event| !event.is_erased()) {
            return Ok(Some(first.owner));
        }
    }
}
