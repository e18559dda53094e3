//! One integration binary: behaviour across crates.

mod architecture;
mod contracts;
