//! How answers look to people. Values in, text out: nothing here reads, waits or prints.

pub(crate) mod agents;
pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod caps;
pub(crate) mod card;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod keys;
pub(crate) mod ledger;
pub(crate) mod messages;
pub(crate) mod models;
pub(crate) mod printable;
pub(crate) mod rebuild;
pub(crate) mod receipts;
pub(crate) mod replay;
pub(crate) mod runs;
pub(crate) mod short_id;
pub(crate) mod status;
pub(crate) mod table;
pub(crate) mod tail;
pub(crate) mod threads;
pub(crate) mod tone;
pub(crate) mod units;
pub(crate) mod usage;
pub(crate) mod verify;
mod width;

#[cfg(test)]
pub(crate) mod samples;
