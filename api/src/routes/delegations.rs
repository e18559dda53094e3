//! The ledger.

use axum::{Json, Router, extract::State, routing::get};
use contracts::wire::delegation::Delegation;
use domain::ids::ThreadId;
use eventlog::Seq;
use projections::Listing;

use crate::{
    convert,
    error::Answer,
    extract::{DelegationsQuery, Path, Query, ThreadPath},
    paths,
    reads::At,
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new().route(paths::DELEGATIONS, get(ledger))
}

/// A bare array in the order of the requests, whole unless a limit is asked for: then fewer rows than that
/// mean that this is the end. A run that is not there has no delegations.
async fn ledger(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    Query(query): Query<DelegationsQuery>,
) -> Answer<Json<Vec<Delegation>>> {
    let as_of = match server.at(&thread_id, query.moment).await? {
        At::Now => None,
        At::Then(seq) => Some(seq),
    };
    server.read(move |server| server.ledger(&thread_id, &query, as_of)).await.map(Json)
}

impl Server {
    fn ledger(
        &self,
        thread_id: &ThreadId,
        query: &DelegationsQuery,
        as_of: Option<Seq>,
    ) -> Answer<Vec<Delegation>> {
        let part = Listing { after: query.after, as_of, limit: query.limit.unwrap_or(usize::MAX) };
        let listed = self.projections.ledger_part(thread_id, query.run_id.as_ref(), part)?;
        Ok(listed.rows.iter().map(convert::delegation::to_wire).collect())
    }
}
