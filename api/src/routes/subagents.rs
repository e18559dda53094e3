//! The types of subagent: those that leads have now, and those that a run has.

use axum::{Json, Router, extract::State, routing::get};
use contracts::wire::subagent::Subagent;
use eventlog::Seq;
use projections::{RunDefinition, definitions_of_run};

use crate::{
    convert,
    error::{Answer, ApiError},
    extract::{Moment, Path, Query, RunPath},
    paths,
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new().route(paths::SUBAGENTS, get(now)).route(paths::RUN_SUBAGENTS, get(of_run))
}

/// A bare array in listing order: the built-in types, the configuration's, then the managed ones that
/// are enabled and not hidden.
async fn now(State(server): State<Server>, _: Query<()>) -> Answer<Json<Vec<Subagent>>> {
    let types = server.runtime.subagent_types().await?;
    Ok(Json(types.into_iter().map(|(one, available)| convert::subagent::to_wire(one, available)).collect()))
}

/// The same as they were frozen when the run was started.
async fn of_run(
    State(server): State<Server>,
    Path(path): Path<RunPath>,
    Query(moment): Query<Moment>,
) -> Answer<Json<Vec<Subagent>>> {
    // It is read from the log, which is never behind.
    let as_of = server.reached(&path.thread_id, moment).await?;
    server.read(move |server| server.subagents_of(&path, as_of)).await.map(Json)
}

impl Server {
    fn subagents_of(&self, path: &RunPath, as_of: Option<Seq>) -> Answer<Vec<Subagent>> {
        let found = definitions_of_run(&self.log, &path.thread_id, &path.run_id, as_of)?;
        let types = found.ok_or_else(|| ApiError::no_run(&path.run_id))?;
        let to_wire = |one: RunDefinition| convert::subagent::to_wire(one.resolved, one.is_allowed);
        Ok(types.into_iter().map(to_wire).collect())
    }
}
