//! One integration binary: behaviour across crates.
