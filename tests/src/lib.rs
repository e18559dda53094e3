//! Behaviour across crates: end to end, crash, conformance, architecture.
