//! How many events of others the server takes in: batches over HTTP on loopback, each answered when
//! it is durable, into a log on disk.
//!
//! ```text
//! cargo bench -p api --bench ingest
//! ```
//!
//! Clients and server share this process, so the figure per core counts the clients' work too.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a measurement that cannot run has nothing to say"
)]

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use api::{ApiState, serve};
use domain::pricing::Prices;
use eventlog::{EventLog, Options};
use projections::Projections;
use runtime::{
    Runtime, RuntimeParts, SystemClock, SystemIds,
    config::Config,
    models::{Models, OfflineModel},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// Events of one request.
const BATCH: usize = 25;
/// Characters of text in each event.
const TEXT_CHARS: usize = 256;
/// How long each setting is measured.
const SECONDS: u64 = 5;
/// Connections at once, each with a thread of its own.
const CLIENTS: [usize; 3] = [1, 4, 16];
/// What the tick of the process clock counts, in seconds (`_SC_CLK_TCK` is 100 on Linux).
const TICK_SECONDS: f64 = 0.01;

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let log = EventLog::open(folder.path(), Options::default()).unwrap();
    let address = start(&log, folder.path()).await;
    for clients in CLIENTS {
        measure(address, &log, clients).await;
    }
    log.close().await;
}

/// A server on a port of its own, with views that follow the log.
async fn start(log: &EventLog, folder: &std::path::Path) -> SocketAddr {
    let scenario = "agents: [{ agent: lead, turns: [{ say: done }] }]";
    let runtime = Runtime::new(RuntimeParts {
        log: log.clone(),
        config: Config::default(),
        models: Models::of(OfflineModel::from_yaml("offline", scenario).unwrap()),
        data_folder: folder.to_owned(),
        clock: Arc::new(SystemClock),
        ids: Arc::new(SystemIds),
    })
    .unwrap();
    let projections = Projections::open(&folder.join("views"), log.clone()).unwrap();
    drop(projections.follow(std::future::pending()));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let state = ApiState {
        log: log.clone(),
        projections,
        runtime,
        prices: Prices::default(),
        config: Vec::new(),
        listen: address.ip(),
    };
    tokio::spawn(serve(listener, state, std::future::pending()));
    address
}

async fn measure(address: SocketAddr, log: &EventLog, clients: usize) {
    let (started, cpu_before, events_before) = (Instant::now(), cpu_seconds(), log.head().get());
    let until = started + Duration::from_secs(SECONDS);
    let clients_at_work: Vec<_> =
        (0..clients).map(|client| tokio::spawn(post_until(address, client, clients, until))).collect();
    let mut answered = Vec::new();
    for client in clients_at_work {
        answered.extend(client.await.unwrap());
    }
    answered.sort();
    let events = (log.head().get() - events_before) as f64;
    let (seconds, cpu) = (started.elapsed().as_secs_f64(), cpu_seconds() - cpu_before);
    let at = |share: f64| answered[((answered.len() - 1) as f64 * share) as usize].as_micros();
    println!(
        "{{\"clients\":{clients},\"batch\":{BATCH},\"events\":{events},\"events_per_second\":{:.0},\
         \"events_per_cpu_second\":{:.0},\"p50_us\":{},\"p99_us\":{}}}",
        events / seconds,
        events / cpu,
        at(0.5),
        at(0.99)
    );
}

/// Posts batches one after the other, and gives how long each answer took.
async fn post_until(address: SocketAddr, client: usize, clients: usize, until: Instant) -> Vec<Duration> {
    let request = request(&format!("bench-{clients}-{client}"));
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut took, mut buffer) = (Vec::new(), Vec::new());
    while Instant::now() < until {
        let sent = Instant::now();
        stream.write_all(&request).await.unwrap();
        read_answer(&mut stream, &mut buffer).await;
        took.push(sent.elapsed());
    }
    took
}

fn request(thread_id: &str) -> Vec<u8> {
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(TEXT_CHARS / 45 + 1);
    let event = |index: usize| {
        serde_json::json!({"run_id": "run-1", "event_type": "subagent.step", "category": "subagent",
            "content": {"message_index": index, "kind": "tool", "text": &text[..TEXT_CHARS]},
            "metadata": {"task_id": format!("call_{}", index % 5)}})
    };
    let body = serde_json::Value::from((0..BATCH).map(event).collect::<Vec<_>>()).to_string();
    format!(
        "POST /api/threads/{thread_id}/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Reads one answer to its end; it must be a success.
async fn read_answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) {
    buffer.clear();
    let mut wanted = None;
    while wanted.is_none_or(|wanted| buffer.len() < wanted) {
        assert!(stream.read_buf(buffer).await.unwrap() > 0, "the server hung up");
        if wanted.is_none()
            && let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n")
        {
            let head = String::from_utf8_lossy(&buffer[..end]).to_lowercase();
            assert!(head.starts_with("http/1.1 200"), "{}", String::from_utf8_lossy(buffer));
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
            wanted = Some(end + 4 + length.unwrap().trim().parse::<usize>().unwrap());
        }
    }
}

/// What all threads of this process have used.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) * TICK_SECONDS
}
