//! What was used, and what it cost.

use axum::{Json, Router, extract::State, routing::get};
use contracts::wire::usage_report::UsageReport;
use eventlog::Position;
use projections::{usage_as_of, usage_at};

use crate::{
    convert::usage_report::{self, Part},
    error::Answer,
    extract::{LogMoment, Moment, Query, UsageParameters},
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
    let Moment { min_position, .. } = parameters.moment;
    let when = match &parameters.query.thread_id {
        Some(thread_id) => When::OfThread(server.at(thread_id, parameters.moment).await?),
        None => {
            let moment = LogMoment { as_of: parameters.moment.then(), min_position };
            server.views_then(moment).await?.map_or(When::OfThread(At::Now), When::OfAll)
        }
    };
    server.read(move |server| server.usage_when(&parameters, when)).await.map(Json)
}

/// Which moment answers.
enum When {
    /// Now, or a moment of the one thread.
    OfThread(At),
    /// A moment of all threads.
    OfAll(Position),
}

impl Server {
    fn usage_when(&self, parameters: &UsageParameters, when: When) -> Answer<UsageReport> {
        let UsageParameters { query, limit, after, moment: _ } = parameters;
        let report = match (when, &query.thread_id) {
            (When::OfThread(At::Then(seq)), Some(thread_id)) => {
                usage_as_of(&self.projections, thread_id, seq, query, &self.prices)?
            }
            (When::OfAll(position), _) => usage_at(&self.projections, position, query, &self.prices)?,
            (When::OfThread(At::Then(_) | At::Now), _) => self.projections.usage(query, &self.prices)?,
        };
        let part = Part { after: after.clone(), limit: *limit };
        Ok(usage_report::to_wire(report, &query.group_by, &self.prices, &part))
    }
}
