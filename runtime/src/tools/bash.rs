//! `bash`: one shell line inside the confinement.

use std::sync::Arc;

use domain::{
    causes::with_causes,
    tool_spec::{SideEffect, ToolSpec},
};
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Tool, ToolContext, ToolOutcome, ToolOutput,
    capture::{Capture, Frame},
    file_call::{ToolFailure, arguments},
};
use crate::sandbox::{
    Confinement,
    shell::{self, Bounds, ShellEnd},
};

const ADVICE: &str = "print less, or write to a file and read a part of it";

/// What is said where no shell line may run.
const UNAVAILABLE: &str = "bash is not available here: no confinement works on this machine. Go on with ls, read_file, \
                           write_file, str_replace, grep and glob. (The owner of the server can install bubblewrap, use \
                           a Linux kernel 6.2 or newer with Landlock, or set sandbox.allow_host_bash to true.)";

/// What is said where the confinement could not keep a line from the server's own files.
const UNHIDEABLE: &str = "bash is not available on this thread: the server keeps its own files in the workspace or among \
                          the system's programs, and the confinement of this machine (Landlock) cannot hide them. Go \
                          on with ls, read_file, write_file, str_replace, grep and glob. (The owner of the server can \
                          install bubblewrap or move the data folder elsewhere, for example with --data.)";

/// A shell line. The system's own limit for one argument is 128 KiB.
const COMMAND_BYTES_MAX: usize = 100 * 1024;

pub(super) struct Bash;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    #[serde(default, rename = "description")]
    _description: Option<String>,
}

impl Tool for Bash {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "bash".to_owned(),
            description: "Run a shell command in /mnt/user-data/workspace. Its output and error output come back \
                          together, with the exit code when it is not 0. Nothing can be typed in. Every process that it \
                          starts is ended when the command ends, and /tmp is emptied; keep what is needed later in \
                          /mnt/user-data. Prefer relative paths."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "The command, as for bash -c"},
                    "description": {"type": "string", "description": "What it is for, in a few words"},
                },
                "required": ["command"],
                "additionalProperties": false,
            }),
        }
    }

    fn side_effect(&self, _args: &Map<String, Value>) -> SideEffect {
        SideEffect::Effectful
    }

    fn run<'a>(
        &'a self,
        context: &'a ToolContext,
        args: &'a Map<String, Value>,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let arguments = match checked(args) {
                Ok(arguments) => arguments,
                Err(failure) => return failure.into(),
            };
            match &context.confinement {
                Some(confinement) if !confinement.can_hide_data(&context.folders) => denied(UNHIDEABLE),
                Some(confinement) => run_line(context, confinement, &arguments.command).await,
                None => denied(UNAVAILABLE),
            }
        })
    }
}

fn denied(why: &str) -> ToolOutput {
    Capture::of(&format!("Error: {why}")).finish(ToolOutcome::Denied, Frame::default())
}

fn checked(args: &Map<String, Value>) -> Result<Arguments, ToolFailure> {
    let arguments: Arguments = arguments("bash", args)?;
    let command = &arguments.command;
    if command.trim().is_empty() || command.contains('\0') {
        return Err(ToolFailure::said("command is empty or holds a NUL byte; give a shell command"));
    }
    if command.len() > COMMAND_BYTES_MAX {
        return Err(ToolFailure::said(format!(
            "command is longer than {COMMAND_BYTES_MAX} bytes; write a script with write_file and run that"
        )));
    }
    Ok(arguments)
}

async fn run_line(context: &ToolContext, confinement: &Arc<Confinement>, line: &str) -> ToolOutput {
    if context.cancel.is_cancelled() {
        return ToolFailure::Cancelled.into();
    }
    let (timeout, cancel, work) = (context.bash_timeout, context.cancel.clone(), context.work.clone());
    let bounds = Bounds { timeout, cancel, work };
    let capture = Capture::within(context);
    match shell::run(confinement, &context.folders, line, &bounds, capture).await {
        // A large output is brought to the disk first.
        Ok((end, capture)) => match tokio::task::spawn_blocking(move || told(end, capture, &bounds)).await {
            Ok(output) => output,
            Err(_) => ToolFailure::Broken("bash").into(),
        },
        Err(failure) => {
            tracing::warn!(error = %with_causes(&failure), "cannot run a shell line");
            ToolFailure::said("the shell could not be started; try again, or go on with the file tools")
                .into()
        }
    }
}

fn told(end: ShellEnd, capture: Capture, bounds: &Bounds) -> ToolOutput {
    let is_silent = capture.bytes() == 0;
    let seconds = bounds.timeout.as_secs_f64();
    let (outcome, before, after) = match end {
        ShellEnd::Exited(0) if is_silent => (ToolOutcome::Ok, String::new(), "(no output)".to_owned()),
        ShellEnd::Exited(0) => (ToolOutcome::Ok, String::new(), String::new()),
        ShellEnd::Exited(code) => (ToolOutcome::Error, String::new(), format!("\n(exit code {code})")),
        ShellEnd::Exceeded(excess) => (
            ToolOutcome::Error,
            format!(
                "Error: the command was stopped because {excess}; do less at once. Its output until then:\n"
            ),
            String::new(),
        ),
        ShellEnd::TimedOut => (
            ToolOutcome::Error,
            format!(
                "Error: the command was stopped after {seconds} s, with all that it had started; do less at once. \
                 Its output until then:\n"
            ),
            String::new(),
        ),
        ShellEnd::Cancelled => (
            ToolOutcome::Error,
            "Error: the command was cancelled and stopped, with all that it had started. Its output until then:\n"
                .to_owned(),
            String::new(),
        ),
    };
    capture.finish(outcome, Frame { before: &before, after: &after, advice: ADVICE })
}

#[cfg(test)]
mod tests;
