//! The ledger.

use axum::{Json, Router, extract::State, routing::get};
use contracts::wire::delegation::Delegation;
use domain::ids::{RunId, ThreadId};
use projections::as_of;

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

/// A bare array in the order of the requests. A run that is not there has no delegations.
async fn ledger(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    Query(DelegationsQuery { run_id, moment }): Query<DelegationsQuery>,
) -> Answer<Json<Vec<Delegation>>> {
    let at = server.at(&thread_id, moment).await?;
    server.read(move |server| server.ledger_at(&thread_id, run_id.as_ref(), at)).await.map(Json)
}

impl Server {
    fn ledger_at(&self, thread_id: &ThreadId, run_id: Option<&RunId>, at: At) -> Answer<Vec<Delegation>> {
        let entries = match at {
            At::Now => self.projections.ledger(thread_id, run_id)?,
            At::Then(seq) => as_of::ledger_as_of(&self.projections, thread_id, run_id, seq)?,
        };
        Ok(entries.iter().map(convert::delegation::to_wire).collect())
    }
}
