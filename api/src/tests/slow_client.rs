//! Over a socket: clients that do not read, and the server's stop.

use std::time::Duration;

use domain::event::RunStatus;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

use super::app::App;
use crate::{
    serve::serve_with,
    testing::{append, run_event, run_status},
};

/// Short, so that the test need not wait for half a minute.
const SHORT_STALL: Duration = Duration::from_millis(500);
/// Longer than a busy machine keeps a reading client from its turn.
const PATIENCE: Duration = Duration::from_secs(60);
/// What is produced while nobody reads: far more than the sockets of both sides hold.
const EVENTS: usize = 32;
const EVENT_BYTES: usize = 1024 * 1024;

struct Served {
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
}

async fn serve(app: &App, write_stall: Duration) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async { drop(stopped.await) };
    let task = tokio::spawn(serve_with(listener, app.server.clone(), write_stall, shutdown));
    Served { address, stop, task }
}

async fn follow(served: &Served, cursor: Option<&str>) -> TcpStream {
    let mut client = TcpStream::connect(served.address).await.unwrap();
    let cursor = cursor.map(|cursor| format!("Last-Event-ID: {cursor}\r\n")).unwrap_or_default();
    let request = format!(
        "GET /api/threads/t/runs/r/stream HTTP/1.1\r\nHost: {}\r\n{cursor}Connection: close\r\n\r\n",
        served.address
    );
    client.write_all(request.as_bytes()).await.unwrap();
    client
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let reached = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.unwrap_or_else(|_| panic!("{what}"));
}

// Field report 64: memory stays bounded, the connection is dropped, and the cursor gets all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_is_dropped_and_may_resume() {
    let app = App::without_followers();
    append(&app.log, "t", vec![run_event("r", "run.start", "{}"), run_status("r", RunStatus::Running)]).await;
    let hasty = serve(&app, SHORT_STALL).await;
    let idle = follow(&hasty, None).await;
    until("the stream is opened", || app.server.streams.open() == 1).await;
    let body = format!("\"{}\"", "x".repeat(EVENT_BYTES));
    for _ in 0..EVENTS {
        append(&app.log, "t", vec![run_event("r", "x", &body)]).await;
    }
    append(&app.log, "t", vec![run_status("r", RunStatus::Success)]).await;
    until("the stream is dropped", || app.server.streams.open() == 0).await;
    drop(idle);

    let served = serve(&app, PATIENCE).await;
    let mut lines = BufReader::new(follow(&served, Some("2")).await).lines();
    let mut seen = Vec::new();
    while let Some(line) = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap() {
        if line.starts_with("id: ") || line.starts_with("event: end") {
            seen.push(line);
        }
    }
    let mut expected: Vec<_> = (3..=EVENTS + 3).map(|position| format!("id: {position}")).collect();
    expected.push("event: end".to_owned());
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_client_that_leaves_is_forgotten() {
    let app = App::without_followers();
    append(&app.log, "t", vec![run_status("r", RunStatus::Running)]).await;
    let served = serve(&app, PATIENCE).await;
    let clients = [follow(&served, None).await, follow(&served, Some("1")).await];
    until("both streams are open", || app.server.streams.open() == 2).await;
    drop(clients);
    until("both streams are closed", || app.server.streams.open() == 0).await;
}

#[tokio::test]
async fn a_stop_ends_streams_and_returns() {
    let app = App::without_followers();
    append(&app.log, "t", vec![run_status("r", RunStatus::Running)]).await;
    let served = serve(&app, PATIENCE).await;
    let mut client = follow(&served, None).await;
    until("the stream is open", || app.server.streams.open() == 1).await;
    served.stop.send(()).unwrap();
    tokio::time::timeout(PATIENCE, served.task).await.unwrap().unwrap().unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    assert!(text.contains("event: metadata") && text.ends_with("0\r\n\r\n"), "{text:?}");
    assert!(!text.contains("event: end"), "a stream that was cut off does not say that the run has ended");
}
