//! Recording, and destroying what was recorded.

use domain::ids::{RunHash, ThreadId};
use tokio::sync::oneshot;

use super::EventLog;
use crate::{
    append::{Append, AppendError, Appended},
    erase::EraseError,
    plan::Checked,
    redact,
    writer::{AppendRequest, EraseRequest, Request},
};

impl EventLog {
    /// Records 1..n events in one stream, all or none. Answers when they are durable. Secrets in
    /// them are masked first: the answer has what was written.
    ///
    /// A call that is cancelled may still record them: use an idempotency key to find out.
    pub async fn append(&self, mut append: Append) -> Result<Appended, AppendError> {
        if let Some(redactor) = &self.0.redactor {
            append.events.iter_mut().for_each(|event| redact::redact(redactor, event));
        }
        let (reply, answer) = oneshot::channel();
        let request = AppendRequest { checked: Checked::new(append)?, reply };
        let queue = self.0.queue.as_ref().ok_or(AppendError::Closed)?;
        if queue.send(Request::Append(Box::new(request))).await.is_err() {
            return Err(self.refusal());
        }
        // Every request that the writer takes is answered, unless the writer meets a defect.
        let unanswered = || Err(AppendError::Poisoned { reason: "the writer stopped by a defect".into() });
        let answer = answer.await.unwrap_or_else(|_| unanswered());
        if let (Some(blobs), Ok(appended)) = (&self.0.blobs, &answer) {
            blobs.settle(&appended.events);
        }
        answer
    }

    /// Why the writer takes nothing.
    fn refusal(&self) -> AppendError {
        match self.0.condition.poison_reason() {
            Some(reason) => AppendError::Poisoned { reason },
            None => AppendError::Closed,
        }
    }

    /// Destroys the keys of a thread and of its runs: from when this answers on, nobody can read
    /// its events, and nothing is appended to it. Appends that were asked for before are recorded
    /// first. Says whether there was a key; asking again is harmless.
    ///
    /// Positions, seqs, times and chains stay. The events come back with
    /// [`RecordedEvent::is_erased`], and those of runs do not come back from `read_run`.
    pub async fn destroy_thread_key(&self, thread_id: &ThreadId) -> Result<bool, EraseError> {
        self.erase(thread_id, None).await
    }

    /// The same for one run on a thread.
    pub async fn destroy_run_key(&self, thread_id: &ThreadId, run: RunHash) -> Result<bool, EraseError> {
        self.erase(thread_id, Some(run)).await
    }

    async fn erase(&self, thread_id: &ThreadId, run: Option<RunHash>) -> Result<bool, EraseError> {
        let (reply, answer) = oneshot::channel();
        let request = EraseRequest { thread_id: thread_id.clone(), run, reply };
        let queue = self.0.queue.as_ref().ok_or(EraseError::Closed)?;
        if queue.send(Request::Erase(Box::new(request))).await.is_err() {
            return Err(EraseError::Closed);
        }
        let destroyed = answer.await.unwrap_or(Err(EraseError::Stopped))?;
        self.erase_blobs(thread_id.clone(), run).await?;
        Ok(destroyed)
    }

    /// Removes the files of blobs that no key opens any more.
    async fn erase_blobs(&self, thread_id: ThreadId, run: Option<RunHash>) -> Result<(), EraseError> {
        let Some(blobs) = self.0.blobs.clone() else { return Ok(()) };
        let thread = thread_id.clone();
        let erase = move || blobs.erase(&thread, run);
        // There may be many files; a log that is used without a runtime has no other thread for them.
        let erased = match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                let erasing = runtime.spawn_blocking(erase).await;
                erasing.unwrap_or_else(|failure| Err(std::io::Error::other(failure)))
            }
            Err(_) => erase(),
        };
        erased.map_err(|source| EraseError::Blobs { thread_id, source })
    }
}
