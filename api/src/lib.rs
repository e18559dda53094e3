//! HTTP in, HTTP out: routes, server-sent events, errors.
//!
//! Requests become types at the edge, and what the log, the views and the runtime answer becomes
//! the wire's types on the way out. Nothing is decided or stored here.

mod connection;
mod convert;
mod error;
mod extract;
mod hosts;
mod ingest;
mod on_disconnect;
mod paths;
mod reads;
mod record_stream;
pub mod records;
mod router;
mod routes;
mod serve;
mod shutdown;
mod sse;
mod state;
mod streams;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use self::{router::router, serve::serve, state::ApiState};
