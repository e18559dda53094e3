//! The public name of a blob.

use std::{fmt, str::FromStr};

use aws_lc_rs::digest::Context;
use serde::{Deserialize, Serialize};

/// The SHA-256 of a blob's bytes, as they are kept: after secrets were masked. 64 hexadecimal digits
/// in text and JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BlobDigest(pub(super) [u8; 32]);

impl BlobDigest {
    /// The digest of all bytes that were added.
    pub(crate) fn of(sha256: Context) -> Self {
        let mut bytes = [0; 32];
        for (to, from) in bytes.iter_mut().zip(sha256.finish().as_ref()) {
            *to = *from;
        }
        Self(bytes)
    }
}

/// Text that is no digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a blob's sha256 must be 64 lowercase hexadecimal digits")]
pub struct InvalidDigest;

impl fmt::Display for BlobDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// One spelling for each digest, because it is compared as text elsewhere.
impl FromStr for BlobDigest {
    type Err = InvalidDigest;
    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let mut bytes = [0; 32];
        let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        hex::decode_to_slice(text, &mut bytes).map_err(|_| InvalidDigest)?;
        if is_lower { Ok(Self(bytes)) } else { Err(InvalidDigest) }
    }
}

impl TryFrom<String> for BlobDigest {
    type Error = InvalidDigest;
    fn try_from(text: String) -> Result<Self, InvalidDigest> {
        text.parse()
    }
}

impl From<BlobDigest> for String {
    fn from(digest: BlobDigest) -> Self {
        digest.to_string()
    }
}

/// How an event names a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRef {
    /// Its digest.
    pub sha256: BlobDigest,
    /// Its length.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_one_spelling() {
        let text = "0123456789abcdef".repeat(4);
        assert_eq!(text.parse::<BlobDigest>().unwrap().to_string(), text);
        for bad in ["", "ab", &text[1..], &format!("{text}0"), &text.to_uppercase(), &"g".repeat(64)] {
            assert_eq!(bad.parse::<BlobDigest>(), Err(InvalidDigest), "{bad:?}");
        }
    }

    #[test]
    fn a_name_in_json_is_digest_and_length() {
        let json = format!(r#"{{"sha256":"{}","bytes":7}}"#, "ab".repeat(32));
        let blob: BlobRef = serde_json::from_str(&json).unwrap();
        assert_eq!(blob, BlobRef { sha256: BlobDigest([0xab; 32]), bytes: 7 });
        assert_eq!(serde_json::to_string(&blob).unwrap(), json);
    }
}
