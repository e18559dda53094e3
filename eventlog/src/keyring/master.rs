//! The master key, which wraps all others.
//!
//! Whoever has the data folder and the master key can read every thread that is not erased. Kept in
//! the folder, which is the default, it protects nobody who copies the folder as a whole; what it
//! always does is make a destroyed key unrecoverable. Kept elsewhere, a stolen folder is unreadable.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use crate::{
    durable,
    open::OpenError,
    secret::{InvalidKey, SecretKey},
};

const OTHERS: u32 = 0o077;

/// Where the master key comes from.
#[derive(Debug, Clone, Default)]
pub enum MasterKey {
    /// From `keys/master.key` in the data folder, made there with the first opening. The default.
    #[default]
    Generated,
    /// From this file: 64 hexadecimal digits, or 32 bytes. It must exist.
    File(PathBuf),
    /// Given by whoever opens the log, for example from the environment.
    Given {
        /// The key.
        key: SecretKey,
        /// Where it was taken from, for messages.
        from: String,
    },
}

impl MasterKey {
    /// A key that was taken from somewhere else, which messages name.
    pub fn given(key: SecretKey, from: impl Into<String>) -> Self {
        Self::Given { key, from: from.into() }
    }

    /// Where it comes from, for messages.
    pub(super) fn place(&self, generated: &Path) -> String {
        match self {
            Self::Generated => generated.display().to_string(),
            Self::File(path) => path.display().to_string(),
            Self::Given { from, .. } => from.clone(),
        }
    }

    /// Says whether there is a key to begin with, before anything is made.
    pub(crate) fn check_given(&self) -> Result<(), OpenError> {
        match self {
            Self::File(path) => read(path).map(drop),
            Self::Generated | Self::Given { .. } => Ok(()),
        }
    }

    /// Gets the key. `may_create` says that nothing has been sealed yet.
    pub(super) fn load(&self, generated: &Path, may_create: bool) -> Result<SecretKey, OpenError> {
        match self {
            Self::Given { key, .. } => Ok(key.clone()),
            Self::File(path) => read(path),
            Self::Generated if generated.exists() => read(generated),
            Self::Generated if may_create => create(generated),
            Self::Generated => Err(OpenError::MasterKeyLost { path: generated.to_owned() }),
        }
    }
}

fn read(path: &Path) -> Result<SecretKey, OpenError> {
    let io_error = |source: io::Error| {
        if source.kind() == io::ErrorKind::NotFound {
            OpenError::MasterKeyMissing { path: path.to_owned() }
        } else {
            OpenError::Io { action: "read the master key", path: path.to_owned(), source }
        }
    };
    let text = zeroize::Zeroizing::new(fs::read(path).map_err(io_error)?);
    if fs::metadata(path).map_err(io_error)?.permissions().mode() & OTHERS != 0 {
        tracing::warn!(path = %path.display(), "others may read the master key; allow it to its owner only");
    }
    SecretKey::parse(&text)
        .map_err(|source: InvalidKey| OpenError::MasterKeyInvalid { path: path.to_owned(), source })
}

/// Makes a key, and returns when it is on disk. It is written beside its place: a crash leaves no half
/// of a key there, which would be refused for ever.
fn create(path: &Path) -> Result<SecretKey, OpenError> {
    let make = || -> io::Result<SecretKey> {
        let key = SecretKey::random()?;
        let text = [key.to_hex().as_bytes(), b"\n"].concat();
        durable::write_whole(path, &zeroize::Zeroizing::new(text))?;
        Ok(key)
    };
    make().map_err(|source| OpenError::Io { action: "create the master key", path: path.to_owned(), source })
}
