//! One integration binary: behaviour across crates.

mod contracts;
