//! What an append is sealed with.

use std::sync::Arc;

use super::{Planner, before, storage};
use crate::{
    append::AppendError,
    chain::Hash,
    keyring::{Found, ScopeId},
    new_event::NewEvent,
    recorded::EventHashes,
    seal::{self, Opened, Purpose, Seal},
    secret::SecretKey,
    store::{KeyUse, StoreError, Tail},
    stream_id::StreamId,
};

/// A new event, what it is indexed under, and what it is sealed with.
pub(super) struct Prepared {
    pub(super) event: NewEvent,
    pub(super) hashes: EventHashes,
    pub(super) scope_key: Option<Arc<SecretKey>>,
}

/// What a stream's events and idempotency keys are sealed with.
pub(super) enum StreamKey {
    /// Nothing: the registry.
    Plain,
    /// A key.
    Live(ScopeId, Arc<SecretKey>),
    /// A key that is made with the stream's next event.
    New(ScopeId),
}

/// The digest of an append, and what is stored of it.
pub(super) struct Digests {
    pub(super) plain: Hash,
    pub(super) keyed: Option<Hash>,
}

impl StreamKey {
    pub(super) fn digests(&self, plain: Hash) -> Digests {
        let keyed = match self {
            Self::Live(_, key) => Some(seal::derive(key, Purpose::Digest, &plain)),
            Self::Plain | Self::New(_) => None,
        };
        Digests { plain, keyed }
    }
}

impl Digests {
    pub(super) fn match_those_of(&self, key_use: &KeyUse) -> bool {
        if key_use.is_keyed { self.keyed == Some(key_use.digest) } else { self.plain == key_use.digest }
    }
}

impl Planner {
    /// The stream's key as it is before the append is accepted.
    pub(super) fn stream_key(&self, stream: &StreamId, scope: ScopeId) -> Result<StreamKey, AppendError> {
        let StreamId::Thread(_) = stream else {
            return Ok(StreamKey::Plain);
        };
        let found = self.store.keyring().find(scope).map_err(StoreError::Keys).map_err(storage(stream))?;
        match found {
            Found::Live(key) => Ok(StreamKey::Live(scope, key)),
            Found::Destroyed => Err(AppendError::Erased { stream: stream.clone(), run_id: None }),
            Found::Missing => Ok(StreamKey::New(scope)),
        }
    }

    /// Makes the stream's key if it is to have one and has none.
    pub(super) fn ready_key(
        &self,
        stream: &StreamId,
        key: StreamKey,
        tail: Option<Tail>,
    ) -> Result<StreamKey, AppendError> {
        let StreamKey::New(scope) = key else {
            return Ok(key);
        };
        if let Some(tail) = tail {
            self.check_in_plain(stream, tail).map_err(storage(stream))?;
        }
        let created = self.store.keyring().find_or_create(scope, scope);
        match created.map_err(StoreError::Keys).map_err(storage(stream))? {
            Some(key) => Ok(StreamKey::Live(scope, key)),
            None => Err(AppendError::Erased { stream: stream.clone(), run_id: None }),
        }
    }

    /// A stream that has events and no key is from before events were sealed. One with sealed
    /// events has lost its key, and a new key in its place would hide that.
    fn check_in_plain(&self, stream: &StreamId, tail: Tail) -> Result<(), StoreError> {
        let last = self.store.read_all(before(tail.position), 1)?;
        match last.first().map(|event| &event.seal) {
            Some(Seal::None) | None => Ok(()),
            Some(Seal::Opened(_) | Seal::Erased(_)) => Err(StoreError::KeyMissing { stream: stream.clone() }),
        }
    }

    /// Finds what each event is sealed with: the key of its run, or the stream's.
    pub(super) fn prepare(
        &self,
        stream: &StreamId,
        stream_key: &StreamKey,
        events: Vec<NewEvent>,
        hashes: Vec<EventHashes>,
    ) -> Result<Vec<Prepared>, AppendError> {
        let mut prepared: Vec<Prepared> = Vec::with_capacity(events.len());
        for (event, hashes) in events.into_iter().zip(hashes) {
            let scope_key = match (stream_key, hashes.run, prepared.last()) {
                (StreamKey::Plain | StreamKey::New(_), _, _) => None,
                (StreamKey::Live(_, key), None, _) => Some(Arc::clone(key)),
                (StreamKey::Live(..), run, Some(last)) if last.hashes.run == run => last.scope_key.clone(),
                (StreamKey::Live(thread, _), Some(run), _) => {
                    Some(self.run_key(stream, *thread, run, &event)?)
                }
            };
            prepared.push(Prepared { event, hashes, scope_key });
        }
        Ok(prepared)
    }

    /// Refuses events of runs that were erased.
    pub(super) fn check_runs(
        &self,
        stream: &StreamId,
        events: &[NewEvent],
        hashes: &[EventHashes],
    ) -> Result<(), AppendError> {
        let keyring = self.store.keyring();
        let is_erased = |hashes: &EventHashes| hashes.run.is_some_and(|run| keyring.is_destroyed(run));
        match events.iter().zip(hashes).find(|(_, hashes)| is_erased(hashes)) {
            Some((event, _)) => {
                Err(AppendError::Erased { stream: stream.clone(), run_id: event.scope.run_id.clone() })
            }
            None => Ok(()),
        }
    }

    fn run_key(
        &self,
        stream: &StreamId,
        thread: ScopeId,
        run: ScopeId,
        event: &NewEvent,
    ) -> Result<Arc<SecretKey>, AppendError> {
        let key = self.store.keyring().find_or_create(thread, run);
        key.map_err(StoreError::Keys)
            .map_err(storage(stream))?
            .ok_or_else(|| AppendError::Erased { stream: stream.clone(), run_id: event.scope.run_id.clone() })
    }

    /// A key of its own for a new event.
    pub(super) fn new_seal(&self, scope_key: &SecretKey, event_type: &str) -> Opened {
        let nonce = self.store.keyring().next_nonce();
        let key = seal::body_key(scope_key, &nonce);
        Opened { nonce, type_tag: seal::type_tag(scope_key, event_type), key }
    }
}
