//! One integration binary: behaviour across crates.

mod architecture;
mod contracts;
#[cfg(test)]
mod crash_loop;
#[cfg(test)]
mod end_to_end;
#[cfg(test)]
mod erasure;
#[cfg(test)]
mod full_disk;
#[cfg(test)]
mod histories;
#[cfg(test)]
mod index;
#[cfg(test)]
mod real_model;
#[cfg(test)]
mod text;

/// The command that was built together with these tests.
#[cfg(test)]
fn remit() -> tests::process::Remit {
    tests::process::Remit::new(env!("CARGO_BIN_EXE_remit-under-test"))
}
