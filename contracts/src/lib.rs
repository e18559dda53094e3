//! What the outside relies on: JSON contracts and wire types.
