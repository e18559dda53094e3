//! The routes together, over a log in memory and a runtime that plays scenarios.

mod app;
mod backups;
mod blobs;
mod cancelling;
mod delegations;
mod edges;
mod erasing;
mod events;
mod exports;
mod ingest;
mod large_pages;
mod lists;
mod managed;
mod messages;
mod metrics;
mod moments;
mod order;
mod projections;
mod replays;
mod runs;
mod slow_client;
mod streams;
mod threads;
mod usage;
