//! The server on its socket.
//!
//! Every wait for a client has an end: for its request's head here, for the body where it is read,
//! for the reading of the answer in [`Connection`]. A client that says nothing holds a place for
//! seconds only, and one that finds no place is told so.

use std::{io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{extract::Request, response::IntoResponse as _, serve::Listener};
use contracts::wire::problem::ProblemCode;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};

use crate::{
    connection::Connection,
    error::ApiError,
    router,
    shutdown::Shutdown,
    state::{ApiState, Server},
};

/// Clients that found no place and are being told so; those who come after them are hung up on.
const TURNED_AWAY_MAX: usize = 64;
/// How long requests may take to end when the server stops.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// What clients are held to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Connections at once. Above the number of streams, so that streams alone cannot shut everybody
    /// else out.
    pub(crate) connections: usize,
    /// How long the head of a request may take, from the moment at which one may be sent. An idle
    /// connection is therefore kept as long.
    pub(crate) head: Duration,
    /// How long a client may leave what is sent to it unread.
    pub(crate) write_stall: Duration,
}

impl Bounds {
    pub(crate) const USUAL: Self =
        Self { connections: 2_048, head: Duration::from_secs(10), write_stall: Duration::from_secs(30) };
}

/// Serves until `shutdown`, then ends streams and waits, lets other requests finish for a bounded
/// time, and returns.
pub async fn serve(
    listener: TcpListener,
    mut state: ApiState,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    state.listen = listener.local_addr()?.ip();
    serve_with(listener, Server::new(state), Bounds::USUAL, shutdown).await
}

/// As [`serve`], with bounds that tests can reach.
pub(crate) async fn serve_with(
    mut listener: TcpListener,
    server: Server,
    bounds: Bounds,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let doors = Doors::new(&server, bounds);
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            (stream, address) = Listener::accept(&mut listener) => doors.open(stream, address, &mut connections),
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    server.switch.begin();
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(SHUTDOWN_GRACE, all_ended).await.is_err() {
        tracing::warn!(
            "requests were still open {} s after the stop, and were cut off",
            SHUTDOWN_GRACE.as_secs()
        );
    }
    Ok(())
}

/// Lets clients in, so many at once.
struct Doors {
    bounds: Bounds,
    routes: axum::Router,
    shutdown: Shutdown,
    places: Arc<Semaphore>,
    places_outside: Arc<Semaphore>,
}

impl Doors {
    fn new(server: &Server, bounds: Bounds) -> Self {
        Self {
            bounds,
            routes: router::routes(server),
            shutdown: server.shutdown.clone(),
            places: Arc::new(Semaphore::new(bounds.connections)),
            places_outside: Arc::new(Semaphore::new(TURNED_AWAY_MAX)),
        }
    }

    /// Begins the conversation with a client, or tells it that there is no place.
    fn open(&self, stream: TcpStream, address: SocketAddr, connections: &mut JoinSet<()>) {
        if let Err(error) = prepare(&stream, self.bounds.write_stall) {
            tracing::debug!(%address, %error, "a connection keeps the system's defaults");
        }
        let (bounds, shutdown) = (self.bounds, self.shutdown.clone());
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            connections.spawn(converse(stream, self.routes.clone(), place, bounds, shutdown));
        } else if let Ok(place) = Arc::clone(&self.places_outside).try_acquire_owned() {
            connections.spawn(turn_away(stream, place, bounds));
        } else {
            tracing::warn!(%address, "a client was hung up on: there is no place left to tell it that there is none");
        }
    }
}

/// Answers a client's requests until one of both sides ends it, or the server stops.
async fn converse(
    stream: TcpStream,
    routes: axum::Router,
    place: OwnedSemaphorePermit,
    bounds: Bounds,
    mut shutdown: Shutdown,
) {
    let io = TokioIo::new(Connection::new(stream, bounds.write_stall, place));
    let http = http(bounds.head).serve_connection(io, TowerToHyperService::new(routes));
    let mut http = pin!(http);
    let ended = tokio::select! {
        ended = http.as_mut() => ended,
        () = shutdown.begun() => {
            http.as_mut().graceful_shutdown();
            http.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Answers one request with the advice to come back.
async fn turn_away(stream: TcpStream, place: OwnedSemaphorePermit, bounds: Bounds) {
    let io = TokioIo::new(Connection::new(stream, bounds.write_stall, place));
    let answer = service_fn(async |_: Request<Incoming>| {
        let detail = "the server has as many connections as it takes; come back in a moment";
        Ok::<_, std::convert::Infallible>(ApiError::new(ProblemCode::Unavailable, detail).into_response())
    });
    if let Err(error) = http(bounds.head).keep_alive(false).serve_connection(io, answer).await {
        tracing::debug!(%error, "a client that found no place went away");
    }
}

fn http(head: Duration) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head);
    http
}

/// Frames go out at once, and a peer that vanished without a word is given up: what is sent to it,
/// heartbeats among it, is not acknowledged any more.
fn prepare(stream: &TcpStream, write_stall: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(stream).set_tcp_user_timeout(Some(write_stall))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // Field report 65: a peer whose machine is gone acknowledges nothing, and has two heartbeats' time.
    #[tokio::test]
    async fn a_peer_that_acknowledges_nothing_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        prepare(&stream, Bounds::USUAL.write_stall).unwrap();
        let limit = socket2::SockRef::from(&stream).tcp_user_timeout().unwrap();
        assert_eq!(limit, Some(Bounds::USUAL.write_stall));
        assert!(Bounds::USUAL.write_stall <= crate::sse::HEARTBEAT * 2);
        drop(client);
    }
}
