//! Probes: is the process alive, and does it take work? They are read by machines that add
//! parameters of their own, so that these are let pass.

use axum::{Json, Router, extract::State, routing::get};
use contracts::wire::{
    health::{Alive, Ready},
    problem::ProblemCode,
};
use eventlog::Health;

use crate::{
    convert,
    error::{Answer, ApiError},
    paths,
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new().route(paths::HEALTHZ, get(healthz)).route(paths::READYZ, get(readyz))
}

async fn healthz() -> Json<Alive> {
    Json(Alive { status: "ok".to_owned() })
}

async fn readyz(State(server): State<Server>) -> Answer<Json<Ready>> {
    check_log(server.log.health())?;
    let views = server.read(Server::views).await?;
    let status = convert::health::status(&views).to_owned();
    Ok(Json(Ready { status, head: server.log.head().get(), views }))
}

fn check_log(health: Health) -> Answer<()> {
    let reason = match health {
        Health::Writable => return Ok(()),
        Health::Poisoned { reason } => format!("the log refuses writes since one failed ({reason}); restart"),
        Health::Closed => "the log is closed".to_owned(),
    };
    Err(ApiError::new(ProblemCode::Unavailable, reason))
}
