//! The views against a plain model, over random histories and under failures.

mod agreement;
mod erasing;
mod failures;
#[expect(clippy::wildcard_enum_match_arm, reason = "a plain model names the few facts that it is about")]
mod feeds;
mod following;
mod history;
#[expect(clippy::wildcard_enum_match_arm, reason = "a plain model names the few facts that it is about")]
mod model;
mod paging;
mod payloads;
mod properties;
mod rebuilding;
#[expect(clippy::wildcard_enum_match_arm, reason = "a plain model names the few facts that it is about")]
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
