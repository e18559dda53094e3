//! Confines the calling thread, and every process that it starts, with Landlock.
//!
//! Needs no privileges. Covers what files are opened, made, renamed and removed, and TCP; it does
//! not cover modes, owners and times of files, which is why bubblewrap is preferred. It cannot take
//! a folder out of one that is allowed, and it knows no "own process": of `/proc` only what tells of
//! the machine as a whole is readable, so `ps` and `/proc/self/status` are not.

use std::path::PathBuf;

use ::landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, Scope, path_beneath_rules,
};

use super::system::{DEVICES, Etc, PROCESS_INFORMATION, PROGRAM_FOLDERS};

/// Without this version a file outside could still be emptied or linked to.
const ABI_NEEDED: ABI = ABI::V3;
/// What is used where the kernel has it.
const ABI_WANTED: ABI = ABI::V7;

/// What a confined process may touch.
pub(super) struct Reach<'a> {
    /// What may be read and run of the system.
    pub(super) etc: &'a Etc,
    /// Folders in which everything may be done but making devices.
    pub(super) folders: &'a [PathBuf],
    /// Whether TCP is left alone.
    pub(super) network: bool,
}

/// Restricts the calling thread for good.
pub(super) fn restrict_this_thread(reach: &Reach<'_>) -> Result<(), RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI_NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI_WANTED))?
        .scope(Scope::from_all(ABI_WANTED))?;
    if !reach.network {
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI_WANTED))?;
    }
    let read = AccessFs::from_read(ABI_WANTED);
    let look = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = AccessFs::from_all(ABI_WANTED) & !(AccessFs::MakeBlock | AccessFs::MakeChar);
    ruleset
        .create()?
        .add_rules(path_beneath_rules(PROGRAM_FOLDERS, read))?
        .add_rules(path_beneath_rules(&reach.etc.readable, read))?
        .add_rules(path_beneath_rules(PROCESS_INFORMATION, look))?
        .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile | AccessFs::WriteFile))?
        .add_rules(path_beneath_rules(reach.folders, write))?
        .restrict_self()?;
    Ok(())
}
