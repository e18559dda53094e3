//! Token counts.

use contracts::wire::usage as wire;
use domain::usage::Usage;

/// Counts as they were reported.
pub(crate) const fn to_wire(usage: Usage) -> wire::Usage {
    wire::Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        total_tokens: usage.total_tokens,
        cache_read_tokens: usage.cache_read_tokens,
    }
}
