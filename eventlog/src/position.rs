//! The two counts of the log: the place in the whole log, and the place in one stream.
//!
//! They are different types, so that a cursor of one cannot stand where the other is expected.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            /// Before the first: as a cursor it means "from the beginning".
            pub const ZERO: Self = Self(0);

            /// Wraps a count that a caller gave or the log holds.
            pub const fn new(count: u64) -> Self {
                Self(count)
            }

            /// The plain number.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The one after it.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl From<u64> for $name {
            fn from(count: u64) -> Self {
                Self(count)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

counts! {
    /// A place in the whole log: 1 for the first event, no gap.
    Position;
    /// A place in one stream: 1 for its first event, no gap.
    Seq;
}
