//! The server on its socket.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::serve::Listener;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

use crate::{
    connection::Connection,
    router,
    state::{ApiState, Server},
};

/// Connections at once; whoever comes after them waits to be accepted. Above the number of streams,
/// so that streams alone cannot shut everybody else out.
const CONNECTIONS_MAX: usize = 2_048;
/// How long a client may leave what is sent to it unread.
const WRITE_STALL: Duration = Duration::from_secs(30);
/// How long requests may take to end when the server stops.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// Serves until `shutdown`, then ends streams and waits, lets other requests finish for a bounded
/// time, and returns.
pub async fn serve(
    listener: TcpListener,
    mut state: ApiState,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    state.listen = listener.local_addr()?.ip();
    serve_with(listener, Server::new(state), WRITE_STALL, shutdown).await
}

/// As [`serve`], with a stall that tests can wait for.
pub(crate) async fn serve_with(
    listener: TcpListener,
    server: Server,
    write_stall: Duration,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let doors = Doors { listener, write_stall, places: Arc::new(Semaphore::new(CONNECTIONS_MAX)) };
    let mut stopping = server.shutdown.clone();
    let routes = router::routes(&server);
    let stop = async move {
        shutdown.await;
        server.switch.begin();
    };
    let served = axum::serve(doors, routes).with_graceful_shutdown(stop);
    tokio::select! {
        result = served => result,
        () = async { stopping.begun().await; tokio::time::sleep(SHUTDOWN_GRACE).await } => {
            tracing::warn!("requests were still open {} s after the stop, and were cut off", SHUTDOWN_GRACE.as_secs());
            Ok(())
        }
    }
}

/// Lets clients in, so many at once, and watches over each.
struct Doors {
    listener: TcpListener,
    write_stall: Duration,
    places: Arc<Semaphore>,
}

impl Listener for Doors {
    type Io = Connection<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        // The semaphore is never closed; without a place the connection would merely not count.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        if let Err(error) = prepare(&stream, self.write_stall) {
            tracing::debug!(%address, %error, "a connection keeps the system's defaults");
        }
        (Connection::new(stream, self.write_stall, place), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Frames go out at once, and a peer that vanished without a word is given up: what is sent to it,
/// heartbeats among it, is not acknowledged any more.
fn prepare(stream: &TcpStream, write_stall: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(stream).set_tcp_user_timeout(Some(write_stall))?;
    Ok(())
}
