//! A run that a server works on, watched over its event stream.

use std::time::Duration;

use contracts::wire::event::EventRecord;
use domain::{
    event::{Event, Logged, Scope},
    ids::{RunId, UserId},
};
use futures::future::BoxFuture;
use reqwest::Response;
use tokio::time::Instant;

use crate::{
    failure::{Exit, Failure, exit_of},
    output::program,
    progress::watch::{Seen, Watched},
    source::Server,
};

/// A frame that is not complete within this is not one of ours: an event's body has 8 MiB at most.
const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long a server may be gone before nobody waits for it any more.
const RECONNECT_MAX: Duration = Duration::from_secs(30);
/// The wait before the first attempt to connect again; it doubles with each.
const RECONNECT_WAIT_MIN: Duration = Duration::from_millis(250);
/// The longest wait between two attempts: somebody watches.
const RECONNECT_WAIT_MAX: Duration = Duration::from_secs(4);

/// A run that a server works on.
pub(crate) struct RemoteRun {
    server: Server,
    thread_id: String,
    run_id: String,
    link: Link,
    buffer: Vec<u8>,
    /// The id of the last whole frame: what follows it is asked for after a break.
    last_id: Option<String>,
    lost: Option<Lost>,
    reconnect_max: Duration,
}

/// The connection. It lives here and not in a future, so that a call of `next` that is cancelled
/// loses nothing.
enum Link {
    /// Before the first attempt, or until the next one.
    Waiting(Instant),
    /// An attempt.
    Connecting(BoxFuture<'static, anyhow::Result<Response>>),
    /// Events come.
    Open(Response),
}

/// The server is gone.
#[derive(Debug, Clone, Copy)]
struct Lost {
    since: Instant,
    wait: Duration,
}

impl RemoteRun {
    /// Follows nothing yet.
    pub(crate) fn new(server: Server, thread_id: &str, run_id: &RunId) -> Self {
        Self {
            server,
            thread_id: thread_id.to_owned(),
            run_id: run_id.to_string(),
            link: Link::Waiting(Instant::now()),
            buffer: Vec::new(),
            last_id: None,
            lost: None,
            reconnect_max: RECONNECT_MAX,
        }
    }

    fn connect(&self) -> BoxFuture<'static, anyhow::Result<Response>> {
        let (server, thread, run) = (self.server.clone(), self.thread_id.clone(), self.run_id.clone());
        let last_id = self.last_id.clone();
        Box::pin(async move { server.stream(&thread, &run, last_id.as_deref()).await })
    }

    /// Reads until there is a whole frame, or something to tell the person.
    async fn read(&mut self) -> anyhow::Result<Read> {
        loop {
            if let Some(frame) = take_frame(&mut self.buffer) {
                return Ok(Read::Frame(frame));
            }
            anyhow::ensure!(self.buffer.len() <= FRAME_BYTES_MAX, "the server sent a frame without an end");
            match &mut self.link {
                Link::Waiting(until) => {
                    tokio::time::sleep_until(*until).await;
                    self.link = Link::Connecting(self.connect());
                }
                Link::Connecting(attempt) => match attempt.await {
                    Ok(stream) => self.link = Link::Open(stream),
                    // A server that answers knows better than to be asked again.
                    Err(error) if exit_of(&error) != Exit::Failed => return Err(error),
                    Err(error) => {
                        if let Some(notice) = self.lose(&format!("{error:#}"))? {
                            return Ok(Read::Notice(notice));
                        }
                    }
                },
                Link::Open(stream) => match stream.chunk().await {
                    Ok(Some(chunk)) => {
                        self.buffer.extend_from_slice(&chunk);
                        if self.lost.take().is_some() {
                            return Ok(Read::Notice(format!("connected to {} again", self.server.address())));
                        }
                    }
                    Ok(None) => {
                        if let Some(notice) = self.lose("the stream ended")? {
                            return Ok(Read::Notice(notice));
                        }
                    }
                    Err(error) => {
                        if let Some(notice) = self.lose(&error.to_string())? {
                            return Ok(Read::Notice(notice));
                        }
                    }
                },
            }
        }
    }

