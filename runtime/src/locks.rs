//! One lock for each key that somebody holds or waits for: work on different threads goes side by side.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::OwnedMutexGuard;

/// From this many entries on, those that nobody holds any more are looked for.
const PRUNED_FROM: usize = 256;

type Held = Weak<tokio::sync::Mutex<()>>;

/// Locks by key. Clones are the same locks.
#[derive(Debug)]
pub(crate) struct Locks<K>(Arc<Mutex<HashMap<K, Held>>>);

impl<K> Clone for Locks<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> Default for Locks<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Hash + Eq + Clone> Locks<K> {
    /// Waits for the key's lock, first come first served, and holds it until the guard is dropped.
    pub(crate) async fn lock(&self, key: &K) -> OwnedMutexGuard<()> {
        let lock = self.of(key);
        lock.lock_owned().await
    }

    fn of(&self, key: &K) -> Arc<tokio::sync::Mutex<()>> {
        // The map is whole between any two statements that could panic.
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = held.get(key).and_then(Weak::upgrade) {
            return lock;
        }
        if held.len() >= PRUNED_FROM {
            held.retain(|_, lock| lock.strong_count() > 0);
        }
        let lock = Arc::default();
        held.insert(key.clone(), Arc::downgrade(&lock));
        lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_waits_for_itself_alone() {
        let locks = Locks::<u32>::default();
        let one = locks.lock(&1).await;
        let mut again = Box::pin(locks.lock(&1));
        assert!(futures::poll!(again.as_mut()).is_pending());
        drop(locks.lock(&2).await);
        drop(one);
        drop(again.await);
    }

    #[tokio::test]
    async fn what_nobody_holds_is_forgotten_and_what_somebody_holds_is_not() {
        let locks = Locks::<u32>::default();
        let held = locks.lock(&0).await;
        for key in 1..1_000 {
            drop(locks.lock(&key).await);
        }
        assert!(locks.0.lock().unwrap().len() <= PRUNED_FROM);
        let mut again = Box::pin(locks.lock(&0));
        assert!(futures::poll!(again.as_mut()).is_pending());
        drop(held);
        again.await;
    }
}
