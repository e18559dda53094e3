//! The rows that one page of events touches: each is opened and decoded once, and encoded and
//! sealed once, however often it is touched.

use std::{any::Any, collections::HashMap};

use domain::ids::ThreadId;
use eventlog::engine::{Batch, Direction};

use crate::{
    keys::{KeyKind, KeyWriter, Row, RowKey},
    sealing::{Origin, Sealing},
    store::{ROWS, RowError, Snapshot},
};

/// Keys that are listed at once.
const KEYS_PAGE: usize = 256;

/// The rows of one view while a page is folded. Nothing is written before `write_to`; to drop it
/// is to undo all of it.
pub(crate) struct Rows<'s> {
    /// None begins with no rows at all.
    snapshot: Option<&'s Snapshot<'s>>,
    slots: HashMap<Vec<u8>, Slot>,
    /// Of the event that is being folded.
    event: Origin,
}

/// A row that was touched.
struct Slot {
    row: Option<Box<dyn TouchedRow>>,
    is_changed: bool,
    /// Whose events made the row.
    origin: Origin,
}

/// A row of any type, and how it becomes bytes.
trait TouchedRow {
    fn encode(&self) -> Result<Vec<u8>, serde_json::Error>;
    fn as_any(&self) -> &dyn Any;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<R: Row> TouchedRow for R {
    fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl<'s> Rows<'s> {
    pub(crate) fn new(snapshot: &'s Snapshot<'s>) -> Self {
        Self { snapshot: Some(snapshot), slots: HashMap::new(), event: Origin::Thread }
    }

    /// Rows of a view that has seen nothing yet.
    pub(crate) fn empty() -> Self {
        Self { snapshot: None, slots: HashMap::new(), event: Origin::Thread }
    }

    /// Says whose event is folded next.
    pub(crate) fn next_event(&mut self, event: Origin) {
        self.event = event;
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
            let mut of_thread = KeyWriter::new(*kind);
            of_thread.name(thread_id.as_str());
            self.slots.retain(|key, _| !of_thread.begins(key));
            for key in self.stored(&of_thread)? {
                self.slots.insert(key, Slot { row: None, is_changed: true, origin: Origin::Thread });
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
            let page = snapshot.keys(&rest, KEYS_PAGE)?;
            match page.last() {
                Some(last) => rest = rest.beyond(last, Direction::Forward),
                None => return Ok(keys),
            }
            keys.extend(page);
        }
    }

    /// The row under a key.
    pub(crate) fn get<K: RowKey>(&mut self, key: &K) -> Result<Option<&K::Row>, RowError> {
        let slot = self.slot::<K>(key.encode())?;
        Ok(slot.row.as_deref().and_then(|row| row.as_any().downcast_ref()))
    }

    /// Puts a row under a key, in place of any before.
    pub(crate) fn put<K: RowKey>(&mut self, key: &K, row: K::Row) {
        let origin = self.event;
        self.slots.insert(key.encode(), Slot { row: Some(Box::new(row)), is_changed: true, origin });
    }

    /// Replaces the row under a key by what a fold makes of it. Gives the row if it is a new one.
    pub(crate) fn update<K: RowKey>(
        &mut self,
        key: &K,
        fold: impl FnOnce(Option<K::Row>) -> Option<K::Row>,
    ) -> Result<Option<&K::Row>, RowError> {
        let event = self.event;
        let slot = self.slot::<K>(key.encode())?;
        let before = slot.row.take().and_then(|row| row.into_any().downcast().ok()).map(|row| *row);
        let was_there = before.is_some();
        let after = fold(before);
        slot.is_changed |= was_there || after.is_some();
        slot.origin = if was_there { slot.origin.and(event) } else { event };
        slot.row = after.map(|row| Box::new(row) as Box<dyn TouchedRow>);
        let row = slot.row.as_deref().and_then(|row| row.as_any().downcast_ref());
        Ok(row.filter(|_| !was_there))
    }

    /// Adds what has changed to a batch.
    pub(crate) fn write_to(self, sealing: &Sealing, batch: &mut Batch) -> Result<(), RowError> {
        for (key, slot) in self.slots {
            match slot.row {
                _ if !slot.is_changed => {}
                Some(row) => {
                    let sealed =
                        sealing.seal(&key, slot.origin, row.encode().map_err(RowError::Unencodable)?);
                    batch.put(ROWS, key, sealed);
                }
                None => batch.delete(ROWS, key),
            }
        }
        Ok(())
    }

    /// The slot of a key, filled from the store at the first touch. The kind in the key's first
    /// byte fixes the type of the row, so a slot always holds the type that its key asks for.
    fn slot<K: RowKey>(&mut self, key: Vec<u8>) -> Result<&mut Slot, RowError> {
        use std::collections::hash_map::Entry;
        match self.slots.entry(key) {
            Entry::Occupied(slot) => Ok(slot.into_mut()),
            Entry::Vacant(vacant) => {
                let stored = match self.snapshot {
                    Some(snapshot) => snapshot.get_encoded::<K::Row>(K::KIND, vacant.key())?,
                    None => None,
                };
                let slot = match stored {
                    Some((row, origin)) => Slot { row: Some(Box::new(row)), is_changed: false, origin },
                    None => Slot { row: None, is_changed: false, origin: self.event },
                };
                Ok(vacant.insert(slot))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::ids::{RunId, ThreadId};
    use eventlog::engine::Engine;

    use super::*;
    use crate::{keys::run::RunOrderKey, store::Store};

    fn key(first_seq: u64) -> RunOrderKey {
        RunOrderKey { thread_id: ThreadId::new("t").unwrap(), first_seq }
    }

    fn run(name: &str) -> RunId {
        RunId::new(name).unwrap()
    }

    fn commit(store: &Store, touch: impl FnOnce(&mut Rows<'_>)) -> usize {
        let mut batch = Batch::new();
        let snapshot = store.snapshot();
        let mut rows = Rows::new(&snapshot);
        touch(&mut rows);
        rows.write_to(store.sealing(), &mut batch).unwrap();
        drop(snapshot);
        let writes = batch.len();
        store.commit(batch).unwrap();
        writes
    }

    #[test]
    fn a_row_is_written_once_however_often_it_is_touched() {
        let store = Store::new(Engine::in_memory(&[ROWS]));
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
        let store = Store::new(Engine::in_memory(&[ROWS]));
        commit(&store, |rows| rows.put(&key(1), run("a")));
        assert_eq!(commit(&store, |rows| assert_eq!(rows.get(&key(1)).unwrap(), Some(&run("a")))), 0);
        assert_eq!(commit(&store, |rows| assert_eq!(rows.update(&key(1), |_| None).unwrap(), None)), 1);
        assert_eq!(store.snapshot().get(&key(1)).unwrap(), None);
    }

    #[test]
    fn a_damaged_row_is_named() {
        let store = Store::new(Engine::in_memory(&[ROWS]));
        let mut batch = Batch::new();
        batch.put(ROWS, key(1).encode(), b"no json".to_vec());
        store.commit(batch).unwrap();
        let error = store.snapshot().get(&key(1)).unwrap_err();
        assert!(error.is_damage() && error.to_string().contains("RunOrder"), "{error}");
    }
}
