//! Message feeds (facts §7.2 and §8). What does not exist, or was erased, has no messages.

use std::collections::BTreeMap;

use axum::{Json, Router, extract::State, routing::get};
use contracts::wire::{
    event::EventRecord,
    message::{MessageCount, MessagePage},
    page::Page,
};
use domain::ids::{RunId, ThreadId};
use eventlog::{Seq, StreamId};
use projections::{Feed, FeedQuery};

use crate::{
    convert,
    error::Answer,
    extract::{LastAnswersQuery, MessagePageQuery, MessagesQuery, Moment, Path, Query, RunPath, ThreadPath},
    paths,
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
) -> Answer<Json<Vec<EventRecord>>> {
    server.feed(thread_id, Feed::Whole, query).await.map(|(messages, _)| Json(messages))
}

async fn of_run(
    State(server): State<Server>,
    Path(RunPath { thread_id, run_id }): Path<RunPath>,
    Query(query): Query<MessagesQuery>,
) -> Answer<Json<Page<EventRecord>>> {
    let (data, has_more) = server.feed(thread_id, Feed::OfRun(run_id), query).await?;
    Ok(Json(Page { data, has_more, next_before_seq: None }))
}

/// What readers are shown, from the end backward.
async fn page(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    Query(MessagePageQuery { limit, before, moment }): Query<MessagePageQuery>,
) -> Answer<Json<MessagePage>> {
    let query = MessagesQuery { limit, before, after: None, moment };
    let (data, has_more) = server.feed(thread_id, Feed::Visible, query).await?;
    let next_before_seq = data.first().filter(|_| has_more).map(|message| message.seq);
    Ok(Json(MessagePage { data, has_more, next_before_seq }))
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
    async fn feed(
        &self,
        thread_id: ThreadId,
        feed: Feed,
        query: MessagesQuery,
    ) -> Answer<(Vec<EventRecord>, bool)> {
        let as_of = self.feed_at(&thread_id, query.moment).await?;
        let MessagesQuery { limit, before, after, moment: _ } = query;
        let query = FeedQuery { thread_id, feed, before, after, as_of, limit };
        self.read(move |server| {
            let page = server.projections.messages(&query)?;
            Ok((convert::event::to_wire_all(&page.messages)?, page.has_more))
        })
        .await
    }

    async fn feed_at(&self, thread_id: &ThreadId, moment: Moment) -> Answer<Option<Seq>> {
        let tail = self.log.stream_tail(&StreamId::Thread(thread_id.clone()))?;
        self.list_at(thread_id, tail.unwrap_or(Seq::ZERO), moment).await
    }
}
