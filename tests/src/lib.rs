//! What the tests of behaviour across crates stand on: a scripted model server, the real server in
//! this process, the real command as a process, and slow, obvious models to compare with.
//!
//! Nothing here is for production. A broken assumption panics at the place where it was made.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "support for tests: what cannot go on fails the test, and says where"
)]

pub mod client;
pub mod folders;
pub mod invariants;
pub mod plain_fold;
pub mod process;
pub mod quick_pauses;
pub mod record;
pub mod seed;
pub mod server;
pub mod sse;
pub mod stub_model;
pub mod volume;
pub mod wait;
