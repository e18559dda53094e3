//! Makes things happen: agents, models, tools, delegation.
