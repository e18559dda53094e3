//! What the index is told of a commit: of one that was just written, and of one that was read.

use std::{collections::HashMap, sync::Arc};

use crate::{
    codec::{
        DecodeError,
        record::{self, HASH_BYTES, Outline, Type},
    },
    index::{Indexed, IndexedCommit},
    keys,
    seal::Seal,
    segment::frame::{Frame, HEADER_BYTES},
    store::{CommitGroup, StoreError, StoredEvent, Tail},
    stream_id::StreamId,
};

/// A commit that was just written.
pub(super) fn of_group(group: CommitGroup, address: u64, frame: Arc<[u8]>) -> IndexedCommit {
    let mut offset = HEADER_BYTES;
    let events = group
        .events
        .iter()
        .map(|stored| {
            let start = offset + size_of::<u32>();
            offset = start + stored.record.len();
            of_stored(stored, start)
        })
        .collect();
    let keys = group.keys.iter();
    let keys = keys.map(|(stream, key, key_use)| (keys::idempotency::hash(stream, key), *key_use)).collect();
    IndexedCommit { commit: group.commit, address, frame, events, tails: group.tails, keys }
}

fn of_stored(stored: &StoredEvent, offset: usize) -> Indexed {
    let event = &*stored.event;
    let event_type = match &event.seal {
        Seal::Opened(opened) => Type::Tag(opened.type_tag),
        Seal::None | Seal::Erased(_) => Type::Plain(event.event_type.clone()),
    };
    Indexed {
        seq: event.seq,
        stream: stored.hashes.stream.0,
        run: stored.hashes.run.map(|run| run.0),
        task: stored.hashes.task,
        delegation_id: event.scope.delegation_id,
        event_type,
        offset: u32::try_from(offset).unwrap_or(u32::MAX),
        length: u32::try_from(stored.record.len()).unwrap_or(u32::MAX),
    }
}

/// What the index holds of a record that begins at an offset of its frame.
fn outline_of(outline: &Outline, stream: [u8; 16], offset: u32, length: u32) -> Indexed {
    Indexed {
        seq: outline.seq,
        stream,
        run: outline.run.map(|run| run.0),
        task: outline.task,
        delegation_id: outline.delegation_id,
        event_type: outline.event_type.clone(),
        offset,
        length,
    }
}

/// A commit that was read from the segments.
pub(crate) fn commit_of(frame: &Frame<'_>) -> Result<IndexedCommit, StoreError> {
    let damaged = |source: DecodeError| StoreError::Damaged { what: "a record".to_owned(), source };
    let mut events = Vec::with_capacity(frame.header.count as usize);
    let mut tails: HashMap<StreamId, Tail> = HashMap::new();
    let mut known: Option<(StreamId, [u8; 16])> = None;
    for (offset, bytes) in frame.records() {
        let outline = record::outline(bytes).map_err(damaged)?;
        let stream = match &known {
            Some((stream, hash)) if *stream == outline.stream => *hash,
            _ => keys::stream_entry::hash(&outline.stream),
        };
        known = Some((outline.stream.clone(), stream));
        let hash =
            *bytes.last_chunk::<HASH_BYTES>().ok_or_else(|| damaged(DecodeError::Short { field: "hash" }))?;
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        events.push(outline_of(&outline, stream, offset, length));
        let tail = Tail { seq: outline.seq, hash, position: outline.position };
        tails.insert(outline.stream, tail);
    }
    Ok(IndexedCommit {
        commit: frame.header.commit(),
        address: frame.header.address,
        frame: Arc::from(frame.bytes),
        events,
        tails: tails.into_iter().collect(),
        keys: frame.keys().map(|key| (key.hash, key.key_use)).collect(),
    })
}
