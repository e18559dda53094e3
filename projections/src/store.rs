//! The folder of the views: rows by typed key, read from one moment, written all at once.

#[cfg(test)]
use std::sync::atomic::AtomicU64;
use std::{
    ops::ControlFlow,
    sync::{Arc, PoisonError, RwLock},
};

use eventlog::{
    ReadError, Sealer,
    engine::{Access, Batch, Direction, Durability, Engine, EngineError, KeyRange, Keyspace, Pair, View},
};

use crate::{
    keys::{KeyKind, Row, RowKey, moment_key},
    sealing::{Origin, Sealing},
};

/// Rows of views. Most reads are of neighbours: the parts of a card, the runs of a thread.
pub(crate) const ROWS: Keyspace = Keyspace { name: "rows", access: Access::Scanned };
/// The other place for them.
const OTHER_ROWS: Keyspace = Keyspace { name: "other_rows", access: Access::Scanned };
/// Both places.
pub(crate) const KEYSPACES: [Keyspace; 2] = [ROWS, OTHER_ROWS];

/// One of the two places that the rows of a view may be in. A view that is made again is made in
/// the other one, while this one answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Where a view is first made.
    First,
    /// Where it is made again.
    Second,
}

impl Side {
    pub(crate) const BOTH: [Self; 2] = [Self::First, Self::Second];

    #[must_use]
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    pub(crate) const fn rows(self) -> Keyspace {
        match self {
            Self::First => ROWS,
            Self::Second => OTHER_ROWS,
        }
    }
}

/// On which side the rows of each kind answer.
#[derive(Clone, Copy)]
struct Answering([Side; 256]);

impl Answering {
    fn set(&mut self, kinds: &[KeyKind], side: Side) {
        for kind in kinds {
            if let Some(of_kind) = self.0.get_mut(*kind as usize) {
                *of_kind = side;
            }
        }
    }

    fn of(&self, kind: KeyKind) -> Side {
        self.0.get(kind as usize).copied().unwrap_or(Side::First)
    }
}

/// Why rows of a view could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// The storage engine failed.
    #[error("could not use the views' storage")]
    Store(#[from] EngineError),
    /// A row is not what its key promises.
    #[error(
        "a {kind} row of the views is damaged; delete the data folder's `views` while nothing runs; they are made again from the log"
    )]
    Damaged {
        /// What kind of row.
        kind: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A key is not as its kind promises.
    #[error(
        "a {kind} key of the views is damaged; delete the data folder's `views` while nothing runs; they are made again from the log"
    )]
    DamagedKey {
        /// What kind of key.
        kind: String,
    },
    /// A row is not what was sealed under its key.
    #[error(
        "a {kind} row of the views is damaged: it does not open; delete the data folder's `views` while nothing runs; they are made again from the log"
    )]
    Unopened {
        /// What kind of row.
        kind: String,
    },
    /// The log could not be read: for rows as they were, or to make rows again that a run had a part in
    /// which was erased.
    #[error("could not read the log for rows of a thread")]
    Log(#[source] ReadError),
    /// A row, or a part of one, cannot be written as JSON.
    #[error("could not write a row of the views as JSON")]
    Unencodable(#[source] serde_json::Error),
}

impl RowError {
    pub(crate) fn damaged(kind: KeyKind, source: serde_json::Error) -> Self {
        Self::Damaged { kind: format!("{kind:?}"), source }
    }

    /// Whether making the view again would help.
    pub(crate) const fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } | Self::DamagedKey { .. } | Self::Unopened { .. } => true,
            Self::Store(_) | Self::Log(_) | Self::Unencodable(_) => false,
        }
    }
}

/// The rows of all views. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Store {
    engine: Engine,
    sealing: Sealing,
    answering: Arc<RwLock<Answering>>,
    /// Commits that still pass before all fail.
    #[cfg(test)]
    pub(crate) commits_until_fault: Arc<AtomicU64>,
}

