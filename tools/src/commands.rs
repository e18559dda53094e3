//! One file per command: read the arguments, ask a library, print.

mod card;
mod demo;
mod erase;
mod events;
mod ledger;
mod receipts;
mod run;
mod runs;
mod serve;
mod threads;

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
        Command::Erase(arguments) => erase::erase(context, arguments).await,
    }
}
