//! Message feeds. A message is the record of its event.

use serde::{Deserialize, Serialize};

use super::event::EventRecord;

/// The answer of `GET /threads/{t}/messages/page`: the last messages before a cursor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MessagePage {
    /// The messages, ascending by seq.
    pub data: Vec<EventRecord>,
    /// Whether there are earlier ones.
    pub has_more: bool,
    /// The `before_seq` of the page before this one; null when there is none.
    pub next_before_seq: Option<u64>,
}

/// The answer of `GET /threads/{t}/messages/count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageCount {
    /// How many messages the thread has, also those that are not shown to readers.
    pub count: u64,
}
