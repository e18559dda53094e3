//! Reading the views without being behind.
//!
//! A view follows the log. A query waits, for a bounded time, until its view has what the log had
//! when the query came, so that whoever was told of a write finds it. When the view does not get
//! there, the answer is a refusal that says where it is, never a stale row.

use std::time::Duration;

use contracts::wire::problem::ProblemCode;
use domain::ids::ThreadId;
use eventlog::{Position, Seq, StreamId, SubscribeFrom};
use projections::as_of::seq_at;

use crate::{
    error::{Answer, ApiError},
    extract::{AsOf, LogMoment, Moment},
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

impl Server {
    /// Makes sure that the asked-for moment of a thread can be shown.
    pub(crate) async fn at(&self, thread_id: &ThreadId, moment: Moment) -> Answer<At> {
        match self.reached(thread_id, moment).await? {
            Some(seq) => self.views_at(self.position_of(thread_id, seq)?).await.map(|()| At::Then(seq)),
            None => self.views_now().await.map(|()| At::Now),
        }
    }

    /// Makes sure that the log has the asked-for moment of a thread, for whoever reads it from there, and
    /// gives the thread's newest seq then; none for now.
    pub(crate) async fn reached(&self, thread_id: &ThreadId, moment: Moment) -> Answer<Option<Seq>> {
        self.tail(thread_id)?;
        match self.log_at(thread_id, moment).await? {
            Some(Seq::ZERO) => Err(ApiError::no_thread(thread_id)),
            as_of => Ok(as_of),
        }
    }

    /// The same for one thread and one run: what the views do not have of an earlier moment, the log
    /// says.
    pub(crate) async fn at_or_in_log(&self, thread_id: &ThreadId, moment: Moment) -> Answer<At> {
        match self.reached(thread_id, moment).await? {
            Some(seq) => Ok(At::Then(seq)),
            None => self.views_now().await.map(|()| At::Now),
        }
    }

    /// The same for lists whose earlier moments the views can show too: they end at that event.
    pub(crate) async fn list_at(&self, thread_id: &ThreadId, moment: Moment) -> Answer<Option<Seq>> {
        let as_of = self.reached(thread_id, moment).await?;
        self.views_now().await.map(|()| as_of)
    }

    /// The same for feeds: what is not there, or was not there yet, has no messages.
    pub(crate) async fn feed_at(&self, thread_id: &ThreadId, moment: Moment) -> Answer<Option<Seq>> {
        let as_of = self.log_at(thread_id, moment).await?;
        self.views_now().await.map(|()| as_of)
    }

    /// Waits until the log has what the answer must have taken in, and gives the thread's newest seq at the
    /// moment: 0 where it was not there yet, none for now. Whoever was told of an event by another process
    /// than this one may be early. An earlier moment cannot still be to come.
    pub(crate) async fn log_at(&self, thread_id: &ThreadId, moment: Moment) -> Answer<Option<Seq>> {
        if let Some(AsOf::Seq(as_of)) = moment.as_of {
            let tail = self.newest(thread_id)?;
            if as_of > tail {
                return Err(behind(thread_id, tail, as_of));
            }
        }
        let of_log = LogMoment { as_of: moment.then(), min_position: moment.min_position };
        let then = self.log_then(of_log).await?;
        if let Some(wanted) = moment.min_seq {
            self.reach_seq(thread_id, wanted).await?;
        }
        match (moment.as_of, then) {
            (Some(AsOf::Seq(seq)), _) => Ok(Some(seq)),
            (_, Some(position)) => Ok(Some(seq_at(&self.log, thread_id, position)?.unwrap_or(Seq::ZERO))),
            (_, None) => Ok(None),
        }
    }

    /// The same where no thread is named.
    pub(crate) async fn log_then(&self, moment: LogMoment) -> Answer<Option<Position>> {
        if let Some(as_of) = moment.as_of.filter(|as_of| *as_of > self.log.head()) {
            return Err(self.log_behind(as_of));
        }
        if let Some(wanted) = moment.min_position {
            self.reach_position(wanted).await?;
        }
        Ok(moment.as_of)
    }

    /// Makes sure that the views can show the asked-for moment of all threads.
    pub(crate) async fn views_then(&self, moment: LogMoment) -> Answer<Option<Position>> {
        match self.log_then(moment).await? {
            Some(position) => self.views_at(position).await.map(|()| Some(position)),
            None => self.views_now().await.map(|()| None),
        }
    }

    async fn reach_seq(&self, thread_id: &ThreadId, wanted: Seq) -> Answer<()> {
        if wanted <= self.newest(thread_id)? {
            return Ok(());
        }
        let id = StreamId::Thread(thread_id.clone());
        let from = SubscribeFrom::Stream { id, after: Seq::new(wanted.get() - 1) };
        match tokio::time::timeout(VIEW_WAIT, self.log.subscribe(from).next_page(1)).await {
            Ok(reached) => reached.map(drop).map_err(ApiError::from),
            Err(_) => Err(behind(thread_id, self.newest(thread_id)?, wanted)),
        }
    }

    /// The last seq of a thread; 0 where there is none.
    fn newest(&self, thread_id: &ThreadId) -> Answer<Seq> {
        Ok(self.log.stream_tail(&StreamId::Thread(thread_id.clone()))?.unwrap_or(Seq::ZERO))
    }

    fn log_behind(&self, wanted: Position) -> ApiError {
        let detail = format!("the log is at position {} and not yet at {wanted}", self.log.head());
        ApiError::new(ProblemCode::Stale, detail)
    }

    /// Waits until the log has got to a position.
    async fn reach_position(&self, wanted: Position) -> Answer<()> {
        if wanted <= self.log.head() {
            return Ok(());
        }
        let after = Position::new(wanted.get().saturating_sub(1));
        let mut next = self.log.subscribe(SubscribeFrom::All { after });
        match tokio::time::timeout(VIEW_WAIT, next.next_page(1)).await {
            Ok(reached) => reached.map(drop).map_err(ApiError::from),
            Err(_) => Err(self.log_behind(wanted)),
        }
    }

    fn position_of(&self, thread_id: &ThreadId, seq: Seq) -> Answer<Position> {
        let stream = StreamId::Thread(thread_id.clone());
        let found = self.log.read_stream(&stream, Seq::new(seq.get().saturating_sub(1)), 1)?;
        Ok(found.first().map_or(Position::ZERO, |event| event.position))
    }

    /// Waits until the views have what the log has now.
    pub(crate) async fn views_now(&self) -> Answer<()> {
        self.views_at(self.log.head()).await
    }

    /// Waits until the views have got to a position.
    async fn views_at(&self, position: Position) -> Answer<()> {
        let reached = self.projections.wait_for(position, VIEW_WAIT).await;
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

fn behind(thread_id: &ThreadId, tail: Seq, wanted: Seq) -> ApiError {
    let detail = format!("thread {thread_id} is at seq {tail} and not yet at {wanted}");
    ApiError::new(ProblemCode::Stale, detail)
}
