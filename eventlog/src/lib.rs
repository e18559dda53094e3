//! Events in order, durable, for ever.
