//! Proving an export without the log.

use std::path::Path;

use super::{
    EVENTS_FILE, ExportError, HASHES_FILE, SIGNATURE_FILE,
    follow::{self, Follower, Step},
    manifest::Manifest,
    outputs,
    signature::{self, PublicKey},
};
use crate::{
    position::Position,
    verify::{Damage, DamageKind, ExportedHead, Progress},
};

/// Positions between two reports of progress.
const PROGRESS_POSITIONS: u64 = 1_024;

/// What to compare an export with, and whom to tell.
#[derive(Default)]
pub struct VerifyExport<'a> {
    /// The head of an earlier export, or one that was written down.
    pub against: Option<ExportedHead>,
    /// The key that must have signed it; none takes the key that the manifest names.
    pub key: Option<PublicKey>,
    /// Is told after every thousand positions or so.
    pub progress: Option<&'a mut dyn FnMut(Progress)>,
}

/// What was found of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportReport {
    /// What it says of itself.
    pub manifest: Manifest,
    /// Events that were found to be what was recorded.
    pub events: u64,
    /// The last position of the log that was passed.
    pub position: Position,
    /// The first thing that is wrong.
    pub damage: Option<ExportDamage>,
}

/// What is wrong with an export.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportDamage {
    /// An event is not what was recorded, or not where it was.
    #[error(transparent)]
    Event(#[from] Damage),
    /// A file is not as it was written, though every event in it is.
    #[error("the file {name} is not as it was written")]
    File {
        /// The file.
        name: String,
    },
    /// A file is not there.
    #[error("the file {name} is missing")]
    FileMissing {
        /// The file.
        name: String,
    },
    /// The manifest does not say what is there.
    #[error("the manifest does not fit: {what}")]
    Manifest {
        /// What does not fit.
        what: String,
    },
    /// The manifest, or its signature, was changed.
    #[error("the signature is not one of this manifest by the key {key}")]
    Signature {
        /// The key that should have signed it.
        key: PublicKey,
    },
    /// Somebody else signed it.
    #[error("it was signed by the key {found}, not by {expected}")]
    OtherKey {
        /// The key that was asked for.
        expected: PublicKey,
        /// The key in the manifest.
        found: PublicKey,
    },
}

/// Checks the events, chains, counts, files and the signature of an export, and names the first
/// thing that is wrong: an event before anything that follows from it.
pub fn verify_export(folder: &Path, request: VerifyExport<'_>) -> Result<ExportReport, ExportError> {
    let (manifest, signed) = Manifest::read(folder)?;
    if let Some(name) = missing_file(folder, &manifest) {
        let damage = Some(ExportDamage::FileMissing { name });
        return Ok(ExportReport { manifest, events: 0, position: Position::ZERO, damage });
    }
    let mut follower = Follower::open(folder, manifest.is_whole())?;
    let VerifyExport { against, key, mut progress } = request;
    let mut damage = follow_all(&mut follower, &manifest, against, &mut progress)?.map(ExportDamage::Event);
    if damage.is_none() {
        damage = check_files(&follower, &manifest, folder)?
            .or_else(|| check_counts(&follower, &manifest))
            .or(check_signature(folder, &manifest, &signed, key)?);
    }
    let (events, position) = (follower.walk.events, follower.walk.head.position);
    Ok(ExportReport { manifest, events, position, damage })
}

/// The first file that belongs to the export and is not there. A manifest that lists other files is
/// found out later.
fn missing_file(folder: &Path, manifest: &Manifest) -> Option<String> {
    if !manifest.has_known_files() {
        return None;
    }
    let listed =
        manifest.files.iter().chain(&manifest.blobs).chain(&manifest.outputs).map(|file| file.name.as_str());
    let mut names = listed.chain([SIGNATURE_FILE]);
    names.find(|name| !folder.join(name).exists()).map(str::to_owned)
}

fn follow_all(
    follower: &mut Follower,
    manifest: &Manifest,
    against: Option<ExportedHead>,
    progress: &mut Option<&mut dyn FnMut(Progress)>,
) -> Result<Option<Damage>, ExportError> {
    loop {
        let step = match follower.step()? {
            Ok(step) => step,
            Err(damage) => return Ok(Some(damage)),
        };
        let head = follower.walk.head;
        if let Step::End = step {
            return Ok(check_end(head.into(), manifest, against));
        }
        if head.position > manifest.position {
            let reason = "the log ended before it when it was exported".to_owned();
            let kind = DamageKind::Unreadable { reason };
            return Ok(Some(Damage { position: head.position, kind }));
        }
        let passed = against.filter(|against| against.position == head.position);
        if passed.is_some_and(|against| against.chain != head.chain) {
            return Ok(Some(Damage { position: head.position, kind: DamageKind::ExportDiffers }));
        }
        if let Some(progress) = progress
            && head.position.get().is_multiple_of(PROGRESS_POSITIONS)
        {
            progress(Progress { position: head.position, head: manifest.position });
        }
    }
}

/// What is wrong with where the files end.
fn check_end(end: ExportedHead, manifest: &Manifest, against: Option<ExportedHead>) -> Option<Damage> {
    if end.position < manifest.position {
        return Some(Damage { position: end.position.next(), kind: DamageKind::Missing });
    }
    if end.chain != manifest.chain {
        return Some(Damage { position: end.position, kind: DamageKind::ChainDiffers });
    }
    let against = against.filter(|against| against.position > end.position)?;
    let kind = DamageKind::TailRemoved { exported: against.position };
    Some(Damage { position: end.position.next(), kind })
}

fn check_files(
    follower: &Follower,
    manifest: &Manifest,
    folder: &Path,
) -> Result<Option<ExportDamage>, ExportError> {
    if !manifest.has_known_files() {
        return Ok(Some(ExportDamage::Manifest { what: "it lists other files".to_owned() }));
    }
    let mut other = follower.other_file(manifest).map(str::to_owned);
    let read_before = [EVENTS_FILE, HASHES_FILE];
    let files = manifest.files.iter().chain(&manifest.blobs);
    for file in files.filter(|file| !read_before.contains(&file.name.as_str())) {
        if other.is_none() && follow::hash_of(&folder.join(&file.name))? != Some((file.bytes, file.blake3)) {
            other = Some(file.name.clone());
        }
    }
    for file in &manifest.outputs {
        if other.is_none() && !outputs::is_right(folder, file)? {
            other = Some(file.name.clone());
        }
    }
    Ok(other.map(|name| ExportDamage::File { name }))
}

fn check_counts(follower: &Follower, manifest: &Manifest) -> Option<ExportDamage> {
    let walk = &follower.walk;
    let differs = |what: &str| Some(ExportDamage::Manifest { what: what.to_owned() });
    if !walk.streams.values().eq(&manifest.streams) {
        return differs("the streams have other counts or heads");
    }
    let withheld = manifest.position.get().saturating_sub(walk.events);
    if (walk.events, walk.erased, withheld) != (manifest.events, manifest.erased, manifest.withheld) {
        return differs("there are other numbers of events");
    }
    None
}

fn check_signature(
    folder: &Path,
    manifest: &Manifest,
    signed: &[u8],
    key: Option<PublicKey>,
) -> Result<Option<ExportDamage>, ExportError> {
    let found = manifest.public_key;
    if !signature::is_signed(folder, signed, &found)? {
        return Ok(Some(ExportDamage::Signature { key: found }));
    }
    let other = key.filter(|expected| *expected != found);
    Ok(other.map(|expected| ExportDamage::OtherKey { expected, found }))
}
