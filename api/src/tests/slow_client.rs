//! Over a socket: clients that do not read or do not speak, and the server's stop.

use std::time::Duration;

use domain::event::RunStatus;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

use super::app::App;
use crate::{
    serve::{Bounds, serve_with},
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
    serve_within(app, Bounds { write_stall, ..Bounds::USUAL }).await
}

async fn serve_within(app: &App, bounds: Bounds) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async { drop(stopped.await) };
    let task = tokio::spawn(serve_with(listener, app.server.clone(), bounds, shutdown));
    Served { address, stop, task }
}

async fn follow(served: &Served, cursor: Option<&str>) -> TcpStream {
    follow_by(TcpStream::connect(served.address).await.unwrap(), served, cursor).await
}

async fn follow_by(mut client: TcpStream, served: &Served, cursor: Option<&str>) -> TcpStream {
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

/// Clients of one page.
const CLIENTS: usize = 50;

#[tokio::test]
async fn a_client_that_leaves_is_forgotten() {
    let app = App::without_followers();
    append(&app.log, "t", vec![run_status("r", RunStatus::Running)]).await;
    let served = serve(&app, PATIENCE).await;
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        clients.push(follow(&served, (number % 2 == 0).then_some("1")).await);
    }
    until("all streams are open", || app.server.streams.open() == CLIENTS).await;
    drop(clients);
    until("all streams are closed", || app.server.streams.open() == 0).await;
}

// Field report 65: clients that are frozen say nothing and close nothing. What is sent to them finds an end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_are_frozen_are_forgotten() {
    let app = App::without_followers();
    append(&app.log, "t", vec![run_status("r", RunStatus::Running)]).await;
    let served = serve(&app, SHORT_STALL).await;
    let mut frozen = Vec::new();
    for _ in 0..CLIENTS {
        // Little fits into its buffers, so that little has to be produced.
        let client = TcpSocket::new_v4().unwrap();
        client.set_recv_buffer_size(4_096).unwrap();
        frozen.push(follow_by(client.connect(served.address).await.unwrap(), &served, None).await);
    }
    until("all streams are open", || app.server.streams.open() == CLIENTS).await;
    let body = format!("\"{}\"", "x".repeat(EVENT_BYTES / 4));
    for _ in 0..EVENTS / 2 {
        append(&app.log, "t", vec![run_event("r", "x", &body)]).await;
    }
    until("all streams are dropped", || app.server.streams.open() == 0).await;
    drop(frozen);
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

/// Sends bytes as they are.
async fn say(served: &Served, text: &str) -> TcpStream {
    let mut client = TcpStream::connect(served.address).await.unwrap();
    client.write_all(text.as_bytes()).await.unwrap();
    client
}

/// All that the server says until it hangs up.
async fn heard(mut client: TcpStream) -> String {
    let mut text = String::new();
    let read = tokio::time::timeout(PATIENCE, client.read_to_string(&mut text)).await;
    // A connection that is reset has been ended too.
    drop(read.expect("the server hangs up"));
    text
}

const PROBE: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[tokio::test]
async fn a_client_that_does_not_send_a_whole_head_is_hung_up_on() {
    let app = App::without_followers();
    let served = serve_within(&app, Bounds { head: SHORT_STALL, ..Bounds::USUAL }).await;
    for beginning in ["", "GET /healthz HTTP/1.1\r\nHost: local"] {
        assert_eq!(heard(say(&served, beginning).await).await, "", "{beginning:?}");
    }
    // One that has had its answer is not kept for ever either.
    let answered = heard(say(&served, PROBE).await).await;
    assert!(answered.starts_with("HTTP/1.1 200 "), "{answered}");
}

#[tokio::test]
async fn a_stream_outlives_the_time_for_a_head() {
    let app = App::without_followers();
    append(&app.log, "t", vec![run_status("r", RunStatus::Running)]).await;
    let served = serve_within(&app, Bounds { head: SHORT_STALL, ..Bounds::USUAL }).await;
    let client = follow(&served, None).await;
    until("the stream is open", || app.server.streams.open() == 1).await;
    // Three that came later have been hung up on in the meantime.
    for _ in 0..3 {
        heard(say(&served, "").await).await;
    }
    append(&app.log, "t", vec![run_status("r", RunStatus::Success)]).await;
    let text = heard(client).await;
    assert!(text.contains("event: end"), "{text:?}");
}

#[tokio::test]
async fn who_finds_no_place_is_told_so_and_places_come_free() {
    let app = App::without_followers();
    let served = serve_within(&app, Bounds { connections: 2, head: SHORT_STALL * 4, ..Bounds::USUAL }).await;
    let idle = [say(&served, "").await, say(&served, "").await];
    let refused = heard(say(&served, PROBE).await).await;
    assert!(
        refused.starts_with("HTTP/1.1 503 ") && refused.contains("\"code\":\"unavailable\""),
        "{refused}"
    );
    assert!(refused.to_ascii_lowercase().contains("retry-after: 1"), "{refused}");
    for client in idle {
        assert_eq!(heard(client).await, "");
    }
    let answered = heard(say(&served, PROBE).await).await;
    assert!(answered.starts_with("HTTP/1.1 200 "), "{answered}");
}

// A proxy that reads the length and a server that reads the chunks disagree on where the next
// request begins: there is none.
#[tokio::test]
async fn a_body_with_two_lengths_ends_the_connection() {
    let app = App::without_followers();
    let served = serve(&app, PATIENCE).await;
    for lengths in
        ["Content-Length: 4\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 4"]
    {
        let request = format!(
            "POST /api/threads HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{lengths}\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n{PROBE}"
        );
        let text = heard(say(&served, &request).await).await;
        assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{text}");
    }
}

#[tokio::test]
async fn a_request_names_one_host_and_it_is_this_one() {
    let app = App::without_followers();
    let served = serve(&app, PATIENCE).await;
    for (request, status) in [
        ("GET http://localhost/healthz HTTP/1.1\r\nHost: localhost", 200),
        ("GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost", 403),
        ("GET http://localhost/healthz HTTP/1.1\r\nHost: evil.example", 403),
        ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example", 400),
        ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost", 400),
        (
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example",
            403,
        ),
    ] {
        let text = heard(say(&served, &format!("{request}\r\nConnection: close\r\n\r\n")).await).await;
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {text}");
    }
}
