//! Threads.

use axum::{Json, Router, extract::State, routing::get};
use contracts::wire::{
    page::Page,
    thread::{CreateThread, Thread},
};
use domain::ids::{ThreadId, UserId};
use eventlog::{Position, Seq};
use projections::{ThreadRow, as_of};
use runtime::NewThread;

use crate::{
    convert,
    error::{Answer, ApiError},
    extract::{Moment, OptionalJsonBody, PageQuery, Path, Query, ThreadPath},
    paths,
    reads::At,
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new().route(paths::THREADS, get(list).post(create)).route(paths::THREAD, get(one))
}

/// Answers 200 with the thread, as clients of this interface expect, and 409 when it exists.
async fn create(
    State(server): State<Server>,
    _: Query<()>,
    OptionalJsonBody(body): OptionalJsonBody<CreateThread>,
) -> Answer<Json<Thread>> {
    let thread_id = server.runtime.create_thread(new_thread(body)?).await?;
    // Folded from the log, so that the answer does not wait for a view.
    let tail = server.tail(&thread_id)?;
    let thread = server.read(move |server| server.thread_then(&thread_id, tail)).await?;
    Ok(Json(thread))
}

async fn one(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    Query(moment): Query<Moment>,
) -> Answer<Json<Thread>> {
    let at = server.at_or_in_log(&thread_id, moment).await?;
    let read = move |server: &Server| match at {
        At::Now => server.thread_now(&thread_id),
        At::Then(seq) => server.thread_then(&thread_id, seq),
    };
    server.read(read).await.map(Json)
}

/// By id; `after` is the last id of the page before.
async fn list(
    State(server): State<Server>,
    Query(PageQuery { limit, after, moment }): Query<PageQuery>,
) -> Answer<Json<Page<Thread>>> {
    let after = after.map(ThreadId::new).transpose()?;
    let as_of = server.views_then(moment).await?;
    server.read(move |server| server.thread_page(after.as_ref(), limit, as_of)).await.map(Json)
}

/// The folder of the host that is a workspace is for people at the host alone.
fn new_thread(body: CreateThread) -> Answer<NewThread> {
    convert::run_request::check_metadata(&body.metadata)?;
    let thread_id = body.thread_id.map(ThreadId::new).transpose()?;
    Ok(NewThread { thread_id, metadata: body.metadata, workspace: None, owner: UserId::unowned() })
}

impl Server {
    fn thread_now(&self, thread_id: &ThreadId) -> Answer<Thread> {
        let row = self.projections.thread(thread_id)?.ok_or_else(|| ApiError::no_thread(thread_id))?;
        self.with_status(row)
    }

    fn thread_then(&self, thread_id: &ThreadId, seq: Seq) -> Answer<Thread> {
        let row = as_of::thread_as_of(&self.projections, thread_id, seq)?;
        self.with_status_then(row.ok_or_else(|| ApiError::no_thread(thread_id))?, seq)
    }

    fn with_status_then(&self, row: ThreadRow, seq: Seq) -> Answer<Thread> {
        let newest_run = match &row.last_run_id {
            Some(run_id) => as_of::run_as_of(&self.projections, &row.thread_id, run_id, seq)?,
            None => None,
        };
        Ok(convert::thread::to_wire(row, newest_run.map(|run| run.status)))
    }

    fn thread_page(
        &self,
        after: Option<&ThreadId>,
        limit: usize,
        as_of: Option<Position>,
    ) -> Answer<Page<Thread>> {
        let mut data = match as_of {
            None => self.threads_now(after, limit + 1)?,
            Some(position) => self.threads_then(position, after, limit + 1)?,
        };
        let has_more = data.len() > limit;
        data.truncate(limit);
        Ok(Page { data, has_more, next_before_seq: None })
    }

    fn threads_now(&self, after: Option<&ThreadId>, limit: usize) -> Answer<Vec<Thread>> {
        let rows = self.projections.threads(after, limit)?;
        rows.into_iter().map(|row| self.with_status(row)).collect()
    }

    fn threads_then(
        &self,
        position: Position,
        after: Option<&ThreadId>,
        limit: usize,
    ) -> Answer<Vec<Thread>> {
        let rows = as_of::threads_as_of(&self.projections, position, after, limit)?;
        rows.into_iter().map(|(row, seq)| self.with_status_then(row, seq)).collect()
    }

    fn with_status(&self, row: ThreadRow) -> Answer<Thread> {
        let newest_run = match &row.last_run_id {
            Some(run_id) => self.projections.run(&row.thread_id, run_id)?,
            None => None,
        };
        Ok(convert::thread::to_wire(row, newest_run.map(|run| run.status)))
    }
}
