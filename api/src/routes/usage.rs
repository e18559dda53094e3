//! What was used, and what it cost.

use axum::{Json, Router, extract::State, routing::get};
use contracts::wire::usage_report::UsageReport;
use eventlog::Position;
use projections::usage_as_of;

use crate::{
    convert::usage_report::{self, Part},
    error::Answer,
    extract::{Query, UsageParameters},
    paths,
    reads::At,
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new().route(paths::USAGE, get(usage))
}

/// Of one thread or of all of them, at the prices that are configured now.
async fn usage(
    State(server): State<Server>,
    Query(parameters): Query<UsageParameters>,
) -> Answer<Json<UsageReport>> {
    let at = match &parameters.query.thread_id {
        Some(thread_id) => server.at(thread_id, parameters.moment).await?,
        None => {
            server.reach_position(parameters.moment.min_position.unwrap_or(Position::ZERO)).await?;
            server.views_now().await.map(|()| At::Now)?
        }
    };
    server.read(move |server| server.usage_at(&parameters, at)).await.map(Json)
}

impl Server {
    fn usage_at(&self, parameters: &UsageParameters, at: At) -> Answer<UsageReport> {
        let UsageParameters { query, limit, after, moment: _ } = parameters;
        let report = match (at, &query.thread_id) {
            (At::Then(seq), Some(thread_id)) => {
                usage_as_of(&self.projections, thread_id, seq, query, &self.prices)?
            }
            (At::Then(_) | At::Now, _) => self.projections.usage(query, &self.prices)?,
        };
        let part = Part { after: after.clone(), limit: *limit };
        Ok(usage_report::to_wire(report, &query.group_by, &self.prices, &part))
    }
}