    /// Plans the next attempt, and says so once; gives up when it has taken too long.
    fn lose(&mut self, why: &str) -> anyhow::Result<Option<String>> {
        tracing::debug!(why, "lost the stream of the run");
        // What follows the last whole frame comes again.
        self.buffer.clear();
        let now = Instant::now();
        let (is_first, mut lost) = match self.lost {
            Some(lost) => (false, lost),
            None => (true, Lost { since: now, wait: RECONNECT_WAIT_MIN }),
        };
        let left = self.reconnect_max.saturating_sub(now.duration_since(lost.since));
        if left.is_zero() {
            return Err(self.gave_up().into());
        }
        self.link = Link::Waiting(now + lost.wait.min(left));
        lost.wait = (lost.wait * 2).min(RECONNECT_WAIT_MAX);
        self.lost = Some(lost);
        let address = self.server.address();
        let seconds = self.reconnect_max.as_secs();
        Ok(is_first.then(|| format!("lost the server at {address}; trying again for {seconds} s")))
    }

    /// What the run does now nobody here can know, so nothing is said about it but how to find out.
    fn gave_up(&self) -> Failure {
        let (address, run_id, seconds) = (self.server.address(), &self.run_id, self.reconnect_max.as_secs());
        let (program, option) = (program(), self.server.option());
        let failure =
            format!("lost the server at {address} while watching run {run_id}, for {seconds} s now");
        Failure::new(Exit::Failed, failure).hint(format!(
            "if the server was stopped, `{program} serve` starts it again and goes on with the run; \
             `{program} events --run {run_id}{option}` shows what the run did"
        ))
    }
}

/// What was read.
enum Read {
    Frame(String),
    Notice(String),
}

impl Watched for RemoteRun {
    async fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        loop {
            let frame = match self.read().await? {
                Read::Notice(notice) => return Ok(Some(Seen::Notice(notice))),
                Read::Frame(frame) => frame,
            };
            if field(&frame, "event:") == Some("end") {
                return Ok(None);
            }
            if let Some(id) = field(&frame, "id:") {
                self.last_id = Some(id.to_owned());
            }
            if let Some(event) = logged(&frame) {
                return Ok(Some(Seen::Event(Box::new(event))));
            }
        }
    }

    async fn cancel(&mut self) -> anyhow::Result<()> {
        self.server.cancel_run(&self.thread_id, &self.run_id).await
    }
}

/// The value of a frame's field.
fn field<'a>(frame: &'a str, name: &str) -> Option<&'a str> {
    frame.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// Takes the first complete frame off the buffer.
fn take_frame(buffer: &mut Vec<u8>) -> Option<String> {
    let end = buffer.windows(2).position(|pair| pair == b"\n\n")?;
    let frame: Vec<u8> = buffer.drain(..end + 2).collect();
    Some(String::from_utf8_lossy(&frame).into_owned())
}

