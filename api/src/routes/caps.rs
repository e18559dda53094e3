//! Guards that fired on a thread.

use axum::{Json, Router, extract::State, routing::get};
use contracts::wire::{cap::Cap, page::Page};
use domain::ids::ThreadId;
use eventlog::Seq;
use projections::{CapFilter, Listing, TaskRef};

use crate::{
    convert,
    error::Answer,
    extract::{CapsQuery, PartQuery, Path, Query, ThreadPath},
    paths,
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new().route(paths::CAPS, get(list))
}

/// In the order in which they fired; the `seq` of the last row is the `after_seq` of the next page.
async fn list(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    Query(query): Query<CapsQuery>,
) -> Answer<Json<Page<Cap>>> {
    let as_of = server.list_at(&thread_id, query.part.moment).await?;
    server.read(move |server| server.caps(&thread_id, &query, as_of)).await.map(Json)
}

impl Server {
    fn caps(&self, thread_id: &ThreadId, query: &CapsQuery, as_of: Option<Seq>) -> Answer<Page<Cap>> {
        let PartQuery { limit, after, moment: _ } = query.part;
        let mut page = Page { data: Vec::new(), has_more: false, next_before_seq: None };
        for task in domain::task_ref::wanted(query.task_id.as_ref(), TaskRef::DelegationId, TaskRef::TaskId) {
            let (run_id, axis, action) = (query.run_id.clone(), query.axis, query.action);
            let filter = CapFilter { run_id, task, axis, action };
            let listed = self.projections.caps(thread_id, &filter, Listing { after, as_of, limit })?;
            page.data = listed.rows.iter().map(convert::cap::to_wire).collect();
            page.has_more = listed.has_more;
            if !page.data.is_empty() {
                break;
            }
        }
        Ok(page)
    }
}
