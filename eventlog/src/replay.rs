//! Reading the whole log in order, with each event checked against the one before it.
//!
//! It costs one hash more than a plain read, and gives whoever folds the log the certainty that
//! what is folded is what was recorded.

use std::{collections::HashMap, ops::ControlFlow, sync::Arc};

use crate::{
    chain::{self, Hash},
    position::{Position, Seq},
    read::Room,
    recorded::RecordedEvent,
    store::{Kept, LogStore, StoreError},
    stream_id::StreamId,
    verify::Fault,
};

/// Reads events in order.
pub struct Replay {
    store: Arc<dyn LogStore>,
    after: Position,
    kept: Kept,
    tails: HashMap<StreamId, (Seq, Hash)>,
    /// The page that was given out last; its memory is used again.
    page: Vec<RecordedEvent>,
}

/// Why the log could not be read on.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The store failed, or holds something that it should not.
    #[error("could not read the log")]
    Store(#[from] StoreError),
    /// An event does not follow from the ones before it.
    #[error("position {position} of stream {stream} is not what was recorded; `remit verify` says more")]
    Broken {
        /// Where.
        position: Position,
        /// The stream.
        stream: StreamId,
        /// What is wrong with it.
        #[source]
        fault: Fault,
    },
    /// An event is missing.
    #[error("position {position} is missing; `remit verify` says more")]
    Missing {
        /// Which.
        position: Position,
    },
}

impl Replay {
    pub(crate) fn new(store: Arc<dyn LogStore>, after: Position) -> Self {
        Self { store, after, kept: Kept::default(), tails: HashMap::new(), page: Vec::new() }
    }

    /// The next events, at most `limit` and about `PAGE_BYTES_MAX` bytes of them: none at the end of
    /// the log only. After an error reading does not go on: begin anew.
    ///
    /// The first event of a stream is taken as it is if the stream began before the position where
    /// reading did.
    pub fn next_page(&mut self, limit: usize) -> Result<&[RecordedEvent], ReplayError> {
        let (mut broken, mut room, after) = (None, Room::of(limit), self.after);
        let Self { tails, after: last, kept, page, .. } = self;
        page.clear();
        self.store.replay(after, limit, kept, &mut |event, hashed| {
            match check(tails, last, &event, hashed) {
                Ok(()) => page.push(event),
                Err(error) => broken = Some(error),
            }
            room.take(hashed.len());
            if broken.is_none() && room.is_left() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        broken.map_or(Ok(&self.page), Err)
    }
}

/// Whether the event follows from those before it; if so, it is the last.
fn check(
    tails: &mut HashMap<StreamId, (Seq, Hash)>,
    after: &mut Position,
    event: &RecordedEvent,
    hashed: &[u8],
) -> Result<(), ReplayError> {
    let expected = after.next();
    if event.position != expected {
        return Err(ReplayError::Missing { position: expected });
    }
    *after = expected;
    let broken =
        |fault| Err(ReplayError::Broken { position: event.position, stream: event.stream.clone(), fault });
    let Some((seq, hash)) = tails.get_mut(&event.stream) else {
        if event.seq == Seq::new(1) && chain::event_hash(&chain::START, hashed) != event.hash {
            return broken(Fault::HashDiffers);
        }
        tails.insert(event.stream.clone(), (event.seq, event.hash));
        return Ok(());
    };
    if event.seq != seq.next() {
        return broken(Fault::OutOfOrder { found: event.seq });
    }
    if chain::event_hash(hash, hashed) != event.hash {
        return broken(Fault::HashDiffers);
    }
    (*seq, *hash) = (event.seq, event.hash);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{sample, store::SegmentStore};

    /// A log in memory of nine events, and its store, whose records are no longer in memory twice.
    async fn filled() -> (Arc<SegmentStore>, crate::EventLog) {
        let store = Arc::new(SegmentStore::in_memory());
        let log = crate::EventLog::with_store(store.clone(), sample::options()).unwrap();
        for name in ["t", "u", "t"] {
            sample::add(&log, &sample::thread(name), 1..=3).await.unwrap();
        }
        store.index().flush().unwrap();
        (store, log)
    }

    #[tokio::test]
    async fn everything_is_given_out_page_by_page() {
        let (_, log) = filled().await;
        let mut replay = log.replay(Position::ZERO).unwrap();
        let mut pages = Vec::new();
        for limit in [4, 4, 4, 4] {
            pages.push(replay.next_page(limit).unwrap().to_vec());
        }
        assert_eq!(pages.concat(), log.read_all(Position::ZERO, 99).unwrap());
        assert_eq!(log.replay(Position::new(5)).unwrap().next_page(99).unwrap().len(), 4);
    }

    #[tokio::test]
    async fn a_log_that_grows_is_read_on() {
        let (store, log) = filled().await;
        let (mut replay, mut read) = (log.replay(Position::ZERO).unwrap(), Vec::new());
        for number in 4..40 {
            read.extend_from_slice(replay.next_page(number as usize % 4).unwrap());
            sample::add(&log, &sample::thread("t"), number..=number + 1).await.unwrap();
            store.index().flush().unwrap();
        }
        while let page @ [_, ..] = replay.next_page(7).unwrap() {
            read.extend_from_slice(page);
        }
        assert_eq!(read, log.read_all(Position::ZERO, 999).unwrap());
    }

    #[tokio::test]
    async fn what_was_changed_is_not_given_out() {
        let (store, log) = filled().await;
        store.change_record(8, |record| *record.last_mut().unwrap() ^= 1);
        let mut replay = log.replay(Position::ZERO).unwrap();
        assert_eq!(replay.next_page(7).unwrap().len(), 7);
        let error = replay.next_page(7).unwrap_err();
        assert!(matches!(error, ReplayError::Broken { fault: Fault::HashDiffers, .. }), "{error}");
        let (store, log) = filled().await;
        let (mut third, mut second) = (Vec::new(), Vec::new());
        store.change_record(3, |record| third = record.to_vec());
        store.change_record(2, |record| {
            second = record.to_vec();
            record.copy_from_slice(&third);
        });
        let error = log.replay(Position::ZERO).unwrap().next_page(9).unwrap_err();
        assert!(
            matches!(error, ReplayError::Missing { position } if position == Position::new(2)),
            "{error}"
        );
        assert_ne!(second, third);
    }
}
