//! Looking at the folder of blobs without reading all of it: headers, lengths and last chunks, of the
//! files that are there and of those that events name. All bytes are read by verifying alone.

use std::{fs, io, path::Path};

use super::{
    BlobReader,
    place::{self, KEY_SUFFIX, Place},
    reader::{self, Probe},
    settle,
};
use crate::{
    keyring::{Keyring, ScopeId},
    verify::Damage,
};

/// What the folder of blobs holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlobInspection {
    /// Blobs that open.
    pub blobs: u64,
    /// Space of all files, in bytes; one that several runs share counts once for each.
    pub disk_bytes: u64,
    /// Files that wait for an event to name them, or to be removed.
    pub staged: u64,
    /// Files of what was erased, which nobody can open: an erasure was cut off.
    pub erased: u64,
    /// Files that are not what was written, within the folder of blobs.
    pub damaged: Vec<String>,
    /// What is wrong with blobs that events name, the first [`NAMED_MAX`] of them.
    pub named: Vec<Damage>,
}

/// Blobs that an inspection names at most: whoever has lost more has lost the folder.
pub(crate) const NAMED_MAX: usize = 100;

/// Looks at every file of a data folder's blobs. What events name is looked for apart (`check`).
pub(crate) fn inspect(data: &Path, keyring: &Keyring) -> io::Result<BlobInspection> {
    let place = Place::in_data(data);
    let staged = place::names_in(&place.staged_folder())?.len() as u64;
    let mut found = BlobInspection { staged, ..BlobInspection::default() };
    for thread in place.threads()? {
        for scope in place.scopes(thread)? {
            look_into(&place, (thread, scope), keyring, &mut found)?;
        }
    }
    Ok(found)
}

fn look_into(
    place: &Place,
    (thread, scope): (ScopeId, ScopeId),
    keyring: &Keyring,
    found: &mut BlobInspection,
) -> io::Result<()> {
    let folder = place.scope(thread, scope);
    for name in place::names_in(&folder)? {
        let path = folder.join(&name);
        found.disk_bytes += fs::metadata(&path)?.len();
        if name.ends_with(KEY_SUFFIX) {
            continue;
        }
        match reader::probe(&path, scope, keyring)? {
            // It was erased meanwhile.
            Probe::Missing => {}
            Probe::Erased => found.erased += 1,
            Probe::Whole(blob) if is_in_its_place(&blob.header, &name, keyring)? => {
                match BlobReader::new(*blob) {
                    Ok(_) => found.blobs += 1,
                    Err(error) => found.damaged.push(described(place, &path, &error)),
                }
            }
            Probe::Whole(_) => found.damaged.push(described(place, &path, &"another blob is in its place")),
            Probe::Damaged(what) => found.damaged.push(described(place, &path, &what)),
        }
    }
    Ok(())
}

fn is_in_its_place(header: &super::header::Header, name: &str, keyring: &Keyring) -> io::Result<bool> {
    Ok(settle::name_of(header, keyring)?.is_some_and(|expected| expected.to_string() == name))
}

fn described(place: &Place, path: &Path, what: &dyn std::fmt::Display) -> String {
    let within = path.strip_prefix(place.root()).unwrap_or(path);
    format!("{}: {what}", within.display())
}
