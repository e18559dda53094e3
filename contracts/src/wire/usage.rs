//! Token counts.

use serde::{Deserialize, Serialize};

/// Tokens as the provider reported them; a usage that nobody reported is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens that were sent.
    pub input_tokens: u64,
    /// Tokens that came back.
    pub output_tokens: u64,
    /// Both together, or the provider's own total.
    pub total_tokens: u64,
    /// Tokens of the input that the provider had cached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
}
