//! Reading a log of version 1 or 2: records, commits and idempotency keys in the storage engine.

use std::{collections::BTreeMap, path::Path};

use crate::{
    chain::Hash,
    codec::{DecodeError, bytes::Reader},
    engine::{Direction, Engine, KeyRange, Pair},
    format::FormatError,
    keys::{self, EVENTS, INDEX, KEYSPACES},
    position::Position,
    segment::{
        Appender, SegmentError,
        frame::{self, FrameKey},
    },
    store::{Commit, Head, StoreError},
};

/// Pairs that are read at once.
const PAGE: usize = 1_024;

/// A log in an engine.
pub(super) struct OldLog {
    engine: Engine,
    version: Option<u32>,
}

impl OldLog {
    /// Opens a copy of the log. The engine may change it.
    pub(super) fn open(folder: &Path) -> Result<Self, FormatError> {
        let engine = Engine::open(folder, &KEYSPACES).map_err(FormatError::Engine)?;
        let version = read_version(&engine).map_err(FormatError::Store)?;
        Ok(Self { engine, version })
    }

    pub(super) fn version(&self) -> Option<u32> {
        self.version
    }

    /// Where it ends.
    pub(super) fn head(&self) -> Result<Head, StoreError> {
        let range = KeyRange::prefix(&keys::commit::prefix());
        let last = self.engine.view().page(INDEX, &range, Direction::Backward, 1)?;
        let Some(pair) = last.first() else { return Ok(Head::EMPTY) };
        let commit = decode_commit(pair)?;
        Ok(Head { position: commit.last, chain: commit.chain })
    }

    /// The chain after a position, if a commit ends there.
    pub(super) fn chain_at(&self, last: Position) -> Result<Option<Hash>, StoreError> {
        let value = self.engine.get(INDEX, &keys::commit::encode(last))?;
        let commit = value.map(|value| keys::commit::decode_value(last, &value).map_err(damaged("a commit")));
        Ok(commit.transpose()?.map(|commit| commit.chain))
    }

    /// Writes every commit as a frame, and tells of the last position of each.
    pub(super) fn write_to(
        &self,
        appender: &mut Appender,
        tell: &dyn Fn(Position),
    ) -> Result<(), StoreError> {
        let mut keys = self.idempotency_keys()?;
        let prefix = keys::commit::prefix();
        let (mut range, mut frame) = (KeyRange::prefix(&prefix), Vec::new());
        loop {
            let page = self.engine.view().page(INDEX, &range, Direction::Forward, PAGE)?;
            for pair in &page {
                let commit = decode_commit(pair)?;
                let later = keys.split_off(&commit.last.next());
                let used: Vec<FrameKey> =
                    std::mem::replace(&mut keys, later).into_values().flatten().collect();
                self.encode(&mut frame, &commit, &used)?;
                let address = appender.place(frame.len())?;
                if !frame::finish(&mut frame, address, &commit, used.len()) {
                    return Err(SegmentError::TooLarge { bytes: frame.len() }.into());
                }
                appender.append_unsynced(&frame)?;
                tell(commit.last);
            }
            match page.last() {
                Some((last, _)) if page.len() == PAGE => range = KeyRange::after(last, &prefix),
                Some(_) | None => return Ok(()),
            }
        }
    }

    fn encode(&self, frame: &mut Vec<u8>, commit: &Commit, used: &[FrameKey]) -> Result<(), StoreError> {
        frame::begin(frame);
        let mut next = commit.first;
        while next <= commit.last {
            let (first, last) = (keys::event::encode(next), keys::event::encode(commit.last));
            let range = KeyRange::between(&first, &last);
            let page = self.engine.view().page(EVENTS, &range, Direction::Forward, PAGE)?;
            for (key, record) in &page {
                if *key != keys::event::encode(next) {
                    break;
                }
                frame::put_record(frame, record);
                next = next.next();
            }
            if page.first().is_none_or(|(key, _)| *key != first) {
                return Err(StoreError::MissingEvent { position: next });
            }
        }
        used.iter().for_each(|key| frame::put_key(frame, key));
        Ok(())
    }

    /// All idempotency keys, by the first event that was appended under them.
    fn idempotency_keys(&self) -> Result<BTreeMap<Position, Vec<FrameKey>>, StoreError> {
        let prefix = keys::idempotency::all();
        let (mut found, mut range) = (BTreeMap::<_, Vec<_>>::new(), KeyRange::prefix(&prefix));
        loop {
            let page = self.engine.view().page(INDEX, &range, Direction::Forward, PAGE)?;
            for (key, value) in &page {
                let hash = key.last_chunk().copied().ok_or_else(|| short("the hash of a key"))?;
                let key_use =
                    keys::idempotency::decode_value(value).map_err(damaged("an idempotency key"))?;
                found.entry(key_use.first).or_default().push(FrameKey { hash, key_use });
            }
            match page.last() {
                Some((last, _)) if page.len() == PAGE => range = KeyRange::after(last, &prefix),
                Some(_) | None => return Ok(found),
            }
        }
    }
}

fn read_version(engine: &Engine) -> Result<Option<u32>, StoreError> {
    let Some(value) = engine.get(INDEX, &keys::meta::format_version())? else { return Ok(None) };
    let mut reader = Reader::new(&value);
    reader.u32("number").map(Some).map_err(damaged("the format version"))
}

fn decode_commit((key, value): &Pair) -> Result<Commit, StoreError> {
    let last = keys::commit::decode(key).map_err(damaged("the key of a commit"))?;
    keys::commit::decode_value(last, value).map_err(damaged("a commit"))
}

fn damaged(what: &'static str) -> impl Fn(DecodeError) -> StoreError {
    move |source| StoreError::Damaged { what: what.to_owned(), source }
}

fn short(field: &'static str) -> StoreError {
    damaged("an idempotency key")(DecodeError::Short { field })
}
