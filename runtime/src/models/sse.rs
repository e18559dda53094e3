//! Server-sent events, decoded from bytes as they arrive.
//!
//! Pure and incremental: however the bytes are cut into pieces, the events are the same. Data stays
//! bytes, because providers cut characters in two between events. Nothing here knows what the
//! data means.

#[cfg(test)]
mod tests;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// The event's name; empty when the stream gave none.
    pub name: String,
    /// The data lines, joined with newlines. Not necessarily UTF-8.
    pub data: Vec<u8>,
}

/// A line or an event is larger than the decoder was allowed to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {bytes_max} bytes")]
pub struct SseTooLarge {
    /// The bound, in bytes.
    pub bytes_max: usize,
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Turns bytes into events. Holds at most two lines' worth of `bytes_max`.
#[derive(Debug)]
pub struct SseDecoder {
    bytes_max: usize,
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    is_after_cr: bool,
    is_first_line: bool,
}

impl SseDecoder {
    /// A decoder at the beginning of a stream. No line and no event may exceed `bytes_max`.
    pub const fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            is_after_cr: false,
            is_first_line: true,
        }
    }

    /// Takes the next bytes and appends the events that they complete. After an error the decoder
    /// is of no more use; the events before the fault have been appended.
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseTooLarge> {
        for &byte in bytes {
            let is_after_cr = std::mem::take(&mut self.is_after_cr);
            match byte {
                b'\n' if is_after_cr => {}
                b'\n' => self.end_line(events)?,
                b'\r' => {
                    self.is_after_cr = true;
                    self.end_line(events)?;
                }
                _ if self.line.len() >= self.bytes_max => return Err(self.too_large()),
                _ => self.line.push(byte),
            }
        }
        Ok(())
    }

    /// The event that the end of the stream leaves behind, with its last line, even without the
    /// blank line after it: several servers forget it after `[DONE]`.
    pub fn finish(mut self) -> Result<Option<SseEvent>, SseTooLarge> {
        let mut events = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut events)?;
        }
        self.end_event(&mut events);
        Ok(events.pop())
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) -> Result<(), SseTooLarge> {
        let line = std::mem::take(&mut self.line);
        let mut rest = line.as_slice();
        if std::mem::take(&mut self.is_first_line) {
            rest = rest.strip_prefix(BYTE_ORDER_MARK).unwrap_or(rest);
        }
        if rest.is_empty() {
            self.end_event(events);
            return Ok(());
        }
        let (field, value) = split_field(rest);
        match field {
            b"data" => self.add_data(value)?,
            b"event" => self.name = value.to_vec(),
            // A comment has an empty field name; ids and retry times are not for one reply.
            _ => {}
        }
        Ok(())
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), SseTooLarge> {
        if self.data.len() + value.len() >= self.bytes_max {
            return Err(self.too_large());
        }
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        Ok(())
    }

    fn end_event(&mut self, events: &mut Vec<SseEvent>) {
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.has_data) {
            events.push(SseEvent { name: String::from_utf8_lossy(&name).into_owned(), data });
        }
    }

    const fn too_large(&self) -> SseTooLarge {
        SseTooLarge { bytes_max: self.bytes_max }
    }
}

fn split_field(line: &[u8]) -> (&[u8], &[u8]) {
    let mut parts = line.splitn(2, |&byte| byte == b':');
    let field = parts.next().unwrap_or_default();
    let value = parts.next().unwrap_or_default();
    (field, value.strip_prefix(b" ").unwrap_or(value))
}
