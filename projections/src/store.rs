//! The folder of the views: rows by typed key, read from one moment, written all at once.

#[cfg(test)]
use std::sync::{Arc, atomic::AtomicU64};

use eventlog::{
    ReadError, Sealer,
    engine::{Access, Batch, Direction, Durability, Engine, EngineError, KeyRange, Keyspace, View},
};

use crate::{
    keys::{KeyKind, Row, RowKey},
    sealing::{Origin, Sealing},
};

/// All rows of all views. Most reads are of neighbours: the parts of a card, the runs of a thread.
pub(crate) const ROWS: Keyspace = Keyspace { name: "rows", access: Access::Scanned };

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
    /// The log could not be read to make rows again that a run had a part in which was erased.
    #[error("could not read the log to make rows of a thread again")]
    Log(#[source] ReadError),
    /// A row cannot be written as JSON.
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
    /// Commits that still pass before all fail.
    #[cfg(test)]
    pub(crate) commits_until_fault: Arc<AtomicU64>,
}

impl Store {
    pub(crate) fn new(engine: Engine) -> Self {
        Self {
            engine,
            sealing: Sealing::Plain,
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
    pub(crate) fn put<K: RowKey>(&self, batch: &mut Batch, key: &K, row: &K::Row) -> Result<(), RowError> {
        self.put_of(batch, key, row, Origin::Thread)
    }

    /// The same for a row that this origin made.
    pub(crate) fn put_of<K: RowKey>(
        &self,
        batch: &mut Batch,
        key: &K,
        row: &K::Row,
        origin: Origin,
    ) -> Result<(), RowError> {
        let (key, row) = (key.encode(), serde_json::to_vec(row).map_err(RowError::Unencodable)?);
        let sealed = self.sealing.seal(&key, origin, row);
        batch.put(ROWS, key, sealed);
        Ok(())
    }

    /// The rows as of now. Keep it only while reading, and never two at once.
    pub(crate) fn snapshot(&self) -> Snapshot<'_> {
        Snapshot { view: self.engine.view(), sealing: &self.sealing }
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
}

impl Snapshot<'_> {
    /// The row under a key.
    pub(crate) fn get<K: RowKey>(&self, key: &K) -> Result<Option<K::Row>, RowError> {
        Ok(self.get_encoded(K::KIND, &key.encode())?.map(|(row, _)| row))
    }

    /// The row under a key of this kind that was encoded before, and what made it.
    pub(crate) fn get_encoded<R: Row>(
        &self,
        kind: KeyKind,
        key: &[u8],
    ) -> Result<Option<(R, Origin)>, RowError> {
        match self.view.get(ROWS, key)? {
            Some(sealed) => self.open_row(kind, key, sealed),
            None => Ok(None),
        }
    }

    /// None for a row of an erased thread or run.
    fn open_row<R: Row>(
        &self,
        kind: KeyKind,
        key: &[u8],
        sealed: Vec<u8>,
    ) -> Result<Option<(R, Origin)>, RowError> {
        let Some((row, origin)) = self.sealing.open(kind, key, sealed)? else { return Ok(None) };
        let row = serde_json::from_slice(&row).map_err(|source| RowError::damaged(kind, source))?;
        Ok(Some((row, origin)))
    }

    /// The first `limit` rows of a range with their keys. Rows of what was erased do not count.
    pub(crate) fn page<K: RowKey>(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(K, K::Row)>, RowError> {
        let (mut rows, mut rest) = (Vec::new(), range.clone());
        loop {
            let wanted = limit - rows.len();
            let page = self.view.page(ROWS, &rest, direction, wanted)?;
            let last = (page.len() == wanted).then(|| page.last().map(|(key, _)| key.clone())).flatten();
            for (encoded, sealed) in page {
                let Some((row, _)) = self.open_row(K::KIND, &encoded, sealed)? else { continue };
                let damaged = || RowError::DamagedKey { kind: format!("{:?}", K::KIND) };
                rows.push((K::decode(&encoded).ok_or_else(damaged)?, row));
            }
            match last {
                Some(last) if rows.len() < limit => rest = rest.beyond(&last, direction),
                Some(_) | None => return Ok(rows),
            }
        }
    }

    /// The first `limit` keys of a range, as they are.
    pub(crate) fn keys(&self, range: &KeyRange, limit: usize) -> Result<Vec<Vec<u8>>, RowError> {
        let pairs = self.view.page(ROWS, range, Direction::Forward, limit)?;
        Ok(pairs.into_iter().map(|(key, _)| key).collect())
    }
}
