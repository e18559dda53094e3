//! One delegation: its card, its receipts, its end.

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    routing::{get, post},
};
use contracts::wire::{card::Card, delegation::DelegationState, evidence::Receipt, problem::ProblemCode};
use domain::card::CardHead;
use projections::as_of;
use runtime::CancelError;

use crate::{
    convert,
    error::{Answer, ApiError},
    extract::{Moment, Path, Query, RunPath, TaskPath, TaskReceiptsQuery},
    paths,
    reads::At,
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route(paths::TASK, get(state))
        .route(paths::TASK_CARD, get(card))
        .route(paths::TASK_RECEIPTS, get(receipts))
        .route(paths::TASK_CANCEL, post(cancel))
        .route(paths::RUN_TASKS_CANCEL, post(cancel_all))
}

/// Where the delegation stands and how far it has got: the card without its steps.
async fn state(
    State(server): State<Server>,
    Path(path): Path<TaskPath>,
    Query(moment): Query<Moment>,
) -> Answer<Json<DelegationState>> {
    let at = server.at(&path.thread_id, moment).await?;
    server.read(move |server| server.state_at(&path, at)).await.map(Json)
}

async fn card(
    State(server): State<Server>,
    Path(path): Path<TaskPath>,
    Query(moment): Query<Moment>,
) -> Answer<Json<Card>> {
    server.card_of(path, moment).await.map(Json)
}

/// A bare array in the order of recording, whole unless a limit is asked for.
async fn receipts(
    State(server): State<Server>,
    Path(path): Path<TaskPath>,
    Query(TaskReceiptsQuery { limit, after, moment }): Query<TaskReceiptsQuery>,
) -> Answer<Json<Vec<Receipt>>> {
    let mut receipts = server.card_of(path, moment).await?.receipts;
    receipts.retain(|receipt| receipt.seq > after.get());
    receipts.truncate(limit.unwrap_or(usize::MAX));
    Ok(Json(receipts))
}

/// Answers 202. The subagent ends as soon as it can; its run goes on.
async fn cancel(
    State(server): State<Server>,
    Path(path): Path<TaskPath>,
    _: Query<()>,
) -> Answer<StatusCode> {
    server.tail(&path.thread_id)?;
    server.cancel_task(path).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Answers 202. The subagents end as soon as they can; their run goes on, and its lead is told.
async fn cancel_all(
    State(server): State<Server>,
    Path(RunPath { thread_id, run_id }): Path<RunPath>,
    _: Query<()>,
) -> Answer<StatusCode> {
    server.tail(&thread_id)?;
    server.runtime.cancel_delegations(&thread_id, &run_id).await?;
    Ok(StatusCode::ACCEPTED)
}

impl Server {
    async fn card_of(&self, path: TaskPath, moment: Moment) -> Answer<Card> {
        let at = self.at(&path.thread_id, moment).await?;
        self.read(move |server| server.card_at(&path, at)).await
    }

    fn state_at(&self, path: &TaskPath, at: At) -> Answer<DelegationState> {
        let (ours, theirs) = (projections::TaskRef::DelegationId, projections::TaskRef::TaskId);
        for task in domain::task_ref::meanings(&path.task_id, ours, theirs) {
            if let Some(head) = self.head_at(path, &task, at)? {
                return Ok(convert::delegation::state_to_wire(&head));
            }
        }
        Err(ApiError::no_task(path.task_id.as_str()))
    }

    fn head_at(&self, path: &TaskPath, task: &projections::TaskRef, at: At) -> Answer<Option<CardHead>> {
        match at {
            At::Now => Ok(self.projections.card_head(&path.thread_id, &path.run_id, task)?),
            At::Then(seq) => {
                Ok(as_of::card_head_as_of(&self.projections, &path.thread_id, &path.run_id, task, seq)?)
            }
        }
    }

    /// A delegation that waits now shows where; earlier moments do not tell.
    fn card_at(&self, path: &TaskPath, at: At) -> Answer<Card> {
        let (ours, theirs) = (projections::TaskRef::DelegationId, projections::TaskRef::TaskId);
        for task in domain::task_ref::meanings(&path.task_id, ours, theirs) {
            let found = match at {
                At::Now => self.projections.card(&path.thread_id, &path.run_id, &task)?,
                At::Then(seq) => {
                    as_of::card_as_of(&self.projections, &path.thread_id, &path.run_id, &task, seq)?
                }
            };
            if let Some(card) = found {
                let waits =
                    matches!(at, At::Now).then(|| self.runtime.queue_place(card.head.entry.delegation_id));
                let card = convert::card::to_wire(card);
                return Ok(match waits.flatten() {
                    Some(place) => convert::card::in_queue(card, place),
                    None => card,
                });
            }
        }
        Err(ApiError::no_task(path.task_id.as_str()))
    }

    async fn cancel_task(&self, path: TaskPath) -> Answer<()> {
        let (ours, theirs) = (runtime::TaskRef::DelegationId, runtime::TaskRef::TaskId);
        for task in domain::task_ref::meanings(&path.task_id, ours, theirs) {
            match self.runtime.cancel_delegation(&path.thread_id, &path.run_id, &task).await {
                Err(CancelError::UnknownDelegation(_)) => {}
                answer => return Ok(answer?),
            }
        }
        // The runtime knows those that are at work; the view knows all.
        self.card_of(path, Moment::default()).await?;
        Err(ApiError::new(ProblemCode::Conflict, "the delegation has ended"))
    }
}
