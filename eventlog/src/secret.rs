//! Keys as bytes: wiped from memory when they are dropped, and never shown.

use std::fmt;

use zeroize::Zeroizing;

/// The length of every key.
pub(crate) const KEY_BYTES: usize = 32;

/// A key of 32 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey(Zeroizing<[u8; KEY_BYTES]>);

/// Text or bytes that are no key. What was given is not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key must be 32 bytes, or 64 hexadecimal digits")]
pub struct InvalidKey;

impl SecretKey {
    /// Wraps the bytes of a key.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Reads 64 hexadecimal digits, with white space around them, or 32 bytes as they are.
    pub fn parse(given: &[u8]) -> Result<Self, InvalidKey> {
        if let Ok(bytes) = <[u8; KEY_BYTES]>::try_from(given) {
            return Ok(Self::new(bytes));
        }
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        hex::decode_to_slice(given.trim_ascii(), bytes.as_mut()).map_err(|_| InvalidKey)?;
        Ok(Self(bytes))
    }

    /// A new key from the system's randomness.
    pub(crate) fn random() -> std::io::Result<Self> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        fill_random(bytes.as_mut())?;
        Ok(Self(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// The key as 64 hexadecimal digits, wiped when dropped.
    pub(crate) fn to_hex(&self) -> Zeroizing<String> {
        Zeroizing::new(hex::encode(self.bytes()))
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(hidden)")
    }
}

/// Fills the bytes from the system's randomness.
pub(crate) fn fill_random(bytes: &mut [u8]) -> std::io::Result<()> {
    getrandom::fill(bytes).map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_from_bytes_and_digits_and_nothing_else() {
        let key = SecretKey::new([0xab; 32]);
        assert_eq!(SecretKey::parse(&[0xab; 32]), Ok(key.clone()));
        assert_eq!(SecretKey::parse("ab".repeat(32).as_bytes()), Ok(key.clone()));
        assert_eq!(SecretKey::parse(format!(" {}\n", "AB".repeat(32)).as_bytes()), Ok(key));
        for given in ["", "ab", &"ab".repeat(31), &"ag".repeat(32), &"ab".repeat(33)] {
            assert_eq!(SecretKey::parse(given.as_bytes()), Err(InvalidKey), "{given:?}");
        }
    }

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(format!("{:?}", SecretKey::new([0xab; 32])), "SecretKey(hidden)");
    }
}
