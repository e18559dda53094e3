//! Reading and writing of integers, times and length-prefixed text.

use jiff::Timestamp;
use uuid::Uuid;

use super::{DecodeError, EncodeError};

/// Reads from the front of stored bytes.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(|| short(field))?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or_else(|| short(field))?;
        self.rest = rest;
        Ok(*taken)
    }

    #[inline]
    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.array(field).map(u8::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.array(field).map(u16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array(field).map(u32::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.array(field).map(u64::from_be_bytes)
    }

    #[inline]
    pub(crate) fn uuid(&mut self, field: &'static str) -> Result<Uuid, DecodeError> {
        self.array(field).map(Uuid::from_bytes)
    }

    #[inline]
    pub(crate) fn timestamp(&mut self, field: &'static str) -> Result<Timestamp, DecodeError> {
        let seconds = self.array(field).map(i64::from_be_bytes)?;
        let nanoseconds = self.array(field).map(i32::from_be_bytes)?;
        Timestamp::new(seconds, nanoseconds).map_err(|source| DecodeError::Time { field, source })
    }

    /// Text with its length in bytes before it, as a u16.
    #[inline]
    pub(crate) fn text(&mut self, field: &'static str) -> Result<&'a str, DecodeError> {
        let count = self.u16(field)?;
        utf8(self.take(usize::from(count), field)?, field)
    }

    #[inline]
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    pub(crate) fn finish(self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            count => Err(DecodeError::LeftOver { count }),
        }
    }
}

/// Apart from the reader, and only called when it is met: an error that is made and dropped again for
/// each field would cost more than reading the field.
#[cold]
fn short(field: &'static str) -> DecodeError {
    DecodeError::Short { field }
}

pub(crate) fn utf8<'a>(bytes: &'a [u8], field: &'static str) -> Result<&'a str, DecodeError> {
    std::str::from_utf8(bytes).map_err(|source| DecodeError::Text { field, source })
}

/// Writes text with its length before it, as `Reader::text` reads it.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str, field: &'static str) -> Result<(), EncodeError> {
    let count = u16::try_from(text.len()).map_err(|_| EncodeError { field, bytes: text.len() })?;
    out.extend_from_slice(&count.to_be_bytes());
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// Writes seconds and nanoseconds, as `Reader::timestamp` reads them.
pub(crate) fn put_timestamp(out: &mut Vec<u8>, at: Timestamp) {
    out.extend_from_slice(&at.as_second().to_be_bytes());
    out.extend_from_slice(&at.subsec_nanosecond().to_be_bytes());
}
