//! Takes root's powers away from the calling thread and every process that it starts.
//!
//! A server that runs as root would otherwise hand them to the shell, and some of them see past
//! Landlock: with `CAP_PERFMON` alone the server's own environment can be read in `/proc`.

use std::io;

use rustix::{
    process::geteuid,
    thread::{CapabilitySet, capability_is_in_bounding_set, remove_capability_from_bounding_set},
};

/// What remains: files of other owners inside the thread's folders can still be used.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID);

/// Restricts what the next program gets, for good. Other users' programs get nothing anyway.
pub(super) fn restrict_this_thread() -> io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        // One that this kernel does not know cannot be had.
        if capability_is_in_bounding_set(capability).unwrap_or(false) {
            remove_capability_from_bounding_set(capability)?;
        }
    }
    Ok(())
}
