//! `remit serve`.

use std::net::SocketAddr;

use anyhow::Context as _;
use api::ApiState;
use eventlog::Health;
use runtime::config::{Config, Entry};
use tokio::{net::TcpListener, sync::watch};

use crate::{
    args::ServeArguments,
    context::{Context, flag},
    failure::{Exit, Failure},
    host::{self, Host},
    interrupt::Interrupts,
    render,
    source::open_views_as_they_are,
};

/// Serves until it is told to stop. Runs that are at work then go on at the next start.
pub(super) async fn serve(context: &Context, arguments: &ServeArguments) -> anyhow::Result<Exit> {
    context.here_only("serve")?;
    let flags = arguments.listen.map(|listen| flag("server.listen", "--listen", listen.to_string()));
    let loaded = context.config(flags.into_iter().collect())?;
    let (config, settings) = (&loaded.config, loaded.entries());
    let models = host::models(config)?;
    // The signals are heard before anything is opened, so that everything is closed again.
    let mut interrupts = Interrupts::new().context("could not listen for signals")?;
    let listener = listen(config.server.listen).await?;
    let host = Host::open(config.clone(), models).await?;
    let (stop, stopping) = watch::channel(false);
    let serving = serve_on(context, &host, listener, (config, settings), stopping);
    until_stopped(context, serving, &mut interrupts, &stop).await?;
    host.close().await;
    Ok(Exit::Done)
}

/// The first signal ends the server in good order, the second at once.
async fn until_stopped(
    context: &Context,
    serving: impl Future<Output = anyhow::Result<()>>,
    interrupts: &mut Interrupts,
    stop: &watch::Sender<bool>,
) -> anyhow::Result<()> {
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        outcome = &mut serving => return outcome,
        () = interrupts.next() => {}
    }
    context.output.note("stopping; unfinished runs go on when the server starts again");
    stop.send_replace(true);
    tokio::select! {
        outcome = serving => outcome,
        () = interrupts.next() => {
            Err(Failure::new(Exit::Failed, "stopped at once, without closing the log").into())
        }
    }
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let refused = match TcpListener::bind(address).await {
        Ok(listener) => return Ok(listener),
        Err(error) => error,
    };
    let failure = if refused.kind() == std::io::ErrorKind::AddrInUse {
        let failure = Failure::new(Exit::Refused, format!("{address} is in use by another process"));
        failure.hint("name another address with --listen")
    } else {
        Failure::new(Exit::Failed, format!("could not listen on {address}"))
    };
    Err(anyhow::Error::new(refused).context(failure))
}

/// Says which managed definitions no lead can see, because the configuration or Remit itself has a type of
/// their name.
async fn tell_hidden(context: &Context, host: &Host) -> anyhow::Result<()> {
    let managed =
        host.runtime.managed_definitions(None).await.context("could not read the managed definitions")?;
    for one in managed.iter().filter(|one| one.kept.is_enabled) {
        if let Some(origin) = one.hidden_by {
            let (name, source) = (&one.kept.name, render::agents::origin(origin));
            let words = format!(
                "warning: leads do not see the managed definition {name}: a {source} type has its name"
            );
            context.output.message(&words);
        }
    }
    Ok(())
}

async fn serve_on(
    context: &Context,
    host: &Host,
    listener: TcpListener,
    (config, settings): (&Config, Vec<Entry>),
    mut stopping: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let address = listener.local_addr().context("could not find out the address")?;
    // They may have much to catch up with. Meanwhile a query that they cannot answer yet is told where
    // they are, and everything that needs no view is served.
    let projections = open_views_as_they_are(&host.data, &host.log)?;
    let mut until = stopping.clone();
    let follower = projections.follow(async move { drop(until.wait_for(|stop| *stop).await) });
    let resumed = host.runtime.recover(config.recovery).await.context("could not resume unfinished runs")?;
    let url = format!("http://{address}");
    host.log.announce(&url).context("could not note the address in the data folder")?;
    for (thread_id, run_id) in resumed {
        context.output.message(&format!("resumed run {run_id} of thread {thread_id}"));
    }
    tell_hidden(context, host).await?;
    context.output.message(&format!("serving {} on {url}", host.data.display()));
    if !address.ip().is_loopback() {
        context.output.message(
            "warning: there is no authentication yet: whoever reaches this address can run agents with tools, read every \
             thread and erase it",
        );
    }
    let state = ApiState {
        log: host.log.clone(),
        projections,
        runtime: host.runtime.clone(),
        prices: config.pricing.prices(),
        config: settings,
        listen: address.ip(),
    };
    let log = host.log.clone();
    let shutdown = async move {
        // A log that takes no more writes is of no use to anybody: the next start decides.
        tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => {}
            _ = log.ended() => {}
        }
    };
    api::serve(listener, state, shutdown).await.context("the server stopped")?;
    if let Health::Poisoned { reason } = host.log.health() {
        let what = format!("the log refuses writes since one failed: {reason}");
        return Err(Failure::new(Exit::Failed, what)
            .hint("free what it needs, and start the server again")
            .into());
    }
    host.runtime.shutdown().await;
    follower.await.context("the views stopped by a defect")
}
