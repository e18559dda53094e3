//! The definitions that administrators keep. Whoever reaches the server may change them, as all that it
//! has: it listens where only its owner does.

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use contracts::wire::{
    managed::{
        CreateManagedSubagent, ManagedSubagent, ManagedVersion, RollBackManagedSubagent,
        SwitchManagedSubagent, UpdateManagedSubagent,
    },
    page::Page,
    problem::ProblemCode,
};
use domain::ids::SubagentType;
use runtime::ManageOrder;

use crate::{
    convert,
    error::{Answer, ApiError},
    extract::{JsonBody, LogMoment, OptionalJsonBody, PageQuery, Path, Query, SubagentPath},
    paths,
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route(paths::MANAGED, get(list).post(create))
        .route(paths::MANAGED_ONE, get(one).put(update).delete(delete))
        .route(paths::MANAGED_ENABLE, post(enable))
        .route(paths::MANAGED_DISABLE, post(disable))
        .route(paths::MANAGED_ROLL_BACK, post(roll_back))
        .route(paths::MANAGED_HISTORY, get(history))
}

/// By name; `after` is the last name of the page before.
async fn list(
    State(server): State<Server>,
    Query(PageQuery { limit, after, moment }): Query<PageQuery>,
) -> Answer<Json<Page<ManagedSubagent>>> {
    let as_of = server.log_then(moment).await?;
    let mut data = server.runtime.managed_definitions(as_of).await?;
    data.retain(|one| after.as_deref().is_none_or(|after| one.kept.name.as_str() > after));
    Ok(Json(page(data.into_iter().map(convert::managed::to_wire).collect(), limit)))
}

async fn create(
    State(server): State<Server>,
    _: Query<()>,
    JsonBody(body): JsonBody<CreateManagedSubagent>,
) -> Answer<Response> {
    let name = SubagentType::new(body.name)?;
    let definition = convert::managed::from_wire(body.definition)?;
    let order = ManageOrder::Create { definition, enabled: body.enabled.unwrap_or(true) };
    let made = server.managed(&name, order, body.expected_version).await?;
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

async fn one(
    State(server): State<Server>,
    Path(SubagentPath { name }): Path<SubagentPath>,
    Query(moment): Query<LogMoment>,
) -> Answer<Json<ManagedSubagent>> {
    let as_of = server.log_then(moment).await?;
    let found = server.runtime.managed_definition(&name, as_of).await?;
    found.map(convert::managed::to_wire).map(Json).ok_or_else(|| unknown(&name))
}

async fn update(
    State(server): State<Server>,
    Path(SubagentPath { name }): Path<SubagentPath>,
    _: Query<()>,
    JsonBody(body): JsonBody<UpdateManagedSubagent>,
) -> Answer<Json<ManagedSubagent>> {
    let order = ManageOrder::Update(convert::managed::from_wire(body.definition)?);
    server.managed(&name, order, body.expected_version).await.map(Json)
}

async fn enable(
    State(server): State<Server>,
    Path(SubagentPath { name }): Path<SubagentPath>,
    _: Query<()>,
    OptionalJsonBody(body): OptionalJsonBody<SwitchManagedSubagent>,
) -> Answer<Json<ManagedSubagent>> {
    server.managed(&name, ManageOrder::Enable, body.expected_version).await.map(Json)
}

async fn disable(
    State(server): State<Server>,
    Path(SubagentPath { name }): Path<SubagentPath>,
    _: Query<()>,
    OptionalJsonBody(body): OptionalJsonBody<SwitchManagedSubagent>,
) -> Answer<Json<ManagedSubagent>> {
    server.managed(&name, ManageOrder::Disable, body.expected_version).await.map(Json)
}

async fn roll_back(
    State(server): State<Server>,
    Path(SubagentPath { name }): Path<SubagentPath>,
    _: Query<()>,
    JsonBody(body): JsonBody<RollBackManagedSubagent>,
) -> Answer<Json<ManagedSubagent>> {
    let order = ManageOrder::RollBack(body.to_version);
    server.managed(&name, order, body.expected_version).await.map(Json)
}

/// Answers 204. The versions stay, and the name may be used again.
async fn delete(
    State(server): State<Server>,
    Path(SubagentPath { name }): Path<SubagentPath>,
    _: Query<()>,
    OptionalJsonBody(body): OptionalJsonBody<SwitchManagedSubagent>,
) -> Answer<StatusCode> {
    server.runtime.manage(&name, ManageOrder::Delete, body.expected_version).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The versions, the first one first, also of one that was deleted; `after` is the last version of the
/// page before.
async fn history(
    State(server): State<Server>,
    Path(SubagentPath { name }): Path<SubagentPath>,
    Query(PageQuery { limit, after, moment }): Query<PageQuery>,
) -> Answer<Json<Page<ManagedVersion>>> {
    let as_of = server.log_then(moment).await?;
    let after = match after.as_deref().map(str::parse::<u64>) {
        None => 0,
        Some(Ok(version)) => version,
        Some(Err(_)) => return Err(ApiError::invalid("after", "a version: a whole number")),
    };
    let mut versions = server.runtime.definition_history(&name, as_of).await?;
    if versions.is_empty() {
        return Err(unknown(&name));
    }
    versions.retain(|one| one.version > after);
    Ok(Json(page(versions.into_iter().map(convert::managed::version_to_wire).collect(), limit)))
}

impl Server {
    async fn managed(
        &self,
        name: &SubagentType,
        order: ManageOrder,
        expected_version: Option<u64>,
    ) -> Answer<ManagedSubagent> {
        let now = self.runtime.manage(name, order, expected_version).await?;
        // Somebody may have deleted it since.
        now.map(convert::managed::to_wire).ok_or_else(|| unknown(name))
    }
}

fn page<T>(mut data: Vec<T>, limit: usize) -> Page<T> {
    let has_more = data.len() > limit;
    data.truncate(limit);
    Page { data, has_more, next_before_seq: None }
}

fn unknown(name: &SubagentType) -> ApiError {
    ApiError::new(ProblemCode::NotFound, format!("managed definition {name} not found"))
}
