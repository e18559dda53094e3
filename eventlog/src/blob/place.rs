//! Where the files of blobs are.

use std::{
    ffi::OsStr,
    fmt,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use crate::{keyring::ScopeId, seal, seal::Purpose, secret::SecretKey};

use super::BlobDigest;

/// In the data folder.
pub(crate) const BLOBS_FOLDER: &str = "blobs";
pub(super) const STAGED_FOLDER: &str = "staged";
/// Ends the name of a file that opens a blob for another scope.
pub(super) const KEY_SUFFIX: &str = ".key";
const OWNER_ONLY: u32 = 0o700;

/// The name of a blob's file within its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Name([u8; 32]);

impl Name {
    pub(super) fn of(thread_key: &SecretKey, sha256: &BlobDigest) -> Self {
        Self(seal::derive(thread_key, Purpose::BlobName, &sha256.0))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// The folder of blobs.
#[derive(Debug, Clone)]
pub(super) struct Place {
    data: PathBuf,
    root: PathBuf,
}

impl Place {
    pub(super) fn in_data(folder: &Path) -> Self {
        Self { data: folder.to_owned(), root: folder.join(BLOBS_FOLDER) }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The folder that it is in.
    pub(super) fn data(&self) -> &Path {
        &self.data
    }

    pub(super) fn staged_folder(&self) -> PathBuf {
        self.root.join(STAGED_FOLDER)
    }

    pub(super) fn staged(&self, stem: &str) -> PathBuf {
        self.staged_folder().join(stem)
    }

    pub(super) fn thread(&self, thread: ScopeId) -> PathBuf {
        self.root.join(hex::encode(thread.0))
    }

    pub(super) fn scope(&self, thread: ScopeId, scope: ScopeId) -> PathBuf {
        self.thread(thread).join(hex::encode(scope.0))
    }

    pub(super) fn blob(&self, thread: ScopeId, scope: ScopeId, name: Name) -> PathBuf {
        self.scope(thread, scope).join(name.to_string())
    }

    /// The threads that have blobs.
    pub(super) fn threads(&self) -> io::Result<Vec<ScopeId>> {
        scopes_in(&self.root)
    }

    /// The scopes of a thread that have blobs.
    pub(super) fn scopes(&self, thread: ScopeId) -> io::Result<Vec<ScopeId>> {
        scopes_in(&self.thread(thread))
    }
}

/// Beside a blob, or a staged one.
pub(super) fn key_beside(blob: &Path) -> PathBuf {
    let mut name = blob.as_os_str().to_owned();
    name.push(KEY_SUFFIX);
    PathBuf::from(name)
}

pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(folder)
}

/// The names in a folder, none if it is not there.
pub(super) fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().to_str().map(str::to_owned));
    }
    names.sort_unstable();
    Ok(names)
}

/// A path's last part.
pub(super) fn name_of(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

/// That a file is not there is no error.
pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn scopes_in(folder: &Path) -> io::Result<Vec<ScopeId>> {
    let scope = |name: String| {
        let mut bytes = [0; 16];
        hex::decode_to_slice(&name, &mut bytes).ok().map(|()| ScopeId(bytes))
    };
    Ok(names_in(folder)?.into_iter().filter_map(scope).collect())
}
