//! What has happened, arranged for reading.
