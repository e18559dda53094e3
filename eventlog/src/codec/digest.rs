//! The digest that tells whether two appends under one idempotency key say the same.

use blake3::Hasher;

use crate::{append::Append, chain::Hash, new_event::NewEvent};

/// Covers what the events say: type, version, category, scope, owner, content and metadata. Ids,
/// times and traces are made anew by whoever tries again, so they do not count.
pub(crate) fn content_digest(append: &Append) -> Hash {
    let mut hasher = Hasher::new();
    hasher.update(&(append.events.len() as u64).to_be_bytes());
    for event in &append.events {
        add_event(&mut hasher, event);
    }
    *hasher.finalize().as_bytes()
}

fn add_event(hasher: &mut Hasher, event: &NewEvent) {
    add(hasher, Some(event.event_type.as_bytes()));
    add(hasher, Some(&event.schema_version.to_be_bytes()));
    add(hasher, Some(event.category.as_bytes()));
    add(hasher, event.scope.run_id.as_ref().map(|id| id.as_str().as_bytes()));
    add(hasher, event.scope.task_id.as_ref().map(|id| id.as_str().as_bytes()));
    let delegation_id = event.scope.delegation_id.map(|id| id.as_uuid());
    add(hasher, delegation_id.as_ref().map(|id| id.as_bytes().as_slice()));
    add(hasher, Some(event.owner.as_str().as_bytes()));
    add(hasher, Some(event.content.get().as_bytes()));
    add(hasher, Some(event.metadata.get().as_bytes()));
}

/// Each field with its length before it, so that no two lists of fields look alike.
fn add(hasher: &mut Hasher, field: Option<&[u8]>) {
    match field {
        Some(bytes) => hasher.update(&[1]).update(&(bytes.len() as u64).to_be_bytes()).update(bytes),
        None => hasher.update(&[0]),
    };
}
