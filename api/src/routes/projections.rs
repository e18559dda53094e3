//! Where the views stand, and making them again.

use std::ops::{ControlFlow, RangeInclusive};

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    routing::{get, post},
};
use contracts::wire::{
    health::{ParkedEvent, Rebuild, RebuildOrder, View},
    page::Page,
    problem::ProblemCode,
};
use eventlog::Position;
use jiff::Timestamp;
use projections::{RebuildError, RebuildRequest};

use crate::{
    convert,
    error::{Answer, ApiError},
    extract::{OptionalJsonBody, ParkedQuery, Path, Query, ViewPath},
    paths,
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route(paths::PROJECTIONS, get(views))
        .route(paths::PROJECTIONS_REBUILD, post(rebuild_all))
        .route(paths::PROJECTION_REBUILD, post(rebuild_one))
        .route(paths::PROJECTION_PARKED, get(parked))
}

async fn views(State(server): State<Server>, _: Query<()>) -> Answer<Json<Vec<View>>> {
    server.read(Server::views).await.map(Json)
}

async fn rebuild_all(
    State(server): State<Server>,
    _: Query<()>,
    OptionalJsonBody(RebuildOrder { check }): OptionalJsonBody<RebuildOrder>,
) -> Answer<(StatusCode, Json<Rebuild>)> {
    server.rebuild(RebuildRequest { view: None, check })
}

async fn rebuild_one(
    State(server): State<Server>,
    Path(ViewPath { name }): Path<ViewPath>,
    _: Query<()>,
    OptionalJsonBody(RebuildOrder { check }): OptionalJsonBody<RebuildOrder>,
) -> Answer<(StatusCode, Json<Rebuild>)> {
    server.rebuild(RebuildRequest { view: Some(name), check })
}

async fn parked(
    State(server): State<Server>,
    Path(ViewPath { name }): Path<ViewPath>,
    Query(ParkedQuery { after, limit, moment }): Query<ParkedQuery>,
) -> Answer<Json<Page<ParkedEvent>>> {
    let last = server.views_then(moment).await?.unwrap_or(Position::new(u64::MAX));
    server.read(move |server| server.parked(&name, after..=last, limit)).await.map(Json)
}

impl Server {
    /// Every view, with the first event that it passed over.
    pub(crate) fn views(&self) -> Answer<Vec<View>> {
        let (mut views, now) = (Vec::new(), Timestamp::now());
        for view in self.projections.health()? {
            let parked = match view.parked {
                0 => Vec::new(),
                _ => self.projections.parked(view.name, Position::ZERO, 1)?,
            };
            views.push(convert::health::view_to_wire(&view, parked.first(), now));
        }
        Ok(views)
    }

    /// Begins, and answers how far it is: nowhere. Who asks again finds out how it goes on.
    fn rebuild(&self, request: RebuildRequest) -> Answer<(StatusCode, Json<Rebuild>)> {
        let turn = self.projections.begin_rebuild(&request).map_err(|error| refused(&error))?;
        let begun = convert::health::rebuild_to_wire(turn.progress());
        let projections = self.projections.clone();
        drop(tokio::task::spawn_blocking(move || {
            if let Err(error) = projections.finish_rebuild(turn, &mut |_| ControlFlow::Continue(())) {
                let error = domain::causes::with_causes(&error);
                tracing::error!(error, "views could not be made again; those that were made before answer");
            }
        }));
        Ok((StatusCode::ACCEPTED, Json(begun)))
    }

    /// Those after the one position, and up to the other.
    fn parked(&self, view: &str, part: RangeInclusive<Position>, limit: usize) -> Answer<Page<ParkedEvent>> {
        if !self.projections.names().contains(&view) {
            let error = RebuildError::UnknownView { name: view.to_owned(), known: self.projections.names() };
            return Err(refused(&error));
        }
        let mut parked = self.projections.parked(view, *part.start(), limit.saturating_add(1))?;
        parked.retain(|event| event.position <= *part.end());
        let has_more = parked.len() > limit;
        parked.truncate(limit);
        let data = parked.into_iter().map(convert::health::parked_to_wire).collect();
        Ok(Page { data, has_more, next_before_seq: None })
    }
}

fn refused(error: &RebuildError) -> ApiError {
    let code = match error {
        RebuildError::UnknownView { .. } => ProblemCode::NotFound,
        RebuildError::Busy { .. } => ProblemCode::Conflict,
        RebuildError::CatchUp(_) | RebuildError::Rows(_) => {
            return ApiError::failed(ProblemCode::Unavailable, "making views again", error);
        }
    };
    ApiError::new(code, error.to_string())
}
