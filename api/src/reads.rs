//! Reading the views without being behind.
//!
//! A view follows the log. A query waits, for a bounded time, until its view has what the log had
//! when the query came, so that whoever was told of a write finds it. When the view does not get
//! there, the answer is a refusal that says where it is, never a stale row.

use std::time::Duration;

use contracts::wire::problem::ProblemCode;
use domain::ids::ThreadId;
use eventlog::{Seq, StreamId};

use crate::{
    error::{Answer, ApiError},
    extract::Moment,
    state::Server,
};

/// How long a query waits for its view. A view is behind by milliseconds, or it is not well.
const VIEW_WAIT: Duration = Duration::from_secs(2);

/// Which state of a thread answers a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// The views', which have taken in everything.
    Now,
    /// The log's, folded up to this event.
    Then(Seq),
}

/// Refuses a moment that is still to come.
fn check_reached(thread_id: &ThreadId, tail: Seq, moment: Moment) -> Answer<()> {
    match moment.min_seq.max(moment.as_of).filter(|wanted| *wanted > tail) {
        Some(wanted) => {
            let detail = format!("thread {thread_id} is at seq {tail} and not yet at {wanted}");
            Err(ApiError::new(ProblemCode::Stale, detail))
        }
        None => Ok(()),
    }
}

impl Server {
    /// Makes sure that the asked-for moment of a thread can be shown.
    pub(crate) async fn at(&self, thread_id: &ThreadId, moment: Moment) -> Answer<At> {
        let tail = self.tail(thread_id)?;
        check_reached(thread_id, tail, moment)?;
        match moment.as_of {
            Some(seq) => Ok(At::Then(seq)),
            None => self.views_now().await.map(|()| At::Now),
        }
    }

    /// Makes sure that the log has the asked-for moment of a thread, for whoever reads it from there.
    pub(crate) fn reached(&self, thread_id: &ThreadId, moment: Moment) -> Answer<()> {
        check_reached(thread_id, self.tail(thread_id)?, moment)
    }

    /// The same for lists whose earlier moments the views can show too: they end at that event.
    pub(crate) async fn list_at(
        &self,
        thread_id: &ThreadId,
        tail: Seq,
        moment: Moment,
    ) -> Answer<Option<Seq>> {
        check_reached(thread_id, tail, moment)?;
        self.views_now().await.map(|()| moment.as_of)
    }

    /// Waits until the views have what the log has now.
    pub(crate) async fn views_now(&self) -> Answer<()> {
        let reached = self.projections.wait_for(self.log.head(), VIEW_WAIT).await;
        reached.map_err(|behind| ApiError::new(ProblemCode::Stale, behind.to_string()))
    }

    /// The last seq of a thread. A thread without events is a 404, and so is one that was erased.
    pub(crate) fn tail(&self, thread_id: &ThreadId) -> Answer<Seq> {
        if self.log.is_erased(thread_id) {
            return Err(ApiError::no_thread(thread_id));
        }
        let tail = self.log.stream_tail(&StreamId::Thread(thread_id.clone()))?;
        tail.ok_or_else(|| ApiError::no_thread(thread_id))
    }

    /// Reads where blocking does no harm to other requests.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Self) -> Answer<T> + Send + 'static,
    ) -> Answer<T> {
        let server = self.clone();
        let done = tokio::task::spawn_blocking(move || read(&server)).await;
        done.unwrap_or_else(|error| Err(ApiError::failed(ProblemCode::Internal, "reading", &error)))
    }
}
