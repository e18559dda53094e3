//! The `remit` command: thin subcommands over the libraries.
//!
//! Each subcommand reads its arguments, asks a library, and prints: data on standard output,
//! messages on standard error. What has happened is never decided here.

mod args;
mod commands;
mod confirmation;
mod context;
mod diagnosis;
mod failure;
mod host;
mod interrupt;
mod migration;
mod opening;
mod output;
mod progress;
mod remote_run;
mod render;
mod screen;
mod select;
mod source;
mod sse_client;
mod work_bar;

use std::{
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use clap::Parser as _;
use tracing_subscriber::EnvFilter;

use crate::{
    args::Arguments,
    context::Context,
    failure::{Exit, exit_of, explain},
    render::tone::{Tone, paint},
};

/// Names what is logged to standard error, in the syntax of `tracing`; warnings when it is not set.
const LOG_VARIABLE: &str = "REMIT_LOG";

/// Does what the command line says.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // A stream that is gone cannot be told; the exit code still says it.
            drop(error.print());
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8));
        }
    };
    log_to_stderr();
    let context = Context::new(arguments.global);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            context.output.message(&format!("error: could not start: {error}"));
            return ExitCode::from(Exit::Failed as u8);
        }
    };
    let outcome = runtime.block_on(commands::perform(&context, arguments.command));
    // Whoever gave up with a second Ctrl-C does not wait for what is still at work.
    runtime.shutdown_background();
    let exit = outcome.unwrap_or_else(|error| {
        let exit = exit_of(&error);
        if exit != Exit::Done {
            context.output.message(&paint(&explain(&error), Tone::Bad, context.output.messages.colours));
        }
        exit
    });
    ExitCode::from(exit as u8)
}

fn log_to_stderr() {
    let filter = EnvFilter::try_from_env(LOG_VARIABLE).unwrap_or_else(|_| EnvFilter::new("warn"));
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(colours).init();
}
