//! Going through the files below a folder: in order of names, without following links, within
//! bounds.

use ignore::{DirEntry, Walk, WalkBuilder};

use super::{ToolContext, file_call::ToolFailure};
use crate::sandbox::ResolvedPath;

/// Entries that one call looks at.
pub(super) const WALKED_ENTRIES_MAX: usize = 50_000;

/// Why a walk ended before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkEnd {
    /// Everything was seen.
    Complete,
    /// The visitor had enough.
    Enough,
    /// There were more entries than one call looks at.
    TooMany,
}

/// Calls the visitor for each entry below the folder until it says that it has enough. Hidden and
/// ignored files are seen like all others; unreadable folders and the server's own files are passed
/// over.
pub(super) fn walk(
    context: &ToolContext,
    folder: &ResolvedPath,
    mut has_enough: impl FnMut(&DirEntry) -> bool,
) -> Result<WalkEnd, ToolFailure> {
    for (count, entry) in entries(context, folder).flatten().filter(|entry| entry.depth() > 0).enumerate() {
        if context.cancel.is_cancelled() {
            return Err(ToolFailure::Cancelled);
        }
        if count >= WALKED_ENTRIES_MAX {
            return Ok(WalkEnd::TooMany);
        }
        if has_enough(&entry) {
            return Ok(WalkEnd::Enough);
        }
    }
    Ok(WalkEnd::Complete)
}

fn entries(context: &ToolContext, folder: &ResolvedPath) -> Walk {
    let folders = context.folders.clone();
    WalkBuilder::new(&folder.host)
        .filter_entry(move |entry| !folders.hides(entry.path()))
        .standard_filters(false)
        .follow_links(false)
        .sort_by_file_name(Ord::cmp)
        .build()
}

/// A name on one line: control characters are written out, so that a name cannot pass for two.
pub(super) fn one_line_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_control() {
            out.extend(letter.escape_default());
        } else {
            out.push(letter);
        }
    }
    out
}
