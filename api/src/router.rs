//! All routes together, and what stands around each of them.

use axum::{Router, extract::Request, middleware, response::IntoResponse as _};
use contracts::wire::problem::ProblemCode;
use tower_http::trace::TraceLayer;

use crate::{
    error::ApiError,
    hosts, routes,
    state::{ApiState, Server},
};

/// The server's routes.
pub fn router(state: ApiState) -> Router {
    routes(&Server::new(state))
}

pub(crate) fn routes(server: &Server) -> Router {
    Router::new()
        .merge(routes::backups::routes())
        .merge(routes::blobs::routes())
        .merge(routes::capacity::routes())
        .merge(routes::card_replay::routes())
        .merge(routes::caps::routes())
        .merge(routes::config::routes())
        .merge(routes::delegations::routes())
        .merge(routes::erasures::routes())
        .merge(routes::events::routes())
        .merge(routes::exports::routes())
        .merge(routes::log::routes())
        .merge(routes::messages::routes())
        .merge(routes::metrics::routes())
        .merge(routes::probes::routes())
        .merge(routes::projections::routes())
        .merge(routes::receipts::routes())
        .merge(routes::runs::routes())
        .merge(routes::start::routes())
        .merge(routes::stream::routes())
        .merge(routes::subagents::routes())
        .merge(routes::managed::routes())
        .merge(routes::tasks::routes())
        .merge(routes::threads::routes())
        .merge(routes::usage::routes())
        .fallback(async || ApiError::new(ProblemCode::NotFound, "there is no such route").into_response())
        .method_not_allowed_fallback(async || {
            ApiError::new(ProblemCode::MethodNotAllowed, "this route has other methods; see the Allow header")
                .into_response()
        })
        .layer(middleware::from_fn_with_state(server.hosts, hosts::guard))
        .layer(TraceLayer::new_for_http().make_span_with(span))
        .with_state(server.clone())
}

/// What the lines of a request are logged under. The query is left out: it may have a token in it.
fn span(request: &Request) -> tracing::Span {
    tracing::debug_span!("request", method = %request.method(), path = request.uri().path())
}
