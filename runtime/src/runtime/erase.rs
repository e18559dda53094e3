//! Erasing threads.
//!
//! An erasure is recorded before anything is done, and its steps may be done twice: stop the
//! thread's run, destroy the keys, remove the folders, record the end. So one that a crash or a
//! shutdown cut off is carried on from wherever it was.

use std::{fs, io, path::Path};

use domain::{
    event::{CancelReason, ErasureReason, ErasureRequested, Event, RegistryEvent, ThreadErased},
    ids::{ErasureId, ThreadId, UserId},
};
use eventlog::{Append, Expected, NewEvent, ReadError, Scope, Seal, Seq, StreamId};
use tokio::sync::MutexGuard;

use super::Runtime;
use crate::{
    cancellation::StopCause,
    erasure::{self, Erasure, ErasureState},
    journal::JournalError,
    request::{EraseError, HistoryError},
    sandbox::ThreadFolders,
};

/// Streams that are listed at once while an owner's threads are looked for.
const STREAMS_PAGE: usize = 256;

impl Runtime {
    /// Erases a thread, and answers when nothing of it is left: its run is cancelled and waited for,
    /// its keys are destroyed, its folders removed. A workspace that a person chose is theirs, and
    /// stays. Positions and seqs stay, and the log verifies as before.
    ///
    /// A caller that goes away does not stop it. One that was cut off earlier is carried on.
    pub async fn erase_thread(&self, thread_id: &ThreadId) -> Result<ErasureId, EraseError> {
        self.erase_aside(thread_id, ErasureReason::Thread).await
    }

