//! The stub on its socket.

use std::{io, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Path, RawQuery, State},
    http::{HeaderMap, StatusCode, header},
    response::Response,
    routing::post,
};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};

use super::{
    Face, Shared,
    answer::{Answer, Cut, Kind},
    asked::Asked,
    strict,
};

pub(super) async fn listen(shared: Arc<Shared>) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = Router::new()
        .route("/v1/chat/completions", post(chat_completions))
        .route("/v1/messages", post(messages))
        .route("/v1beta/models/{*call}", post(generate_content))
        .with_state(shared);
    let server = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    (address, server)
}

type Shares = State<Arc<Shared>>;

async fn chat_completions(State(shared): Shares, headers: HeaderMap, body: Bytes) -> Response {
    complete(shared, Face::Openai, &headers, &body, None).await
}

async fn messages(State(shared): Shares, headers: HeaderMap, body: Bytes) -> Response {
    complete(shared, Face::Anthropic, &headers, &body, None).await
}

async fn generate_content(
    State(shared): Shares,
    Path(call): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match (call.split_once(':'), query.as_deref()) {
        (Some((model, "streamGenerateContent")), Some("alt=sse")) => {
            complete(shared, Face::Gemini, &headers, &body, Some(model)).await
        }
        (_, query) => refuse(&shared, format!("there is no call {call:?} with {query:?}")),
    }
}

async fn complete(
    shared: Arc<Shared>,
    face: Face,
    headers: &HeaderMap,
    body: &[u8],
    model: Option<&str>,
) -> Response {
    let Ok(mut sent) = serde_json::from_slice::<Value>(body) else {
        return refuse(&shared, "the body is not JSON".to_owned());
    };
    // Only Gemini has the model in the path.
    if let Some(model) = model {
        sent["model"] = model.into();
    }
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let key = header(face.key_header()).to_owned();
    if let Some((name, value)) = face.needed_header().filter(|(name, value)| header(name) != *value) {
        return refuse(&shared, format!("{name}: {value} is missing"));
    }
    let asked = {
        let mut requests = shared.requests.lock().unwrap();
        let asked = Asked::read(requests.len() + 1, face, key, sent);
        requests.push(asked.clone());
        asked
    };
    if let Some(fault) = face.fault(shared.strictness, &asked.sent) {
        return refuse(&shared, format!("request {}: {fault}", asked.number));
    }
    if let Some(fault) = strict::fault(shared.strictness, &asked.body) {
        return refuse(&shared, format!("request {}: {fault}", asked.number));
    }
    let answer = (shared.script)(&asked);
    if let Some(gate) = &answer.held {
        gate.passed().await;
    }
    respond(&answer, face, asked.number)
}

fn refuse(shared: &Shared, fault: String) -> Response {
    let answer = Answer::refusal(400, &fault);
    shared.faults.lock().unwrap().push(fault);
    respond(&answer, Face::Openai, 0)
}

fn respond(answer: &Answer, face: Face, number: usize) -> Response {
    let mut response = Response::builder();
    match &answer.kind {
        Kind::Stream(_) => response = response.header(header::CONTENT_TYPE, "text/event-stream"),
        Kind::Whole(_) => response = response.header(header::CONTENT_TYPE, "application/json"),
        Kind::Raw { status, headers, .. } => {
            response = response.status(StatusCode::from_u16(*status).unwrap());
            for (name, value) in headers {
                response = response.header(name, value);
            }
        }
    }
    response.body(body(answer, face, number)).unwrap()
}

/// The body piece by piece. Each piece is on its way before the next is made, so that a connection
/// that breaks has carried every byte before the break.
fn body(answer: &Answer, face: Face, number: usize) -> Body {
    let events = face.body(&answer.kind, number);
    let whole = events.concat();
    let end = match answer.cut {
        Some(Cut::Break(at) | Cut::Close(at) | Cut::Stall(at)) => at.min(whole.len()),
        None => whole.len(),
    };
    let pieces: Vec<Bytes> = match answer.piece_bytes {
        Some(bytes) => whole[..end].chunks(bytes.max(1)).map(Bytes::copy_from_slice).collect(),
        None => whole_events(events, end).into_iter().map(Bytes::from).collect(),
    };
    let state = (pieces.into_iter(), answer.cut);
    let stream = futures::stream::unfold(state, |(mut pieces, cut)| async move {
        tokio::task::yield_now().await;
        match (pieces.next(), cut) {
            (Some(piece), _) => Some((Ok(piece), (pieces, cut))),
            (None, None | Some(Cut::Close(_))) => None,
            (None, Some(Cut::Break(_))) => {
                let error = io::Error::other("the script breaks the connection here");
                Some((Err(error), (pieces, None)))
            }
            (None, Some(Cut::Stall(_))) => std::future::pending().await,
        }
    });
    Body::from_stream(stream)
}

/// The events up to this byte of the body.
fn whole_events(events: Vec<Vec<u8>>, end: usize) -> Vec<Vec<u8>> {
    let (mut kept, mut left) = (Vec::new(), end);
    for mut event in events {
        event.truncate(left);
        left -= event.len();
        if !event.is_empty() {
            kept.push(event);
        }
    }
    kept
}
