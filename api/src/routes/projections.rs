//! Where the views stand.

use axum::{Json, Router, extract::State, routing::get};
use contracts::wire::health::View;
use eventlog::Position;

use crate::{convert, error::Answer, extract::Query, paths, state::Server};

pub(crate) fn routes() -> Router<Server> {
    Router::new().route(paths::PROJECTIONS, get(views))
}

async fn views(State(server): State<Server>, _: Query<()>) -> Answer<Json<Vec<View>>> {
    server.read(Server::views).await.map(Json)
}

impl Server {
    /// Every view, with the first event that it passed over.
    pub(crate) fn views(&self) -> Answer<Vec<View>> {
        let mut views = Vec::new();
        for view in self.projections.health()? {
            let parked = match view.parked {
                0 => Vec::new(),
                _ => self.projections.parked(view.name, Position::ZERO, 1)?,
            };
            views.push(convert::health::view_to_wire(&view, parked.first()));
        }
        Ok(views)
    }
}
