//! Makes things happen: agents, models, tools, delegation.

pub mod models;
