//! Pages of a list.

use serde::{Deserialize, Serialize};

/// One page of a list, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    /// The rows.
    pub data: Vec<T>,
    /// Whether there are more in the direction of reading.
    pub has_more: bool,
    /// Where the page before this one ends; only where there is one, and only on backward pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before_seq: Option<u64>,
}
