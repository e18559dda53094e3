//! One file per command: read the arguments, ask a library, print.

mod agents;
mod backup;
mod bench;
mod blob;
mod cancel;
mod caps;
mod card;
mod card_replay;
mod demo;
mod doctor;
mod erase;
mod events;
mod export;
mod import;
pub(crate) mod keys;
mod ledger;
mod messages;
pub(crate) mod models;
pub(crate) mod models_check;
mod rebuild;
mod receipts;
mod replay;
mod restore;
mod run;
mod runs;
mod serve;
mod tail;
mod threads;
mod usage;
mod verify;
mod verify_export;

use crate::{args::Command, context::Context, failure::Exit};

/// Does what was asked. An error has its own exit code; what was done may still have ended badly.
pub(crate) async fn perform(context: &Context, command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Demo(arguments) => demo::demo(context, &arguments).await,
        Command::Run(arguments) => run::run(context, arguments).await,
        Command::Serve(arguments) => serve::serve(context, &arguments).await,
        Command::Threads(arguments) => threads::threads(context, &arguments).await,
        Command::Runs(arguments) => runs::runs(context, &arguments).await,
        Command::Events(arguments) => events::events(context, arguments).await,
        Command::Ledger(arguments) => ledger::ledger(context, &arguments).await,
        Command::Card(arguments) => card::card(context, &arguments).await,
        Command::Receipts(arguments) => receipts::receipts(context, &arguments).await,
        Command::Blob(arguments) => blob::blob(context, arguments).await,
        Command::Caps(arguments) => caps::caps(context, &arguments).await,
        Command::Messages(arguments) => messages::messages(context, &arguments).await,
        Command::Usage(arguments) => usage::usage(context, &arguments).await,
        Command::Agents(arguments) => agents::agents(context, arguments).await,
        Command::Models(arguments) => models::models(context, arguments).await,
        Command::Keys(arguments) => keys::keys(context, arguments).await,
        Command::Tail(arguments) => tail::tail(context, arguments).await,
        Command::Replay(arguments) => replay::replay(context, &arguments).await,
        Command::Verify(arguments) => verify::verify(context, arguments).await,
        Command::Doctor(arguments) => doctor::doctor(context, &arguments).await,
        Command::Export(arguments) => export::export(context, arguments).await,
        Command::Import(arguments) => import::import(context, arguments).await,
        Command::Backup(arguments) => backup::backup(context, arguments).await,
        Command::Restore(arguments) => restore::restore(context, arguments).await,
        Command::Rebuild(arguments) => rebuild::rebuild(context, arguments).await,
        Command::Cancel(arguments) => cancel::cancel(context, &arguments).await,
        Command::Bench(arguments) => bench::bench(context, &arguments).await,
        Command::Erase(arguments) => erase::erase(context, arguments).await,
    }
}
