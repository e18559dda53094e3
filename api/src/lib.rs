//! HTTP in, HTTP out: routes, server-sent events, errors.
