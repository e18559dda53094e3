//! Catch up, then follow.
//!
//! The live channel only says that there is more; the log is the truth. So a slow reader costs a
//! re-read and never a gap, and nothing is seen before it is durable.

use std::{collections::VecDeque, sync::Arc};

use tokio::sync::watch;

use crate::{
    log::EventLog,
    position::{Position, Seq},
    read::ReadError,
    recorded::RecordedEvent,
    stream_id::StreamId,
};

/// Events that `next` reads at once. Larger pages help catching up little and hold more memory.
const PAGE: usize = 256;

/// Where a subscription begins. Cursors are exclusive: the last event that the reader has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubscribeFrom {
    /// All events after a position.
    All {
        /// The last position that the reader has.
        after: Position,
    },
    /// The events of one stream after a seq. The stream need not exist yet.
    Stream {
        /// The stream.
        id: StreamId,
        /// The last seq that the reader has.
        after: Seq,
    },
}

/// Reads events as they become durable, in order, each once. It keeps the log open.
pub struct Subscription {
    log: EventLog,
    head: watch::Receiver<Position>,
    cursor: SubscribeFrom,
    buffer: VecDeque<RecordedEvent>,
    /// It is counted among those that follow the log.
    _subscriber: Arc<()>,
}

impl Subscription {
    pub(crate) fn new(
        log: EventLog,
        head: watch::Receiver<Position>,
        subscriber: Arc<()>,
        from: SubscribeFrom,
    ) -> Self {
        Self { log, head, cursor: from, buffer: VecDeque::new(), _subscriber: subscriber }
    }

    /// The next event; waits until there is one. Nothing is lost when the call is cancelled.
    pub async fn next(&mut self) -> Result<RecordedEvent, ReadError> {
        loop {
            if let Some(event) = self.buffer.pop_front() {
                return Ok(event);
            }
            self.buffer = self.wait_for_page(PAGE).await?.into();
        }
    }

    /// The next 1 to `limit` events, about `PAGE_BYTES_MAX` bytes of them; waits until there is one.
    /// Nothing is lost when the call is cancelled. A limit of 0 is taken as 1.
    pub async fn next_page(&mut self, limit: usize) -> Result<Vec<RecordedEvent>, ReadError> {
        let limit = limit.max(1);
        if !self.buffer.is_empty() {
            let count = limit.min(self.buffer.len());
            return Ok(self.buffer.drain(..count).collect());
        }
        self.wait_for_page(limit).await
    }

    /// What can be read without waiting: at most `limit` events, about `PAGE_BYTES_MAX` bytes of
    /// them. None means that there are no more now.
    pub fn try_next_page(&mut self, limit: usize) -> Result<Vec<RecordedEvent>, ReadError> {
        if !self.buffer.is_empty() {
            let count = limit.min(self.buffer.len());
            return Ok(self.buffer.drain(..count).collect());
        }
        self.read(limit)
    }

    /// The head is marked as seen before the log is read, so that an event between the two wakes
    /// the reader again. The cursor moves only with what is given out, without a wait between.
    async fn wait_for_page(&mut self, limit: usize) -> Result<Vec<RecordedEvent>, ReadError> {
        loop {
            self.head.borrow_and_update();
            let page = self.read(limit)?;
            if !page.is_empty() {
                return Ok(page);
            }
            self.head.changed().await.map_err(|_| ReadError::Closed)?;
        }
    }

    fn read(&mut self, limit: usize) -> Result<Vec<RecordedEvent>, ReadError> {
        match &mut self.cursor {
            SubscribeFrom::All { after } => {
                let page = self.log.read_all(*after, limit)?;
                if let Some(last) = page.last() {
                    *after = last.position;
                }
                Ok(page)
            }
            SubscribeFrom::Stream { id, after } => {
                let page = self.log.read_stream(id, *after, limit)?;
                if let Some(last) = page.last() {
                    *after = last.seq;
                }
                Ok(page)
            }
        }
    }
}
