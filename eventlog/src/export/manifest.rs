//! What an export says of itself.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    EVENTS_FILE, ExportDamage, ExportError, HASHES_FILE, KEYS_FILE, MANIFEST_FILE, SIGNATURE_FILE,
    filter::Filter,
    io_error, is_export,
    output::OWNER_ONLY,
    outputs,
    place::NOTE_FILE,
    signature::{self, PublicKey},
};
use crate::{
    backup::FileEntry,
    blob,
    chain::Hash,
    format::{self, FormatError},
    position::{Position, Seq},
    stream_id::StreamId,
    verify::ExportedHead,
};

/// The format of exports that this program writes, and the last that it reads.
pub(super) const FORMAT: u32 = 1;

/// What an export holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The format of the export.
    pub format: u32,
    /// The format of the log.
    pub log_format: u32,
    /// When the export was made.
    pub made_at: Timestamp,
    /// The program that made it, with its version.
    pub made_by: String,
    /// Which events are in it; an empty object means all.
    pub filter: Filter,
    /// The last position of the log.
    pub position: Position,
    /// The chain of the log after it. 64 hexadecimal digits in JSON.
    #[serde(with = "crate::recorded::hex_hash")]
    pub chain: Hash,
    /// How many events are in it.
    pub events: u64,
    /// How many of them are erased, so that only their places and hashes are left.
    pub erased: u64,
    /// How many events of the log are not in it.
    pub withheld: u64,
    /// The streams that it has events of, in the order of their names.
    pub streams: Vec<StreamEntry>,
    /// The files.
    pub files: Vec<FileEntry>,
    /// The files of blobs, sealed as they are: of a whole export only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blobs: Vec<FileEntry>,
    /// The outputs that its events name, in plain: only where they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<FileEntry>,
    /// The key that signed it. 64 hexadecimal digits in JSON.
    pub public_key: PublicKey,
}

/// What an export has of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamEntry {
    /// The stream.
    pub stream: StreamId,
    /// Its events that are in the export.
    pub events: u64,
    /// Those of them that are erased.
    pub erased: u64,
    /// The first of them.
    pub first_seq: Seq,
    /// The last of them.
    pub last_seq: Seq,
    /// The hash of the last of them: the head of the stream's chain there.
    #[serde(with = "crate::recorded::hex_hash")]
    pub hash: Hash,
}

/// What must be known before the rest can be understood.
#[derive(Deserialize)]
struct Beginning {
    format: u32,
    log_format: u32,
    public_key: PublicKey,
}

impl Manifest {
    /// Whether nothing is withheld.
    pub fn is_whole(&self) -> bool {
        self.filter.is_empty()
    }

    /// Where the log ended, as proof for later that it went so far.
    pub fn head(&self) -> ExportedHead {
        ExportedHead { position: self.position, chain: self.chain }
    }

    /// Whether it has the wrapped keys that a log needs.
    pub fn has_keys(&self) -> bool {
        self.file(KEYS_FILE).is_some()
    }

    /// One of its files.
    pub(super) fn file(&self, name: &str) -> Option<&FileEntry> {
        self.files.iter().find(|file| file.name == name)
    }

    /// The files that it lists must be those that exports of its kind have.
    pub(super) fn has_known_files(&self) -> bool {
        let second = if self.is_whole() { KEYS_FILE } else { HASHES_FILE };
        let names: Vec<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
        let is_known = names == [EVENTS_FILE, second] || (self.is_whole() && names == [EVENTS_FILE]);
        is_known
            && (self.is_whole() || self.blobs.is_empty())
            && self.outputs.iter().all(|file| outputs::is_in(&file.name))
            && self.blobs.iter().all(|file| blob::copy::is_in(&file.name, Path::new("")))
    }

    /// The bytes that are signed.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Reads the manifest of an export that this program understands, and the bytes that were signed.
    pub(super) fn read(folder: &Path) -> Result<(Self, Vec<u8>), ExportError> {
        let path = folder.join(MANIFEST_FILE);
        let has = |name: &str| folder.join(name).is_file();
        if has(NOTE_FILE) || !(has(MANIFEST_FILE) || is_export(folder)) {
            return Err(ExportError::NoExport { folder: folder.to_owned() });
        }
        if let Some(name) = [MANIFEST_FILE, SIGNATURE_FILE].into_iter().find(|name| !has(name)) {
            let missing = ExportDamage::FileMissing { name: name.to_owned() };
            return Err(ExportError::Damaged(Box::new(missing)));
        }
        let bytes = fs::read(&path).map_err(io_error("read", &path))?;
        let unreadable = |source| ExportError::Unreadable { path: path.clone(), source };
        let beginning: Beginning = serde_json::from_slice(&bytes).map_err(unreadable)?;
        if let Some(newer) = beginning.newer() {
            // What nobody signed so was changed.
            let key = beginning.public_key;
            let changed = || ExportError::Damaged(Box::new(ExportDamage::Signature { key }));
            return Err(if signature::is_signed(folder, &bytes, &key)? { newer } else { changed() });
        }
        let manifest = serde_json::from_slice(&bytes).map_err(unreadable)?;
        Ok((manifest, bytes))
    }
}

impl Beginning {
    /// Why this program does not understand the rest.
    fn newer(&self) -> Option<ExportError> {
        if self.format > FORMAT {
            return Some(ExportError::Newer { found: self.format });
        }
        let found = self.log_format;
        (found > format::FORMAT_VERSION).then_some(ExportError::Format(FormatError::Newer { found }))
    }
}

/// Writes a small file, and returns when it is on disk.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), ExportError> {
    let write = || -> io::Result<()> {
        let mut options = File::options();
        let mut file = options.write(true).create(true).truncate(true).mode(OWNER_ONLY).open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(io_error("write", path))
}
