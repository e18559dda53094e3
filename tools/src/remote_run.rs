//! A run that a server works on, watched over its event stream.

use std::time::Duration;

use contracts::wire::event::EventRecord;
use domain::{
    event::{Event, Logged, Scope},
    ids::{RunId, UserId},
};
use futures::future::BoxFuture;
use reqwest::Response;

use crate::{
    failure::{Exit, Failure},
    output::program,
    progress::watch::{Seen, Watched},
    source::Server,
    sse_client::{Heard, SseClient, field},
};

/// How long a server may be gone before nobody waits for it any more.
const RECONNECT_MAX: Duration = Duration::from_secs(30);
/// A run that a server works on.
pub(crate) struct RemoteRun {
    server: Server,
    thread_id: String,
    run_id: String,
    client: SseClient,
}

impl RemoteRun {
    /// Follows nothing yet.
    pub(crate) fn new(server: Server, thread_id: &str, run_id: &RunId) -> Self {
        let (thread_id, run_id) = (thread_id.to_owned(), run_id.to_string());
        let (followed, thread, run) = (server.clone(), thread_id.clone(), run_id.clone());
        let connect = move |last_id: Option<String>| -> BoxFuture<'static, anyhow::Result<Response>> {
            let (server, thread, run) = (followed.clone(), thread.clone(), run.clone());
            Box::pin(async move {
                server.follow(&["threads", &thread, "runs", &run, "stream"], &[], last_id.as_deref()).await
            })
        };
        let client = SseClient::new(server.address(), Some(RECONNECT_MAX), Box::new(connect));
        Self { server, thread_id, run_id, client }
    }

    /// What the run does now nobody here can know, so nothing is said about it but how to find out.
    fn gave_up(&self) -> Failure {
        let (address, run_id) = (self.server.address(), &self.run_id);
        let seconds = self.client.reconnect_max.unwrap_or_default().as_secs();
        let (program, option) = (program(), self.server.option());
        let failure =
            format!("lost the server at {address} while watching run {run_id}, for {seconds} s now");
        Failure::new(Exit::Failed, failure).hint(format!(
            "if the server was stopped, `{program} serve` starts it again and goes on with the run; \
             `{program} events --run {run_id}{option}` shows what the run did"
        ))
    }
}

impl Watched for RemoteRun {
    async fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        loop {
            let frame = match self.client.next().await? {
                Heard::Notice(notice) => return Ok(Some(Seen::Notice(notice))),
                Heard::GaveUp => return Err(self.gave_up().into()),
                Heard::Frame(frame) => frame,
            };
            if field(&frame, "event:") == Some("end") {
                return Ok(None);
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

/// The event that a frame carries. Frames without an id are not events of the log.
fn logged(frame: &str) -> Option<Logged> {
    field(frame, "id:")?;
    logged_record(&serde_json::from_str(field(frame, "data:")?).ok()?)
}

/// The fact that a record is about, if this version knows its type.
pub(crate) fn logged_record(record: &EventRecord) -> Option<Logged> {
    let event = Event::parse(&record.event_type, record.content.get())?.ok()?;
    let id = |text: &Option<String>| text.clone();
    Some(Logged {
        position: record.position,
        seq: record.seq,
        thread_id: record.thread_id.parse().ok()?,
        owner: UserId::new(record.user_id.clone()).ok()?,
        scope: Scope {
            run_id: id(&record.run_id).and_then(|id| id.parse().ok()),
            task_id: id(&record.task_id).and_then(|id| id.parse().ok()),
            delegation_id: id(&record.delegation_id).and_then(|id| id.parse().ok()),
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
    use crate::{
        failure::{exit_of, explain},
        render::samples,
    };

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
        run.client.reconnect_max = Some(Duration::from_millis(400));
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
    fn a_frame_with_an_id_carries_an_event() {
        let record = serde_json::to_string(&samples::events()[0]).unwrap();
        let event = logged(&format!("id: 1\nevent: run.status\ndata: {record}\n\n")).unwrap();
        assert_eq!((event.seq, event.event.event_type()), (1, "run.status"));
        assert_eq!(logged(&format!("event: end\ndata: {record}\n\n")), None);
        assert_eq!(logged("id: 1\nevent: x\ndata: {}\n\n"), None);
    }
}
