//! Following the chains through the lines of an export. Pure: it knows no file.

use std::collections::BTreeMap;

use super::{
    line::{self, Line},
    manifest::StreamEntry,
};
use crate::{
    chain::{self, Hash},
    codec::record,
    position::{Position, Seq},
    recorded::RecordedEvent,
    store::Head,
    stream_id::StreamId,
    verify::DamageKind,
};

/// The state after the last position that was passed.
pub(super) struct Walk {
    /// Whether nothing is withheld.
    is_whole: bool,
    pub(super) head: Head,
    pub(super) streams: BTreeMap<StreamId, StreamEntry>,
    pub(super) events: u64,
    pub(super) erased: u64,
}

impl Walk {
    pub(super) const fn new(is_whole: bool) -> Self {
        Self { is_whole, head: Head::EMPTY, streams: BTreeMap::new(), events: 0, erased: 0 }
    }

    /// The position that comes next.
    pub(super) const fn next_position(&self) -> Position {
        self.head.position.next()
    }

    /// Reads a line that should hold the event of the next position, and proves that it does.
    pub(super) fn check(&self, line: &[u8]) -> Result<Line, DamageKind> {
        let line = line::parse(line).map_err(|reason| DamageKind::Unreadable { reason })?;
        let (event, expected) = (&line.event, self.next_position());
        if event.position > expected {
            return Err(DamageKind::Missing);
        }
        if event.position < expected {
            return Err(DamageKind::Displaced { found: event.position });
        }
        self.check_place(&line)?;
        let unreadable = |reason: String| DamageKind::Unreadable { reason };
        let stored = record::encode(event).map_err(|error| unreadable(error.to_string()))?;
        // An erased event's stored bytes say themselves where they belong.
        if event.is_erased() && !is_outlined(event, &stored) {
            return Err(unreadable("its stored bytes are those of another event".to_owned()));
        }
        if chain::event_hash(&line.previous_hash, &stored) != event.hash {
            return Err(DamageKind::HashDiffers);
        }
        Ok(line)
    }

    /// Whether the event follows from the last one of its stream that is here.
    fn check_place(&self, line: &Line) -> Result<(), DamageKind> {
        let event = &line.event;
        let known = self.streams.get(&event.stream);
        let next = known.map_or(Seq::ZERO, |known| known.last_seq).next();
        if event.seq < next || (self.is_whole && event.seq > next) {
            let (stream, found) = (event.stream.clone(), event.seq);
            return Err(DamageKind::SeqGap { stream, expected: next, found });
        }
        let follows = known.map_or(chain::START, |known| known.hash);
        if event.seq == next && line.previous_hash != follows {
            return Err(DamageKind::HashDiffers);
        }
        Ok(())
    }

    /// Passes an event that is here.
    pub(super) fn take(&mut self, event: &RecordedEvent) {
        let erased = u64::from(event.is_erased());
        (self.events, self.erased) = (self.events + 1, self.erased + erased);
        match self.streams.get_mut(&event.stream) {
            Some(entry) => {
                (entry.events, entry.erased) = (entry.events + 1, entry.erased + erased);
                (entry.last_seq, entry.hash) = (event.seq, event.hash);
            }
            None => {
                let entry = StreamEntry {
                    stream: event.stream.clone(),
                    events: 1,
                    erased,
                    first_seq: event.seq,
                    last_seq: event.seq,
                    hash: event.hash,
                };
                self.streams.insert(event.stream.clone(), entry);
            }
        }
        self.pass(&event.hash);
    }

    /// Passes an event that is withheld, or was taken.
    pub(super) fn pass(&mut self, hash: &Hash) {
        self.head = Head { position: self.next_position(), chain: chain::log_chain(&self.head.chain, hash) };
    }
}

/// Whether the line says of an erased event what its stored bytes say.
fn is_outlined(event: &RecordedEvent, stored: &[u8]) -> bool {
    record::decode_erased(stored).is_ok_and(|read| RecordedEvent { hash: event.hash, ..read } == *event)
}
