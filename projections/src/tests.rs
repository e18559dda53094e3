//! The views against a plain model, over random histories and under failures.

mod erasing;
mod failures;
mod feeds;
mod following;
mod history;
mod model;
mod paging;
mod payloads;
mod properties;
mod rebuilding;
mod sums;

use eventlog::{EventLog, engine::Engine};

use crate::{
    Projections,
    store::{KEYSPACES, Store},
    views,
};

fn store() -> Store {
    Store::new(Engine::in_memory(&KEYSPACES))
}

/// The views over a store that outlives them, as after a restart.
fn open(store: &Store, log: &EventLog) -> Projections {
    Projections::with_store(store.clone(), log.clone(), views::all()).expect("the views open")
}
