//! Who vouches for an export: an Ed25519 key, and its signature of the manifest.
//!
//! A signature says that whoever has the key made exactly this export. That the key is the right
//! one must be known from elsewhere: give the public key to whoever checks exports, once.

use std::{fmt, fs, io, path::Path, str::FromStr};

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

use super::{ExportError, SIGNATURE_FILE, SIGNING_KEY_FILE, io_error};
use crate::{durable, secret::SecretKey};

/// The name of the algorithm in the signature's file.
const ALGORITHM: &str = "Ed25519";

/// Signs exports.
pub struct SigningKey(Ed25519KeyPair);

/// Tells whose signature it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey([u8; 32]);

/// Text that is no public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a public key must be 64 hexadecimal digits")]
pub struct InvalidPublicKey;

/// What the signature's file holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SignatureFile {
    algorithm: String,
    public_key: PublicKey,
    signature: String,
}

impl SigningKey {
    /// The key in the file that is named, or else that of a data folder.
    pub fn of(named: Option<&Path>, data: &Path) -> Result<Self, ExportError> {
        match named {
            Some(path) => Self::read(path),
            None => Self::open_or_create(&data.join(SIGNING_KEY_FILE)),
        }
    }

    /// The key in this file, which is made if it is not there.
    pub fn open_or_create(path: &Path) -> Result<Self, ExportError> {
        if !path.exists() {
            create(path).map_err(io_error("create the signing key", path))?;
        }
        Self::read(path)
    }

    /// The key in this file: 64 hexadecimal digits, or 32 bytes.
    pub fn read(path: &Path) -> Result<Self, ExportError> {
        let text = fs::read(path).map(zeroize::Zeroizing::new);
        let text = text.map_err(io_error("read the signing key", path))?;
        let unusable = |source| ExportError::SigningKey { path: path.to_owned(), source };
        let seed = SecretKey::parse(&text).map_err(unusable)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.bytes());
        pair.map(Self).map_err(|_| unusable(crate::secret::InvalidKey))
    }

    /// Its public half.
    pub fn public_key(&self) -> PublicKey {
        let mut key = [0; 32];
        for (to, from) in key.iter_mut().zip(self.0.public_key().as_ref()) {
            *to = *from;
        }
        PublicKey(key)
    }

    /// The file that stands beside the signed bytes.
    pub(super) fn sign(&self, bytes: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
        let file = SignatureFile {
            algorithm: ALGORITHM.to_owned(),
            public_key: self.public_key(),
            signature: hex::encode(self.0.sign(bytes).as_ref()),
        };
        let mut text = serde_json::to_vec_pretty(&file)?;
        text.push(b'\n');
        Ok(text)
    }
}

/// A key that lies beside the keys of threads is not in backups: it says who made an export here.
fn create(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let text = [SecretKey::random()?.to_hex().as_bytes(), b"\n"].concat();
    durable::write_whole(path, &zeroize::Zeroizing::new(text))
}

/// Whether the file beside the manifest has a signature of it by this key.
pub(super) fn is_signed(folder: &Path, bytes: &[u8], key: &PublicKey) -> Result<bool, ExportError> {
    let path = folder.join(SIGNATURE_FILE);
    let text = fs::read(&path).map_err(io_error("read", &path))?;
    let Ok(file) = serde_json::from_slice::<SignatureFile>(&text) else { return Ok(false) };
    let Ok(signature) = hex::decode(&file.signature) else { return Ok(false) };
    let is_meant = file.algorithm == ALGORITHM && file.public_key == *key;
    Ok(is_meant && UnparsedPublicKey::new(&ED25519, key.0).verify(bytes, &signature).is_ok())
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl FromStr for PublicKey {
    type Err = InvalidPublicKey;

    fn from_str(text: &str) -> Result<Self, InvalidPublicKey> {
        let mut key = [0; 32];
        hex::decode_to_slice(text.trim(), &mut key).map_err(|_| InvalidPublicKey)?;
        Ok(Self(key))
    }
}

impl TryFrom<String> for PublicKey {
    type Error = InvalidPublicKey;

    fn try_from(text: String) -> Result<Self, InvalidPublicKey> {
        text.parse()
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_string()
    }
}