/// The event that a frame carries. Frames without an id are not events of the log.
fn logged(frame: &str) -> Option<Logged> {
    field(frame, "id:")?;
    let record: EventRecord = serde_json::from_str(field(frame, "data:")?).ok()?;
    let event = Event::parse(&record.event_type, record.content.get())?.ok()?;
    Some(Logged {
        position: record.position,
        seq: record.seq,
        thread_id: record.thread_id.parse().ok()?,
        owner: UserId::new(record.user_id).ok()?,
        scope: Scope {
            run_id: record.run_id.and_then(|id| id.parse().ok()),
            task_id: record.task_id.and_then(|id| id.parse().ok()),
            delegation_id: record.delegation_id.and_then(|id| id.parse().ok()),
        },
        recorded_at: record.recorded_at.parse().ok()?,
        labels: None,
        event,
    })
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;
    use crate::{failure::explain, render::samples};

    fn frame(place: usize) -> String {
        let mut record = samples::events().remove(0);
        record.position += place as u64;
        let text = serde_json::to_string(&record).unwrap();
        format!("id: {}\nevent: {}\ndata: {text}\n\n", record.position, record.event_type)
    }

    /// Answers one request with the beginning of a stream and closes; gives the request.
    async fn answer_once(listener: &TcpListener, body: &str) -> String {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        String::from_utf8(request).unwrap()
    }

    fn watched(listener: &TcpListener) -> RemoteRun {
        let address = listener.local_addr().unwrap().to_string();
        RemoteRun::new(Server::new(&address).unwrap(), "t", &RunId::new("r").unwrap())
    }

    async fn next(run: &mut RemoteRun) -> Option<String> {
        let seen = tokio::time::timeout(Duration::from_secs(10), run.next()).await.unwrap().unwrap();
        seen.map(|seen| match seen {
            Seen::Event(event) => event.event.event_type().to_owned(),
            Seen::Notice(notice) => notice.split(" http").next().unwrap_or_default().to_owned(),
        })
    }

    #[tokio::test]
    async fn a_broken_stream_is_followed_from_the_last_whole_frame() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut run = watched(&listener);
        let broken = format!("{}{}", frame(0), &frame(1)[..20]);
        let whole = format!("{}event: end\ndata: {{}}\n\n", frame(1));
        let server = async {
            let first = answer_once(&listener, &broken).await;
            (first, answer_once(&listener, &whole).await)
        };
        let reader = async {
            let mut seen = Vec::new();
            while let Some(next) = next(&mut run).await {
                seen.push(next);
            }
            seen
        };
        let ((first, second), seen) = tokio::join!(server, reader);
        assert!(first.starts_with("GET /api/threads/t/runs/r/stream "), "{first}");
        assert!(!first.contains("last-event-id") && second.contains("last-event-id: 1\r\n"), "{second}");
        assert_eq!(seen, ["run.status", "lost the server at", "connected to", "run.status"]);
    }

    #[tokio::test]
    async fn a_server_that_stays_away_is_given_up_with_what_to_do() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut run = watched(&listener);
        run.reconnect_max = Duration::from_millis(400);
        drop(listener);
        assert_eq!(next(&mut run).await.as_deref(), Some("lost the server at"));
        let error = tokio::time::timeout(Duration::from_secs(10), run.next()).await.unwrap().err().unwrap();
        assert_eq!(exit_of(&error), Exit::Failed);
        let text = explain(&error);
        assert!(
            text.contains("while watching run r") && text.contains("events --run r --server http"),
            "{text}"
        );
        assert!(!text.contains("because"), "{text}");
    }

    #[test]
    fn frames_are_taken_off_one_by_one() {
        let mut buffer = b": heartbeat\n\nid: 1\nda".to_vec();
        assert_eq!(take_frame(&mut buffer).as_deref(), Some(": heartbeat\n\n"));
        assert_eq!(take_frame(&mut buffer), None);
        buffer.extend_from_slice(b"ta: x\n\n");
        assert_eq!(take_frame(&mut buffer).as_deref(), Some("id: 1\ndata: x\n\n"));
        assert!(buffer.is_empty());
    }

    #[test]
    fn a_frame_with_an_id_carries_an_event() {
        let record = serde_json::to_string(&samples::events()[0]).unwrap();
        let event = logged(&format!("id: 1\nevent: run.status\ndata: {record}\n\n")).unwrap();
        assert_eq!((event.seq, event.event.event_type()), (1, "run.status"));
        assert_eq!(logged(&format!("event: end\ndata: {record}\n\n")), None);
        assert_eq!(logged("id: 1\nevent: x\ndata: {}\n\n"), None);
    }
}
