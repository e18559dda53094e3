//! Reading frames one after the other.

use super::{
    Flaw, SegmentError, Segments,
    frame::{Frame, HEADER_BYTES, Header, MAGIC},
};
use crate::position::Position;

/// Read at once by whoever reads on and on.
const CHUNK_BYTES: usize = 256 * 1024;
/// Read at once at the beginning, for whoever wants one event.
const FIRST_CHUNK_BYTES: usize = 16 * 1024;

/// Goes over frames in order. Each is checked, and follows the one before it.
pub(crate) struct Walk {
    segments: Segments,
    /// Where the next frame begins, or a segment's end.
    at: u64,
    /// The position that the next frame begins with, once it is known.
    next: Option<Position>,
    /// What was read is its beginning.
    buffer: Vec<u8>,
    /// How much of the buffer was read, and the address of its first byte.
    filled: usize,
    start: u64,
    chunk: usize,
    /// A frame in the buffer that was given out and is the next one once more.
    again: Option<Header>,
}

impl Walk {
    /// Begins at the address of a frame. `first` is the position that it begins with, if that is
    /// known.
    pub(crate) fn new(segments: Segments, at: u64, first: Option<Position>) -> Self {
        let (buffer, chunk) = (Vec::new(), FIRST_CHUNK_BYTES);
        Self { segments, at, next: first, buffer, filled: 0, start: at, chunk, again: None }
    }

    /// The address behind the last frame, or where the next segment begins.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Goes back to the last frame that it gave out, so that this is the next one.
    pub(crate) fn back_to(&mut self, header: &Header) {
        (self.at, self.next) = (header.address, Some(header.first));
        self.again = Some(*header);
    }

    /// Reads again what it has read ahead: the record may have grown meanwhile.
    pub(crate) fn forget_ahead(&mut self) {
        (self.filled, self.again) = (0, None);
    }

    /// The position that the next frame begins with, once it is known.
    pub(crate) fn next_position(&self) -> Option<Position> {
        self.next
    }

    /// The next frame. None where zeros begin and no other segment follows.
    pub(crate) fn next(&mut self) -> Result<Option<Frame<'_>>, SegmentError> {
        let again = self.again.take();
        let header = match again {
            Some(header) => header,
            None => match self.next_header()? {
                Some(header) => header,
                None => return Ok(None),
            },
        };
        let (at, bytes) = (self.at, usize::try_from(header.frame_bytes()).unwrap_or(usize::MAX));
        if !self.fill(bytes)? {
            return Err(self.segments.damaged(at, Flaw::Beyond));
        }
        let from = usize::try_from(at - self.start).unwrap_or(usize::MAX);
        let bytes = self.buffer.get(from..from.saturating_add(bytes)).unwrap_or_default();
        // What is still in the buffer was checked when it was given out first.
        let frame = if again.is_some() { Ok(Frame { header, bytes }) } else { Frame::check(header, bytes) };
        let frame = frame.map_err(|flaw| self.segments.damaged(at, flaw))?;
        if let Some(expected) = self.next.filter(|expected| *expected != header.first) {
            let found = header.first;
            return Err(self.segments.damaged(at, Flaw::Discontinuous { expected, found }));
        }
        self.at += header.frame_bytes();
        self.next = Some(header.commit().last.next());
        Ok(Some(frame))
    }

    fn next_header(&mut self) -> Result<Option<Header>, SegmentError> {
        #[cfg(test)]
        self.segments.meet(super::faulty::Moment::Read)?;
        loop {
            let Some(extent) = self.segments.extent_at(self.at) else {
                match self.segments.extent_from(self.at) {
                    Some(next) => self.at = next.first,
                    None => return Ok(None),
                }
                continue;
            };
            // What is too short for a header is left free. What is behind it belongs to the next segment.
            let has_room = extent.end() - self.at >= HEADER_BYTES as u64;
            let is_there = has_room && self.fill(HEADER_BYTES)?;
            let header = self.ahead().get(..HEADER_BYTES).filter(|_| is_there);
            match header {
                Some(header) if !super::is_zero(header.get(..MAGIC.len()).unwrap_or_default()) => {
                    let header = Header::decode(header, self.at);
                    let header = header.map_err(|flaw| self.segments.damaged(self.at, flaw))?;
                    if self.at + header.frame_bytes() > extent.end() {
                        return Err(self.segments.damaged(self.at, Flaw::Beyond));
                    }
                    return Ok(Some(header));
                }
                // No room for a frame, or none yet: what follows is in the next segment. That
                // nothing is left out is known by the positions.
                Some(_) | None => match self.segments.extent_from(extent.end()) {
                    Some(next) => self.at = next.first,
                    None => return Ok(None),
                },
            }
        }
    }

    /// What was read from the present address on.
    fn ahead(&self) -> &[u8] {
        let from = self.at.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        from.and_then(|from| self.buffer.get(from..self.filled)).unwrap_or_default()
    }

    /// Reads until there are so many bytes from the present address on. False if there are fewer.
    fn fill(&mut self, bytes: usize) -> Result<bool, SegmentError> {
        let held = self.ahead().len();
        if held >= bytes {
            return Ok(true);
        }
        self.buffer.copy_within(self.filled - held..self.filled, 0);
        (self.start, self.filled) = (self.at, held);
        let wanted = bytes.max(held + self.chunk);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        let rest = self.buffer.get_mut(held..wanted).unwrap_or_default();
        self.filled += self.segments.read_at(self.start + held as u64, rest)?;
        self.chunk = (self.chunk * 4).min(CHUNK_BYTES);
        Ok(self.filled >= bytes)
    }
}
