//! One integration binary: behaviour across crates.

mod architecture;
mod contracts;
#[cfg(test)]
mod end_to_end;
#[cfg(test)]
mod erasure;
#[cfg(test)]
mod index;
