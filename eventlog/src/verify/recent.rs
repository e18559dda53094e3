//! The end of the log, checked on every opening: enough to notice an engine that came back with
//! other last commits, or older index entries, than it was left with, at a cost that does not grow
//! with the log.

use super::{
    Damage, DamageKind,
    link::{self, Link},
};
use crate::{
    engine::{Direction, Engine, KeyRange},
    keys::{self, EVENTS, INDEX},
    position::Position,
    store::{Commit, Head, StoreError},
};

/// Commits that are checked at most.
const COMMITS_MAX: usize = 64;
/// Events that are checked at most, so that large commits do not make opening slow. At least the
/// last commit is checked.
const EVENTS_MAX: u64 = 2_048;

/// Checks the last commits: their records, chains and stream entries, and the ends of their streams.
pub(crate) fn check_recent(engine: &Engine, head: Head) -> Result<Option<Damage>, StoreError> {
    let Some(base) = base(engine, head)? else {
        return Ok(None);
    };
    let mut link = Link::after(engine, base, Vec::new());
    let range =
        KeyRange::between(&keys::event::encode(base.position.next()), &keys::event::encode(head.position));
    let page = engine.view().page(EVENTS, &range, Direction::Forward, usize::MAX)?;
    for pair in page {
        let linked = match link.follow(pair)? {
            Ok(linked) => linked,
            Err(damage) => return Ok(Some(damage)),
        };
        let position = linked.outline.position;
        let at_position = |kind| Ok(Some(Damage { position, kind }));
        if !link::hash_fits(&linked) {
            return at_position(DamageKind::HashDiffers);
        }
        if let Some(kind) = link.check_chain()? {
            return at_position(kind);
        }
        let entry = keys::stream_entry::encode(&linked.outline.stream, linked.outline.seq);
        if engine.get(INDEX, &entry)? != Some(keys::stream_entry::encode_value(position)) {
            return at_position(DamageKind::Index { index: super::Index::Streams });
        }
    }
    if link.position < head.position {
        return Ok(Some(Damage { position: link.position.next(), kind: DamageKind::Missing }));
    }
    for (stream, tail) in &link.tails {
        let stored = engine.get(INDEX, &keys::stream::encode(stream))?;
        if stored != Some(keys::stream::encode_value(tail)) {
            let kind = DamageKind::TailDiffers { stream: stream.clone() };
            return Ok(Some(Damage { position: tail.position, kind }));
        }
    }
    Ok(None)
}

/// The head before the commits that are checked. None if there is no commit.
fn base(engine: &Engine, head: Head) -> Result<Option<Head>, StoreError> {
    let range = KeyRange::prefix(&keys::commit::prefix());
    let newest = engine.view().page(INDEX, &range, Direction::Backward, COMMITS_MAX + 1)?;
    let mut base = None;
    for (key, value) in &newest {
        let damaged = |source| StoreError::Damaged { what: "a commit".to_owned(), source };
        let last = keys::commit::decode(key).map_err(damaged)?;
        let commit: Commit = keys::commit::decode_value(last, value).map_err(damaged)?;
        let is_too_far = head.position.get().saturating_sub(last.get()) > EVENTS_MAX;
        if is_too_far && base.is_some() {
            return Ok(base);
        }
        if last < head.position {
            base = Some(Head { position: last, chain: commit.chain });
        }
    }
    let reaches_start = newest.len() <= COMMITS_MAX;
    Ok(match head.position {
        Position::ZERO => None,
        _ if reaches_start => Some(Head::EMPTY),
        _ => base,
    })
}
