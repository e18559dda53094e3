//! Somebody who follows the log, over the deaths of its processes.

use std::task::Poll;

use super::{
    super::model::{Model, chain},
    life::poll,
};
use crate::{Position, Seq, StreamId, SubscribeFrom, Subscription};

/// Somebody who follows the log or a stream, over all lives.
pub(super) struct Follower {
    pub(super) stream: Option<StreamId>,
    /// The last position or seq that was seen.
    pub(super) cursor: u64,
    pub(super) live: Option<Subscription>,
}

impl Follower {
    pub(super) fn from(&self) -> SubscribeFrom {
        match &self.stream {
            None => SubscribeFrom::All { after: Position::new(self.cursor) },
            Some(id) => SubscribeFrom::Stream { id: id.clone(), after: Seq::new(self.cursor) },
        }
    }

    /// Sees what is next, which must be next to what it has seen. Says whether there was something.
    pub(super) fn follow(&mut self, limit: usize, model: &Model) -> Result<bool, String> {
        let Some(live) = &mut self.live else { return Ok(false) };
        let mut next = Box::pin(live.next_page(limit));
        let page = match poll(next.as_mut()) {
            Poll::Ready(page) => page.map_err(|error| chain(&error))?,
            Poll::Pending => Vec::new(),
        };
        let last = match self.stream {
            None => page.last().map(|event| event.position.get()),
            Some(_) => page.last().map(|event| event.seq.get()),
        };
        model.check_read(self.stream.as_ref(), self.cursor, limit, &page)?;
        self.cursor = last.unwrap_or(self.cursor);
        Ok(!page.is_empty())
    }
}
