//! Pages of events (facts §8): bare arrays, ascending. What does not exist has no events.

use axum::{Json, Router, extract::State, routing::get};
use contracts::wire::event::EventRecord;
use domain::ids::{DelegationId, RunId, ThreadId, ToolCallId};
use eventlog::EventFilter;
use projections::{EventQuery, event_page};

use crate::{
    convert,
    error::Answer,
    extract::{EventsQuery, Path, Query, RunPath, ThreadPath},
    paths,
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
) -> Answer<Json<Vec<EventRecord>>> {
    server.read(move |server| server.events(&thread_id, Some(&run_id), &query)).await.map(Json)
}

async fn of_thread(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    Query(query): Query<EventsQuery>,
) -> Answer<Json<Vec<EventRecord>>> {
    server.read(move |server| server.events(&thread_id, None, &query)).await.map(Json)
}

/// Which delegation's events are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
enum OfTask {
    Ours(DelegationId),
    Theirs(ToolCallId),
}

impl Server {
    fn events(
        &self,
        thread_id: &ThreadId,
        run_id: Option<&RunId>,
        query: &EventsQuery,
    ) -> Answer<Vec<EventRecord>> {
        let whole = EventQuery {
            thread_id: thread_id.clone(),
            run_id: run_id.cloned(),
            filter: EventFilter { event_types: query.event_types.clone(), ..EventFilter::default() },
            after: query.after,
            limit: query.limit,
        };
        let Some(task_id) = &query.task_id else {
            return convert::event::to_wire_all(&event_page(&self.log, &whole)?);
        };
        let mut page = Vec::new();
        for task in domain::task_ref::meanings(task_id, OfTask::Ours, OfTask::Theirs) {
            page = event_page(&self.log, &of_task(&whole, task))?;
            if !page.is_empty() {
                break;
            }
        }
        convert::event::to_wire_all(&page)
    }
}

fn of_task(whole: &EventQuery, task: OfTask) -> EventQuery {
    let mut query = whole.clone();
    match task {
        OfTask::Ours(delegation_id) => query.filter.delegation_id = Some(delegation_id),
        OfTask::Theirs(task_id) => query.filter.task_id = Some(task_id),
    }
    query
}
