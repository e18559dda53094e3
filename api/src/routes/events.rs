//! Pages of events (facts §8): bare arrays, ascending. What does not exist has no events.

use axum::{Router, extract::State, response::Response, routing::get};
use domain::ids::{DelegationId, RunId, ThreadId, ToolCallId};
use eventlog::EventFilter;
use projections::{EventPieces, EventQuery};

use crate::{
    error::Answer,
    extract::{EventsQuery, Path, Query, RunPath, ThreadPath},
    paths,
    record_stream::Records,
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route(paths::RUN_EVENTS, get(of_run))
        .route(paths::THREAD_EVENTS, get(of_thread).post(super::ingest::ingest))
}

async fn of_run(
    State(server): State<Server>,
    Path(RunPath { thread_id, run_id }): Path<RunPath>,
    Query(query): Query<EventsQuery>,
) -> Answer<Response> {
    server.events(thread_id, Some(run_id), query).await
}

async fn of_thread(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    Query(query): Query<EventsQuery>,
) -> Answer<Response> {
    server.events(thread_id, None, query).await
}

/// Which delegation's events are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
enum OfTask {
    Ours(DelegationId),
    Theirs(ToolCallId),
}

impl Server {
    async fn events(
        &self,
        thread_id: ThreadId,
        run_id: Option<RunId>,
        query: EventsQuery,
    ) -> Answer<Response> {
        let as_of = self.log_at(&thread_id, query.moment).await?;
        let EventsQuery { event_types, task_id, limit, after, moment: _ } = query;
        let filter = EventFilter { event_types, ..EventFilter::default() };
        let whole = EventQuery { thread_id, run_id, filter, after, as_of, limit };
        self.send(move |server| server.event_records(&whole, task_id.as_ref())).await
    }

    /// The first meaning of a task's name under which there are events counts.
    fn event_records(&self, whole: &EventQuery, task_id: Option<&ToolCallId>) -> Answer<Records> {
        let mut first = Vec::new();
        let mut rest = EventPieces::new(&self.log, whole.clone());
        for task in domain::task_ref::wanted(task_id, OfTask::Ours, OfTask::Theirs) {
            rest = EventPieces::new(&self.log, of_task(whole, task));
            first = rest.next_piece()?;
            if !first.is_empty() {
                break;
            }
        }
        let mut first = Some(first).filter(|first| !first.is_empty());
        Ok(Records::array(Box::new(move || match first.take() {
            Some(first) => Ok(first),
            None => Ok(rest.next_piece()?),
        })))
    }
}

fn of_task(whole: &EventQuery, task: Option<OfTask>) -> EventQuery {
    let mut query = whole.clone();
    match task {
        Some(OfTask::Ours(delegation_id)) => query.filter.delegation_id = Some(delegation_id),
        Some(OfTask::Theirs(task_id)) => query.filter.task_id = Some(task_id),
        None => {}
    }
    query
}