impl Store {
    pub(crate) fn new(engine: Engine) -> Self {
        Self {
            engine,
            sealing: Sealing::Plain,
            answering: Arc::new(RwLock::new(Answering([Side::First; 256]))),
            #[cfg(test)]
            commits_until_fault: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    /// The same rows, sealed with the keys of a log.
    #[must_use]
    pub(crate) fn sealed_with(self, sealer: Sealer) -> Self {
        Self { sealing: Sealing::With(sealer), ..self }
    }

    /// What rows are sealed with.
    pub(crate) const fn sealing(&self) -> &Sealing {
        &self.sealing
    }

    /// Puts a row under a key into a batch.
    pub(crate) fn put<K: RowKey>(
        &self,
        batch: &mut Batch,
        side: Side,
        key: &K,
        row: &K::Row,
    ) -> Result<(), RowError> {
        self.put_of(batch, side, key, row, Origin::Thread)
    }

    /// The same for a row that this origin made.
    pub(crate) fn put_of<K: RowKey>(
        &self,
        batch: &mut Batch,
        side: Side,
        key: &K,
        row: &K::Row,
        origin: Origin,
    ) -> Result<(), RowError> {
        let (key, row) = (key.encode(), row.to_bytes().map_err(RowError::Unencodable)?);
        let sealed = self.sealing.seal(&key, origin, row);
        batch.put(side.rows(), key, sealed);
        Ok(())
    }

    /// The rows as of now. Keep it only while reading, and never two at once.
    pub(crate) fn snapshot(&self) -> Snapshot<'_> {
        let answering = self.answering.read().unwrap_or_else(PoisonError::into_inner);
        Snapshot { view: self.engine.view(), sealing: &self.sealing, answering: *answering }
    }

    /// Says on which side the rows of these kinds answer, before anybody asks.
    pub(crate) fn set_answering(&self, kinds: &[KeyKind], side: Side) {
        let mut answering = self.answering.write().unwrap_or_else(PoisonError::into_inner);
        answering.set(kinds, side);
    }

    /// Commits, and from that moment on lets the rows of these kinds answer from these sides. Nobody
    /// sees the one without the other.
    pub(crate) fn commit_and_answer(
        &self,
        batch: Batch,
        sides: &[(&'static [KeyKind], Side)],
    ) -> Result<(), RowError> {
        let mut answering = self.answering.write().unwrap_or_else(PoisonError::into_inner);
        self.commit(batch)?;
        for (kinds, side) in sides {
            answering.set(kinds, *side);
        }
        Ok(())
    }

    /// Writes all or nothing. Buffered is enough: what power loss takes is the newest commits,
    /// rows and checkpoint together, and the log gives them again.
    pub(crate) fn commit(&self, batch: Batch) -> Result<(), RowError> {
        #[cfg(test)]
        self.injected_fault()?;
        Ok(self.engine.commit(batch, Durability::Buffered)?)
    }

    #[cfg(test)]
    fn injected_fault(&self) -> Result<(), RowError> {
        use std::sync::atomic::Ordering;
        let left = self
            .commits_until_fault
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| Some(left.saturating_sub(1)));
        match left {
            Ok(0) => {
                Err(RowError::Store(EngineError { action: "commit".into(), source: "injected fault".into() }))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// The rows at one moment.
pub(crate) struct Snapshot<'a> {
    view: Box<dyn View + 'a>,
    sealing: &'a Sealing,
    answering: Answering,
}

impl Snapshot<'_> {
    /// The side on which the rows of a kind answer.
    pub(crate) fn side_of(&self, kind: KeyKind) -> Side {
        self.answering.of(kind)
    }

    /// The row under a key.
    pub(crate) fn get<K: RowKey>(&self, key: &K) -> Result<Option<K::Row>, RowError> {
        self.get_on(self.answering.of(K::KIND), key)
    }

    /// The row under a key on a side.
    pub(crate) fn get_on<K: RowKey>(&self, side: Side, key: &K) -> Result<Option<K::Row>, RowError> {
        Ok(self.get_encoded(side, K::KIND, &key.encode())?.map(|(row, _)| row))
    }

    /// The row under a key of this kind that was encoded before, and what made it.
    pub(crate) fn get_encoded<R: Row>(
        &self,
        side: Side,
        kind: KeyKind,
        key: &[u8],
    ) -> Result<Option<(R, Origin)>, RowError> {
        match self.view.get(side.rows(), key)? {
            Some(sealed) => self.open_row(kind, key, &sealed),
            None => Ok(None),
        }
    }

    /// None for a row of an erased thread or run.
    fn open_row<R: Row>(
        &self,
        kind: KeyKind,
        key: &[u8],
        sealed: &[u8],
    ) -> Result<Option<(R, Origin)>, RowError> {
        let Some((row, origin)) = self.sealing.open(kind, key, sealed)? else { return Ok(None) };
        let row = R::from_bytes(&row).map_err(|source| RowError::damaged(kind, source))?;
        Ok(Some((row, origin)))
    }

    /// The first `limit` rows of a range with their keys. Rows of what was erased do not count.
    pub(crate) fn page<K: RowKey>(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(K, K::Row)>, RowError> {
        self.page_on(self.answering.of(K::KIND), range, direction, limit)
    }

    /// The same, on a side.
    pub(crate) fn page_on<K: RowKey>(
        &self,
        side: Side,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(K, K::Row)>, RowError> {
        let (mut rows, mut failure) = (Vec::new(), None);
        if limit == 0 {
            return Ok(rows);
        }
        self.view.scan(side.rows(), range, direction, &mut |key, sealed| {
            match self.open_keyed(key, sealed) {
                Ok(row) => rows.extend(row),
                Err(error) => failure = Some(error),
            }
            if rows.len() < limit && failure.is_none() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        failure.map_or(Ok(rows), Err)
    }

    fn open_keyed<K: RowKey>(&self, key: &[u8], sealed: &[u8]) -> Result<Option<(K, K::Row)>, RowError> {
        let Some((row, _)) = self.open_row(K::KIND, key, sealed)? else { return Ok(None) };
        let damaged = || RowError::DamagedKey { kind: format!("{:?}", K::KIND) };
        Ok(Some((K::decode(key).ok_or_else(damaged)?, row)))
    }

    /// The first `limit` keys of a range on a side, as they are.
    pub(crate) fn keys(&self, side: Side, range: &KeyRange, limit: usize) -> Result<Vec<Vec<u8>>, RowError> {
        let mut keys = Vec::new();
        self.view.scan(side.rows(), range, Direction::Forward, &mut |key, _| {
            keys.push(key.to_vec());
            if keys.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(keys)
    }

    /// The newest kept state of a row that is not newer than a seq.
    pub(crate) fn moment<K: RowKey>(&self, key: &K, seq: u64) -> Result<Option<K::Row>, RowError> {
        let Some(kind) = K::MOMENTS else { return Ok(None) };
        let key = key.encode();
        let range = KeyRange::between(&moment_key(kind, &key, 0), &moment_key(kind, &key, seq));
        let side = self.answering.of(kind);
        let page = self.view.page(side.rows(), &range, Direction::Backward, 1)?;
        let Some((encoded, sealed)) = page.into_iter().next() else { return Ok(None) };
        Ok(self.open_row(kind, &encoded, &sealed)?.map(|(row, _)| row))
    }

    /// Whether there is a row under a key that no longer opens, because whose it is was erased.
    pub(crate) fn is_gone(&self, side: Side, kind: KeyKind, key: &[u8]) -> Result<bool, RowError> {
        match self.view.get(side.rows(), key)? {
            Some(sealed) => Ok(self.sealing.open(kind, key, &sealed)?.is_none()),
            None => Ok(false),
        }
    }

    /// The first `limit` rows of a kind behind a key on a side, each as it was sealed. Gives
    /// no row of what was erased, and the last key that was looked at, if there may be more.
    pub(crate) fn opened(
        &self,
        side: Side,
        kind: KeyKind,
        range: &KeyRange,
        limit: usize,
    ) -> Result<(Vec<Pair>, Option<Vec<u8>>), RowError> {
        let page = self.view.page(side.rows(), range, Direction::Forward, limit)?;
        let last = (page.len() == limit).then(|| page.last().map(|(key, _)| key.clone())).flatten();
        let mut rows = Vec::with_capacity(page.len());
        for (key, sealed) in page {
            if let Some((row, _)) = self.sealing.open(kind, &key, &sealed)? {
                rows.push((key, row));
            }
        }
        Ok((rows, last))
    }
}
