//! The configuration that is in force, with who set what. Secrets are masked before it gets here.

use axum::{Json, Router, extract::State, routing::get};
use contracts::wire::config::Configuration;

use crate::{convert, extract::Query, paths, state::Server};

pub(crate) fn routes() -> Router<Server> {
    Router::new().route(paths::CONFIG, get(config))
}

async fn config(State(server): State<Server>, _: Query<()>) -> Json<Configuration> {
    Json(convert::config::to_wire(&server.config))
}
