//! Rows that hold many small things: written one behind the other, so that adding one copies none of
//! those before it, and without the marks and escapes of JSON, which cost more than the texts.
//!
//! ```text
//! number  seven bits a byte, the lowest first; the eighth bit says that more follow
//! text    its length in bytes as a number, then UTF-8
//! time    seconds since 1970, folded so that small ones of either sign are short, then nanoseconds
//! digest  0 and 32 bytes, for 64 lower-case hexadecimal digits; or 1 and a text
//! ```

mod receipt;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde::de::Error as _;
use uuid::Uuid;

/// The digits of a SHA-256.
const DIGEST_DIGITS: usize = 64;
/// A digest as bytes.
const DIGEST_BYTES: u8 = 0;
/// A digest that is not written as digests are.
const DIGEST_TEXT: u8 = 1;
/// The bits of a byte of a number that are the number's.
const NUMBER_BITS: u32 = 7;
const MORE: u8 = 1 << NUMBER_BITS;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Why packed bytes could not be read, as an error of the row that they are.
pub(crate) fn flaw(what: &'static str) -> serde_json::Error {
    serde_json::Error::custom(what)
}

/// Adds things to the end of bytes.
pub(crate) struct Packer<'a>(pub(crate) &'a mut Vec<u8>);

impl Packer<'_> {
    pub(crate) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(crate) fn number(&mut self, mut number: u64) {
        while number >= u64::from(MORE) {
            self.0.push(number.to_le_bytes()[0] | MORE);
            number >>= NUMBER_BITS;
        }
        self.0.push(number.to_le_bytes()[0]);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn uuid(&mut self, uuid: Uuid) {
        self.0.extend_from_slice(uuid.as_bytes());
    }

    pub(crate) fn time(&mut self, at: Timestamp) {
        let seconds = at.as_second();
        self.number(((seconds << 1) ^ (seconds >> 63)).cast_unsigned());
        let nanoseconds = at.subsec_nanosecond();
        self.number(((nanoseconds << 1) ^ (nanoseconds >> 31)).cast_unsigned().into());
    }

    pub(crate) fn digest(&mut self, digits: &str) {
        let start = self.0.len();
        self.0.push(DIGEST_BYTES);
        let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
        if digits.len() == DIGEST_DIGITS && rest.is_empty() && pairs.iter().all(|pair| self.digits(*pair)) {
            return;
        }
        self.0.truncate(start);
        self.0.push(DIGEST_TEXT);
        self.text(digits);
    }

    fn digits(&mut self, [high, low]: [u8; 2]) -> bool {
        let (Some(high), Some(low)) = (digit(high), digit(low)) else { return false };
        self.0.push(high << 4 | low);
        true
    }
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// Takes things from the front of bytes. None where they are not as they were packed.
pub(crate) struct Unpacker<'a>(pub(crate) &'a [u8]);

impl<'a> Unpacker<'a> {
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            let bits = u64::from(byte & !MORE);
            if shift >= u64::BITS || (bits << shift) >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & MORE == 0 {
                return Some(number);
            }
            shift += NUMBER_BITS;
        }
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number()?).ok()?;
        std::str::from_utf8(self.bytes(length)?).ok()
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(crate) fn uuid(&mut self) -> Option<Uuid> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(Uuid::from_bytes(*bytes))
    }

    pub(crate) fn time(&mut self) -> Option<Timestamp> {
        let (seconds, nanoseconds) = (self.number()?, u32::try_from(self.number()?).ok()?);
        let seconds = (seconds >> 1).cast_signed() ^ -((seconds & 1).cast_signed());
        let nanoseconds = (nanoseconds >> 1).cast_signed() ^ -((nanoseconds & 1).cast_signed());
        Timestamp::new(seconds, nanoseconds).ok()
    }

    pub(crate) fn digest(&mut self) -> Option<String> {
        match self.byte()? {
            DIGEST_BYTES => {
                let mut digits = String::with_capacity(DIGEST_DIGITS);
                for byte in self.bytes(DIGEST_DIGITS / 2)? {
                    for digit in [byte >> 4, byte & 0xf] {
                        digits.push(char::from(*DIGITS.get(usize::from(digit))?));
                    }
                }
                Some(digits)
            }
            DIGEST_TEXT => self.text().map(str::to_owned),
            _ => None,
        }
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}