    /// Erases all threads of an owner. After an error those that were erased stay so; ask again.
    pub async fn erase_owner(&self, owner: &UserId) -> Result<Vec<ErasureId>, EraseError> {
        let mut erased = Vec::new();
        for thread_id in self.threads_of(owner)? {
            match self.erase_aside(&thread_id, ErasureReason::Owner).await {
                Ok(erasure_id) => erased.push(erasure_id),
                // Somebody else erased it meanwhile.
                Err(EraseError::UnknownThread(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(erased)
    }

    /// All erasures, in the order in which they were asked for.
    pub fn erasures(&self) -> Result<Vec<Erasure>, HistoryError> {
        erasure::read_all(&self.services.log)
    }

    /// One erasure; none if there is no such.
    pub fn erasure(&self, erasure_id: ErasureId) -> Result<Option<Erasure>, HistoryError> {
        Ok(self.erasures()?.into_iter().find(|erasure| erasure.erasure_id == erasure_id))
    }

    /// Carries on what was cut off.
    pub(super) async fn resume_erasures(&self) -> Result<(), HistoryError> {
        let _one_at_a_time = self.erasing.lock().await;
        for erasure in self.erasures()?.iter().filter(|erasure| erasure.state != ErasureState::Done) {
            if let Err(error) = self.carry_out(erasure).await {
                let (erasure_id, thread_id) = (erasure.erasure_id, &erasure.thread_id);
                tracing::error!(%erasure_id, %thread_id, error = &error as &dyn std::error::Error, "an erasure cannot be carried on");
            }
        }
        Ok(())
    }

    /// In a tokio task of its own, which a shutdown waits for.
    async fn erase_aside(
        &self,
        thread_id: &ThreadId,
        reason: ErasureReason,
    ) -> Result<ErasureId, EraseError> {
        if self.stop.cause().is_some() {
            return Err(EraseError::ShuttingDown);
        }
        let (runtime, thread_id) = (self.clone(), thread_id.clone());
        let erasing = self.runs.spawn(async move { runtime.erase(&thread_id, reason).await });
        match erasing.await {
            Ok(erased) => erased,
            Err(failure) if failure.is_panic() => std::panic::resume_unwind(failure.into_panic()),
            Err(_) => Err(EraseError::ShuttingDown),
        }
    }

    async fn erase(&self, thread_id: &ThreadId, reason: ErasureReason) -> Result<ErasureId, EraseError> {
        let _one_at_a_time = self.erasing.lock().await;
        let mut known = self.erasures()?.into_iter();
        let begun = known.find(|one| one.thread_id == *thread_id && one.state != ErasureState::Done);
        let erasure = match begun {
            Some(begun) => begun,
            None => self.request_erasure(thread_id, reason).await?,
        };
        self.carry_out(&erasure).await?;
        Ok(erasure.erasure_id)
    }

    /// Records that a thread is to be erased.
    pub(super) async fn request_erasure(
        &self,
        thread_id: &ThreadId,
        reason: ErasureReason,
    ) -> Result<Erasure, EraseError> {
        let stream = StreamId::Thread(thread_id.clone());
        let first = self.services.log.read_stream(&stream, Seq::ZERO, 1)?;
        match first.first().map(|event| &event.seal) {
            None => return Err(EraseError::UnknownThread(thread_id.clone())),
            Some(Seal::None) => return Err(EraseError::InPlain(thread_id.clone())),
            Some(Seal::Opened(_) | Seal::Erased(_)) if self.services.log.is_erased(thread_id) => {
                return Err(EraseError::UnknownThread(thread_id.clone()));
            }
            Some(Seal::Opened(_) | Seal::Erased(_)) => {}
        }
        let requested = ErasureRequested {
            erasure_id: ErasureId::from_uuid(self.services.ids.uuid()),
            thread_id: thread_id.clone(),
            reason,
            run_hash: None,
            events: self.events_of(thread_id)?,
            requested_at: self.services.clock.now(),
        };
        self.register(thread_id, RegistryEvent::ErasureRequested(requested.clone())).await?;
        Ok(erasure::begun(requested))
    }

    async fn carry_out(&self, erasure: &Erasure) -> Result<(), EraseError> {
        let thread_id = &erasure.thread_id;
        let _no_starts = self.idle(thread_id).await?;
        self.destroy_keys(thread_id).await?;
        self.remove_folders(thread_id).await?;
        self.record_erased(erasure).await
    }

    /// Cancels the thread's run and waits for its end. While the guard is held, none can start.
    async fn idle(&self, thread_id: &ThreadId) -> Result<MutexGuard<'_, ()>, EraseError> {
        loop {
            let no_starts = tokio::select! {
                biased;
                // A shutdown keeps the lock; what is not done by then is carried on later.
                () = self.stop.stopped() => return Err(EraseError::ShuttingDown),
                guard = self.starting.lock() => guard,
            };
            let Some(run_id) = self.services.live_runs.active(thread_id) else { return Ok(no_starts) };
            let Some(context) = self.live(thread_id, &run_id) else { continue };
            drop(no_starts);
            context.stop.stop(StopCause::Cancelled(CancelReason::CancelledByUser));
            drop(context);
            // Whether it has an end or could not record one: it has stopped.
            drop(self.wait(thread_id, &run_id).await);
        }
    }

    pub(super) async fn destroy_keys(&self, thread_id: &ThreadId) -> Result<(), EraseError> {
        let destroyed = self.services.log.destroy_thread_key(thread_id).await;
        destroyed.map(drop).map_err(|source| EraseError::Keys { thread_id: thread_id.clone(), source })
    }

    pub(super) async fn remove_folders(&self, thread_id: &ThreadId) -> Result<(), EraseError> {
        let folder = ThreadFolders::root(&self.services.data_folder, thread_id);
        let removed = tokio::task::spawn_blocking(move || remove(&folder)).await;
        let removed = removed.unwrap_or_else(|failure| Err(io::Error::other(failure)));
        removed.map_err(|source| EraseError::Folders { thread_id: thread_id.clone(), source })
    }

    pub(super) async fn record_erased(&self, erasure: &Erasure) -> Result<(), EraseError> {
        let thread_id = &erasure.thread_id;
        let erased = ThreadErased {
            erasure_id: erasure.erasure_id,
            thread_id: thread_id.clone(),
            reason: erasure.reason,
            events: self.events_of(thread_id)?,
            requested_at: erasure.requested_at,
        };
        self.register(thread_id, RegistryEvent::ThreadErased(erased)).await
    }

    fn events_of(&self, thread_id: &ThreadId) -> Result<u64, ReadError> {
        let tail = self.services.log.stream_tail(&StreamId::Thread(thread_id.clone()))?;
        Ok(tail.unwrap_or(Seq::ZERO).get())
    }

    /// Records a fact in the registry. It is about a thread, and not on it.
    async fn register(&self, thread_id: &ThreadId, event: RegistryEvent) -> Result<(), EraseError> {
        let event_type = event.event_type();
        let encoded = eventlog::encode(&Event::Registry(event)).map_err(|error| JournalError::Encode {
            event_type: event_type.to_owned(),
            problem: error.to_string().into(),
        })?;
        let event = NewEvent {
            event_id: self.services.ids.event_id(),
            event_type: encoded.event_type,
            schema_version: encoded.schema_version,
            category: encoded.category,
            scope: Scope::default(),
            owner: UserId::unowned(),
            causation_id: None,
            correlation_id: None,
            created_at: self.services.clock.now(),
            content: encoded.content,
            metadata: encoded.metadata,
        };
        let (stream, expected) = (StreamId::Registry, Expected::Any);
        let append = Append { stream, expected, idempotency_key: None, events: vec![event] };
        let recorded = self.services.log.append(append).await.map(drop);
        recorded.map_err(|source| JournalError::Log { thread_id: thread_id.clone(), source }.into())
    }

    /// The threads whose first event is the owner's. Those that were erased are nobody's.
    fn threads_of(&self, owner: &UserId) -> Result<Vec<ThreadId>, ReadError> {
        let (mut found, mut after) = (Vec::new(), None::<StreamId>);
        loop {
            let page = self.services.log.streams(after.as_ref(), STREAMS_PAGE)?;
            let Some(last) = page.last() else { return Ok(found) };
            after = Some(last.stream.clone());
            for stream in page.into_iter().map(|summary| summary.stream) {
                let StreamId::Thread(thread_id) = &stream else { continue };
                let first = self.services.log.read_stream(&stream, Seq::ZERO, 1)?;
                let is_theirs = first.first().is_some_and(|event| event.owner == *owner);
                if is_theirs && !self.services.log.is_erased(thread_id) {
                    found.push(thread_id.clone());
                }
            }
        }
    }
}

/// Removes the folder durably; that it is not there is no error. Links in it are not followed.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        removed => removed?,
    }
    match folder.parent() {
        Some(parent) => fs::File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}
