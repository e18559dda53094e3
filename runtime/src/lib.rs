//! Makes things happen: agents, models, tools, delegation.

pub mod config;
pub mod models;
pub mod sandbox;
pub mod tools;
