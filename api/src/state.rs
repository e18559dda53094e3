//! What the routes work with.

use std::{net::IpAddr, sync::Arc};

use domain::pricing::Prices;
use eventlog::EventLog;
use projections::Projections;
use runtime::{Runtime, config::Entry};

use crate::{
    hosts::Hosts,
    ingest::Gates,
    shutdown::{Shutdown, ShutdownSwitch},
    streams::Streams,
};

/// What the server is made of.
#[derive(Clone)]
pub struct ApiState {
    /// The truth.
    pub log: EventLog,
    /// What has happened, arranged for reading.
    pub projections: Projections,
    /// What makes things happen.
    pub runtime: Runtime,
    /// What the tokens of models cost.
    pub prices: Prices,
    /// The configuration that is in force, without secrets.
    pub config: Vec<Entry>,
    /// Where the server listens: requests that name another host are refused.
    pub listen: IpAddr,
}

/// What a handler gets: the state, and what the requests of one server share.
#[derive(Clone)]
pub(crate) struct Server(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) log: EventLog,
    pub(crate) projections: Projections,
    pub(crate) runtime: Runtime,
    pub(crate) prices: Prices,
    pub(crate) config: Vec<Entry>,
    pub(crate) hosts: Hosts,
    pub(crate) ingest_gates: Gates,
    pub(crate) streams: Streams,
    pub(crate) shutdown: Shutdown,
    pub(crate) switch: ShutdownSwitch,
}

impl Server {
    pub(crate) fn new(state: ApiState) -> Self {
        let (switch, shutdown) = ShutdownSwitch::new();
        let ApiState { log, projections, runtime, prices, config, listen } = state;
        let (hosts, ingest_gates, streams) = (Hosts { listen }, Gates::new(), Streams::new());
        Self(Arc::new(Inner {
            log,
            projections,
            runtime,
            prices,
            config,
            hosts,
            ingest_gates,
            streams,
            shutdown,
            switch,
        }))
    }
}

impl std::ops::Deref for Server {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
