//! The rows that one page of events touches: each is opened and decoded once, and encoded and
//! sealed once, however often it is touched. While there are more pages to come, those that changed
//! are kept for the next one.

use std::{
    any::Any,
    collections::HashMap,
    hash::{BuildHasher, Hasher, RandomState},
};

use domain::ids::ThreadId;
use eventlog::engine::{Batch, Direction};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    keys::{KeyKind, KeyWriter, MOMENT_SEQS, Row, RowKey, moment_key},
    sealing::{Origin, Sealing},
    store::{RowError, Side, Snapshot},
};

/// Keys that are listed at once.
const KEYS_PAGE: usize = 256;
/// Bytes of rows, as they are written, that are kept between two pages. More only helps where more
/// threads than that fit are written to in turn.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The rows of one view while a page is folded. Nothing is written before `write_to`; to drop it
/// is to undo all of it.
pub(crate) struct Rows<'s> {
    /// None begins with no rows at all.
    snapshot: Option<&'s Snapshot<'s>>,
    side: Side,
    slots: Slots,
    /// The key at hand, in memory that is used again.
    key: Vec<u8>,
    /// Of the event that is being folded.
    event: Origin,
    /// What that event has changed, as it was before; none while that is not noted down.
    before_event: Option<Vec<(Vec<u8>, Option<Slot>)>>,
}

/// Rows that a page has changed and the next one may change again. They are as they are stored.
#[derive(Default)]
pub(crate) struct KeptRows(Slots);

/// Rows by their encoded keys.
type Slots = HashMap<Vec<u8>, Slot, Seeds>;

/// Each event looks up a dozen keys of about a hundred bytes, for which the hasher of the standard library
/// takes as long as the folds do. Threads' names come from clients, so that seeds are not known outside.
struct Seeds(u64);

impl Default for Seeds {
    fn default() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }
}

impl BuildHasher for Seeds {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher(self.0)
    }
}

