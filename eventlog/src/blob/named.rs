//! How events name blobs: `"blobs": [{"sha256": …, "bytes": …}]` in their metadata.
//!
//! Only events of two types can: those that carry what a tool returned. The types stand in the clear
//! as tags, so that looking for the blobs of a log does not mean to open all of it. Events that were
//! ingested name nothing, because their metadata is somebody else's.

use domain::kept_output::BLOBS_KEY;
use serde::Deserialize;

use super::{BlobDigest, BlobRef};
use crate::{FOREIGN_SCHEMA_VERSION, recorded::RecordedEvent};

/// The event types that can name blobs.
pub(super) const NAMING_TYPES: [&str; 2] = ["llm.tool.result", "subagent.message"];

/// The field is [`BLOBS_KEY`].
#[derive(Deserialize)]
struct Metadata {
    blobs: Vec<BlobRef>,
}

/// The blobs that an event names.
pub(crate) fn named(event: &RecordedEvent) -> Vec<BlobRef> {
    let can_name =
        event.schema_version != FOREIGN_SCHEMA_VERSION && NAMING_TYPES.contains(&event.event_type.as_str());
    // Most events do not, and need not be parsed for that.
    if !can_name || !event.metadata.get().contains(BLOBS_KEY) {
        return Vec::new();
    }
    event.metadata.deserialize::<Metadata>().map_or_else(|_| Vec::new(), |metadata| metadata.blobs)
}

/// Whether an event names a blob.
pub(crate) fn is_named_by(event: &RecordedEvent, sha256: &BlobDigest) -> bool {
    named(event).iter().any(|blob| blob.sha256 == *sha256)
}

/// Whether an event may name a blob: its digest stands somewhere in it. More events do than name it,
/// never fewer.
pub(super) fn mentions(event: &RecordedEvent, digest: &str) -> bool {
    event.metadata.get().contains(digest) || event.content.get().contains(digest)
}
