//! Digests, as they are written down.

use sha2::{Digest as _, Sha256};

/// SHA-256 in lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
