//! The receipts of all delegations of a thread.

use axum::{Json, Router, extract::State, routing::get};
use contracts::wire::{evidence::OwnedReceipt, page::Page};
use domain::ids::ThreadId;
use eventlog::Seq;
use projections::{Listing, ReceiptFilter, TaskRef};

use crate::{
    convert,
    error::Answer,
    extract::{PartQuery, Path, Query, ReceiptsQuery, ThreadPath},
    paths,
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new().route(paths::RECEIPTS, get(list))
}

/// In the order in which they were recorded; the `seq` of the last row is the `after_seq` of the next
/// page.
async fn list(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    Query(query): Query<ReceiptsQuery>,
) -> Answer<Json<Page<OwnedReceipt>>> {
    let as_of = server.list_at(&thread_id, query.part.moment).await?;
    server.read(move |server| server.receipts(&thread_id, &query, as_of)).await.map(Json)
}

impl Server {
    fn receipts(
        &self,
        thread_id: &ThreadId,
        query: &ReceiptsQuery,
        as_of: Option<Seq>,
    ) -> Answer<Page<OwnedReceipt>> {
        let PartQuery { limit, after, moment: _ } = query.part;
        let mut page = Page { data: Vec::new(), has_more: false, next_before_seq: None };
        for task in domain::task_ref::wanted(query.task_id.as_ref(), TaskRef::DelegationId, TaskRef::TaskId) {
            let (tool_name, outcome) = (query.tool_name.clone(), query.outcome);
            let filter = ReceiptFilter { run_id: query.run_id.clone(), task, tool_name, outcome };
            let listed = self.projections.receipts(thread_id, &filter, Listing { after, as_of, limit })?;
            page.data = listed.rows.iter().map(convert::evidence::owned_to_wire).collect();
            page.has_more = listed.has_more;
            if !page.data.is_empty() {
                break;
            }
        }
        Ok(page)
    }
}