/// Hashes one key.
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_usize(&mut self, length: usize) {
        self.0 = self.0.wrapping_add(length as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A row that was touched.
struct Slot {
    /// An `Option` of the row, which stays where it is while folds replace what is in it.
    row: Box<dyn TouchedRow>,
    is_changed: bool,
    /// Whether a fold has changed it, and may do so again; what is only put is put once.
    is_folded: bool,
    /// Whose events made the row.
    origin: Origin,
}

/// A row of any type, or its absence, and how it becomes bytes.
trait TouchedRow: Send {
    /// None where there is no row.
    fn encode(&self) -> Result<Option<Vec<u8>>, serde_json::Error>;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn copied(&self) -> Box<dyn TouchedRow>;
}

impl<R: Row> TouchedRow for Option<R> {
    fn encode(&self) -> Result<Option<Vec<u8>>, serde_json::Error> {
        self.as_ref().map(Row::to_bytes).transpose()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn copied(&self) -> Box<dyn TouchedRow> {
        Box::new(self.clone())
    }
}

impl Slot {
    fn copied(&self) -> Self {
        Self { row: self.row.copied(), ..*self }
    }

    /// A row that is put in the place of any other.
    fn put<R: Row>(row: R, origin: Origin) -> Self {
        Self { row: Box::new(Some(row)), is_changed: true, is_folded: false, origin }
    }

    /// The row, which is of the type that its key asks for.
    fn row<R: Row>(&self) -> Option<&R> {
        self.row.as_any().downcast_ref::<Option<R>>()?.as_ref()
    }
}

impl<'s> Rows<'s> {
    /// Rows of a side, some of which are known already.
    pub(crate) fn new(snapshot: &'s Snapshot<'s>, side: Side, KeptRows(slots): KeptRows) -> Self {
        Self {
            snapshot: Some(snapshot),
            side,
            slots,
            key: Vec::new(),
            event: Origin::Thread,
            before_event: None,
        }
    }

    /// Rows of a view that has seen nothing yet.
    pub(crate) fn empty() -> Self {
        let (slots, key) = (Slots::default(), Vec::new());
        Self { snapshot: None, side: Side::First, slots, key, event: Origin::Thread, before_event: None }
    }

    /// Says whose event is folded next.
    pub(crate) fn next_event(&mut self, event: Origin) {
        self.event = event;
    }

    /// The same for an event that can be undone. That costs a copy of each row that it changes.
    pub(crate) fn next_event_with_care(&mut self, event: Origin) {
        self.next_event(event);
        self.before_event = Some(Vec::new());
    }

    /// Undoes what the event has changed.
    pub(crate) fn undo_event(&mut self) {
        for (key, slot) in self.before_event.take().unwrap_or_default().into_iter().rev() {
            match slot {
                Some(slot) => self.slots.insert(key, slot),
                None => self.slots.remove(&key),
            };
        }
    }

    /// Takes the rows of these kinds from another fold of the thread, in place of those that are
    /// there.
    pub(crate) fn replace(
        &mut self,
        kinds: &[KeyKind],
        thread_id: &ThreadId,
        other: Rows<'_>,
    ) -> Result<(), RowError> {
        for kind in kinds {
            let of_thread = KeyWriter::of_thread(*kind, thread_id);
            self.slots.retain(|key, _| !of_thread.begins(key));
            for key in self.stored(&of_thread)? {
                let row = Box::new(None::<()>);
                let gone = Slot { row, is_changed: true, is_folded: false, origin: Origin::Thread };
                self.slots.insert(key, gone);
            }
        }
        let is_wanted = |key: &[u8]| kinds.iter().any(|kind| KeyWriter::new(*kind).begins(key));
        self.slots.extend(other.slots.into_iter().filter(|(key, _)| is_wanted(key)));
        Ok(())
    }

    fn stored(&self, prefix: &KeyWriter) -> Result<Vec<Vec<u8>>, RowError> {
        let Some(snapshot) = self.snapshot else { return Ok(Vec::new()) };
        let (mut keys, mut rest) = (Vec::new(), prefix.range());
        loop {
            let page = snapshot.keys(self.side, &rest, KEYS_PAGE)?;
            match page.last() {
                Some(last) => rest = rest.beyond(last, Direction::Forward),
                None => return Ok(keys),
            }
            keys.extend(page);
        }
    }

    /// The row under a key.
    pub(crate) fn get<K: RowKey>(&mut self, key: &K) -> Result<Option<&K::Row>, RowError> {
        key.encode_into(&mut self.key);
        let slot = self.slot::<K>()?;
        Ok(slot.and_then(|slot| slot.row()))
    }

    /// Puts a row under a key, in place of any before.
    pub(crate) fn put<K: RowKey>(&mut self, key: &K, row: K::Row) {
        let (key, origin) = (key.encode(), self.event);
        self.note(&key);
        self.slots.insert(key, Slot::put(row, origin));
    }

    /// Replaces the row under a key by what a fold makes of it. Gives the row if it is a new one.
    pub(crate) fn update<K: RowKey>(
        &mut self,
        key: &K,
        fold: impl FnOnce(Option<K::Row>) -> Option<K::Row>,
    ) -> Result<Option<&K::Row>, RowError> {
        let event = self.event;
        key.encode_into(&mut self.key);
        self.note_key();
        let Some(slot) = self.slot::<K>()? else { return Ok(None) };
        let Some(row) = slot.row.as_any_mut().downcast_mut::<Option<K::Row>>() else { return Ok(None) };
        let before = row.take();
        let before_seq = before.as_ref().map(K::last_seq);
        *row = fold(before);
        slot.is_changed |= before_seq.is_some() || row.is_some();
        let moment = before_seq.and_then(|seq| kept_moment::<K>(seq, row.as_ref()?));
        slot.is_folded = true;
        slot.origin = if before_seq.is_some() { slot.origin.and(event) } else { event };
        let origin = slot.origin;
        if let Some((kind, seq, row)) = moment {
            let key = moment_key(kind, &self.key, seq);
            self.note(&key);
            self.slots.insert(key, Slot::put(row, origin));
        }
        if before_seq.is_some() {
            return Ok(None);
        }
        Ok(self.slots.get(&self.key).and_then(Slot::row))
    }

    /// Adds what has changed to a batch. Gives the rows that the next page may change again.
    pub(crate) fn write_to(self, sealing: &Sealing, batch: &mut Batch) -> Result<KeptRows, RowError> {
        let (mut kept, mut kept_bytes) = (KeptRows::default(), 0);
        // Neighbours are mostly of one thread, and of one place in the store.
        let mut slots: Vec<(Vec<u8>, Slot)> =
            self.slots.into_iter().filter(|(_, slot)| slot.is_changed).collect();
        slots.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (key, slot) in slots {
            let row = slot.row.encode().map_err(RowError::Unencodable)?;
            let bytes = row.as_ref().map_or(0, Vec::len);
            let is_kept = slot.is_folded && kept_bytes + bytes <= KEPT_BYTES_MAX;
            let place = if is_kept { key.clone() } else { Vec::new() };
            match row {
                Some(row) => {
                    let sealed = sealing.seal(&key, slot.origin, row);
                    batch.put(self.side.rows(), key, sealed);
                }
                None => batch.delete(self.side.rows(), key),
            }
            if is_kept {
                kept_bytes += bytes;
                kept.0.insert(place, Slot { is_changed: false, ..slot });
            }
        }
        Ok(kept)
    }

    /// Notes down how a row was before the present event, where that is wanted.
    fn note(&mut self, key: &[u8]) {
        if let Some(before) = &mut self.before_event {
            before.push((key.to_vec(), self.slots.get(key).map(Slot::copied)));
        }
    }

    /// The same for the key at hand.
    fn note_key(&mut self) {
        if self.before_event.is_some() {
            let key = self.key.clone();
            self.note(&key);
        }
    }

    /// The slot of the key at hand, filled from the store at the first touch. The kind in the key's
    /// first byte fixes the type of the row, so a slot always holds the type that its key asks for.
    fn slot<K: RowKey>(&mut self) -> Result<Option<&mut Slot>, RowError> {
        if !self.slots.contains_key(&self.key) {
            let slot = self.stored_slot::<K>()?;
            self.slots.insert(self.key.clone(), slot);
        }
        let Some(slot) = self.slots.get_mut(&self.key) else { return Ok(None) };
        // A row that was taken away as a whole kind is of no type.
        if !slot.row.as_any().is::<Option<K::Row>>() {
            slot.row = Box::new(None::<K::Row>);
        }
        Ok(Some(slot))
    }

    fn stored_slot<K: RowKey>(&self) -> Result<Slot, RowError> {
        let stored = match self.snapshot {
            Some(snapshot) => snapshot.get_encoded::<K::Row>(self.side, K::KIND, &self.key)?,
            None => None,
        };
        let (row, origin) = match stored {
            Some((row, origin)) => (Some(row), origin),
            None => (None, self.event),
        };
        Ok(Slot { row: Box::new(row), is_changed: false, is_folded: false, origin })
    }
}

/// The state of a row that is kept, if one is: the first after each [`MOMENT_SEQS`] seqs.
fn kept_moment<K: RowKey>(before: u64, row: &K::Row) -> Option<(KeyKind, u64, K::Row)> {
    let (kind, seq) = (K::MOMENTS?, K::last_seq(row));
    (before / MOMENT_SEQS != seq / MOMENT_SEQS).then(|| (kind, seq, row.clone()))
}

#[cfg(test)]
mod tests {
    use domain::ids::{RunId, ThreadId};
    use eventlog::engine::Engine;

    use super::*;
    use crate::{
        keys::run::RunOrderKey,
        store::{KEYSPACES, ROWS, Store},
    };

    fn key(first_seq: u64) -> RunOrderKey {
        RunOrderKey { thread_id: ThreadId::new("t").unwrap(), first_seq }
    }

    fn run(name: &str) -> RunId {
        RunId::new(name).unwrap()
    }

    fn commit(store: &Store, touch: impl FnOnce(&mut Rows<'_>)) -> usize {
        let mut batch = Batch::new();
        let snapshot = store.snapshot();
        let mut rows = Rows::new(&snapshot, Side::First, KeptRows::default());
        touch(&mut rows);
        drop(rows.write_to(store.sealing(), &mut batch).unwrap());
        drop(snapshot);
        let writes = batch.len();
        store.commit(batch).unwrap();
        writes
    }

    #[test]
    fn a_row_is_written_once_however_often_it_is_touched() {
        let store = Store::new(Engine::in_memory(&KEYSPACES));
        let writes = commit(&store, |rows| {
            assert_eq!(rows.get(&key(1)).unwrap(), None);
            assert_eq!(rows.update(&key(1), |_| Some(run("a"))).unwrap(), Some(&run("a")));
            assert_eq!(rows.update(&key(1), |row| row).unwrap(), None, "it is not new any more");
            rows.put(&key(1), run("b"));
            assert_eq!(rows.get(&key(1)).unwrap(), Some(&run("b")));
            assert_eq!(rows.update(&key(2), |_| None).unwrap(), None);
        });
        assert_eq!(writes, 1);
        assert_eq!(store.snapshot().get(&key(1)).unwrap(), Some(run("b")));
    }

    #[test]
    fn what_was_only_read_is_not_written_and_what_is_folded_away_is_deleted() {
        let store = Store::new(Engine::in_memory(&KEYSPACES));
        commit(&store, |rows| rows.put(&key(1), run("a")));
        assert_eq!(commit(&store, |rows| assert_eq!(rows.get(&key(1)).unwrap(), Some(&run("a")))), 0);
        assert_eq!(commit(&store, |rows| assert_eq!(rows.update(&key(1), |_| None).unwrap(), None)), 1);
        assert_eq!(store.snapshot().get(&key(1)).unwrap(), None);
    }

    #[test]
    fn an_event_is_undone_and_what_was_before_it_stays() {
        let store = Store::new(Engine::in_memory(&KEYSPACES));
        commit(&store, |rows| rows.put(&key(1), run("stored")));
        commit(&store, |rows| {
            rows.update(&key(2), |_| Some(run("before"))).unwrap();
            rows.next_event_with_care(Origin::Thread);
            rows.update(&key(1), |_| Some(run("x"))).unwrap();
            rows.update(&key(2), |_| None).unwrap();
            rows.put(&key(2), run("y"));
            rows.put(&key(3), run("z"));
            rows.undo_event();
            assert_eq!(rows.get(&key(1)).unwrap(), Some(&run("stored")));
        });
        let stored = |number| store.snapshot().get(&key(number)).unwrap();
        assert_eq!([1, 2, 3].map(stored), [Some(run("stored")), Some(run("before")), None]);
    }

    #[test]
    fn rows_that_are_kept_are_not_read_again_and_those_that_were_only_put_are_not_kept() {
        let store = Store::new(Engine::in_memory(&KEYSPACES));
        let snapshot = store.snapshot();
        let mut rows = Rows::new(&snapshot, Side::First, KeptRows::default());
        rows.update(&key(1), |_| Some(run("folded"))).unwrap();
        rows.put(&key(2), run("put"));
        let mut batch = Batch::new();
        let kept = rows.write_to(store.sealing(), &mut batch).unwrap();
        assert_eq!(batch.len(), 2);
        // The batch was not committed: only what is kept is found.
        let mut rows = Rows::new(&snapshot, Side::First, kept);
        assert_eq!(rows.get(&key(1)).unwrap(), Some(&run("folded")));
        assert_eq!(rows.get(&key(2)).unwrap(), None);
        let mut batch = Batch::new();
        drop(rows.write_to(store.sealing(), &mut batch).unwrap());
        assert_eq!(batch.len(), 0, "nothing has changed since");
    }

    #[test]
    fn a_damaged_row_is_named() {
        let store = Store::new(Engine::in_memory(&KEYSPACES));
        let mut batch = Batch::new();
        batch.put(ROWS, key(1).encode(), b"no json".to_vec());
        store.commit(batch).unwrap();
        let error = store.snapshot().get(&key(1)).unwrap_err();
        assert!(error.is_damage() && error.to_string().contains("RunOrder"), "{error}");
    }
}
