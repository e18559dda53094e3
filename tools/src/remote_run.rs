//! A run that a server works on, watched over its event stream.

use anyhow::Context as _;
use contracts::wire::event::EventRecord;
use domain::{
    event::{Event, Logged, Scope},
    ids::{RunId, UserId},
};
use reqwest::Response;

use crate::{progress::watch::Watched, source::Server};

/// A frame that is not complete within this is not one of ours: an event's body has 8 MiB at most.
const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A run that a server works on.
pub(crate) struct RemoteRun {
    server: Server,
    thread_id: String,
    run_id: String,
    stream: Option<Response>,
    buffer: Vec<u8>,
}

impl RemoteRun {
    /// Follows nothing yet.
    pub(crate) fn new(server: Server, thread_id: &str, run_id: &RunId) -> Self {
        let (thread_id, run_id) = (thread_id.to_owned(), run_id.to_string());
        Self { server, thread_id, run_id, stream: None, buffer: Vec::new() }
    }

    /// The next frame; none at the end of the stream. Nothing is lost when the call is cancelled.
    async fn frame(&mut self) -> anyhow::Result<Option<String>> {
        loop {
            if let Some(frame) = take_frame(&mut self.buffer) {
                return Ok(Some(frame));
            }
            anyhow::ensure!(self.buffer.len() <= FRAME_BYTES_MAX, "the server sent a frame without an end");
            let stream = match &mut self.stream {
                Some(stream) => stream,
                None => self.stream.insert(self.server.stream(&self.thread_id, &self.run_id).await?),
            };
            match stream
                .chunk()
                .await
                .context("could not follow the run; it goes on without being watched")?
            {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }
}

impl Watched for RemoteRun {
    async fn next(&mut self) -> anyhow::Result<Option<Logged>> {
        while let Some(frame) = self.frame().await? {
            if let Some(event) = logged(&frame) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    async fn cancel(&mut self) -> anyhow::Result<()> {
        self.server.cancel_run(&self.thread_id, &self.run_id).await
    }
}

/// Takes the first complete frame off the buffer.
fn take_frame(buffer: &mut Vec<u8>) -> Option<String> {
    let end = buffer.windows(2).position(|pair| pair == b"\n\n")?;
    let frame: Vec<u8> = buffer.drain(..end + 2).collect();
    Some(String::from_utf8_lossy(&frame).into_owned())
}

/// The event that a frame carries. Frames without an id are not events of the log.
fn logged(frame: &str) -> Option<Logged> {
    let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_start);
    field("id:")?;
    let record: EventRecord = serde_json::from_str(field("data:")?).ok()?;
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
        event,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

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
