//! Message feeds (facts §7.2 and §8). What does not exist, or was erased, has no messages.

use std::collections::BTreeMap;

use axum::{Json, Router, extract::State, response::Response, routing::get};
use contracts::wire::message::MessageCount;
use domain::ids::{RunId, ThreadId};
use projections::{Feed, FeedQuery};

use crate::{
    error::Answer,
    extract::{LastAnswersQuery, MessagePageQuery, MessagesQuery, Moment, Path, Query, RunPath, ThreadPath},
    paths,
    record_stream::{Pieces, Records},
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route(paths::MESSAGES, get(list))
        .route(paths::MESSAGES_PAGE, get(page))
        .route(paths::MESSAGES_COUNT, get(count))
        .route(paths::MESSAGES_LAST_AI, get(last_answers))
        .route(paths::RUN_MESSAGES, get(of_run))
}

/// A bare array: the first messages after a cursor, else the last ones.
async fn list(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    Query(query): Query<MessagesQuery>,
) -> Answer<Response> {
    server.feed(thread_id, Feed::Whole, query, |pieces, _| Records::array(pieces)).await
}

async fn of_run(
    State(server): State<Server>,
    Path(RunPath { thread_id, run_id }): Path<RunPath>,
    Query(query): Query<MessagesQuery>,
) -> Answer<Response> {
    let page =
        |pieces, has_more| Records::page(pieces, Box::new(move |_| format!("],\"has_more\":{has_more}}}")));
    server.feed(thread_id, Feed::OfRun(run_id), query, page).await
}

/// What readers are shown, from the end backward.
async fn page(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    Query(MessagePageQuery { limit, before, moment }): Query<MessagePageQuery>,
) -> Answer<Response> {
    let query = MessagesQuery { limit, before, after: None, moment };
    let page = |pieces, has_more| {
        let closing = move |first: Option<u64>| {
            let next = first.filter(|_| has_more).map_or("null".to_owned(), |seq| seq.to_string());
            format!("],\"has_more\":{has_more},\"next_before_seq\":{next}}}")
        };
        Records::page(pieces, Box::new(closing))
    };
    server.feed(thread_id, Feed::Visible, query, page).await
}

async fn count(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    Query(moment): Query<Moment>,
) -> Answer<Json<MessageCount>> {
    let as_of = server.feed_at(&thread_id, moment).await?;
    let read = move |server: &Server| Ok(server.projections.message_count(&thread_id, as_of)?);
    server.read(read).await.map(|count| Json(MessageCount { count }))
}

/// The seq of the last reply that readers are shown, for each of the runs that has one.
async fn last_answers(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    Query(LastAnswersQuery { run_ids, moment }): Query<LastAnswersQuery>,
) -> Answer<Json<BTreeMap<RunId, u64>>> {
    let as_of = server.feed_at(&thread_id, moment).await?;
    let read = move |server: &Server| Ok(server.projections.last_answers(&thread_id, &run_ids, as_of)?);
    server.read(read).await.map(Json)
}

impl Server {
    /// Sends a page of a feed; `records` writes what stands around the messages, and whether there are more.
    async fn feed(
        &self,
        thread_id: ThreadId,
        feed: Feed,
        query: MessagesQuery,
        records: impl FnOnce(Pieces, bool) -> Records + Send + 'static,
    ) -> Answer<Response> {
        let as_of = self.feed_at(&thread_id, query.moment).await?;
        let MessagesQuery { limit, before, after, moment: _ } = query;
        let query = FeedQuery { thread_id, feed, before, after, as_of, limit };
        self.send(move |server| {
            let mut pieces = server.projections.message_pieces(&query)?;
            let has_more = pieces.has_more();
            Ok(records(Box::new(move || Ok(pieces.next_piece()?)), has_more))
        })
        .await
    }
}
