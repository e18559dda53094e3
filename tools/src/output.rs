//! Where words go: data on standard output, everything else on standard error.

use std::{
    io::{self, Write},
    sync::OnceLock,
};

use anyhow::Context as _;
use serde::Serialize;

use crate::{
    failure::Failure,
    render::tone::{Tone, paint},
    screen::Screen,
};

/// Where a command's words go, and in which form.
#[derive(Debug)]
pub(crate) struct Output {
    /// Whether a program reads: one JSON value on standard output.
    pub(crate) json: bool,
    /// What standard output can show.
    pub(crate) screen: Screen,
    /// What standard error can show.
    pub(crate) messages: Screen,
}

impl Output {
    /// Looks at both streams.
    pub(crate) fn new(json: bool) -> Self {
        Self { json, screen: Screen::stdout(), messages: Screen::stderr() }
    }

    /// Prints the one JSON value of a command, on one line.
    pub(crate) fn value(&self, value: &(impl Serialize + ?Sized)) -> anyhow::Result<()> {
        let mut text = serde_json::to_string(value).context("could not write the answer as JSON")?;
        text.push('\n');
        self.raw(&text)
    }

    /// Prints text for people, with one line end behind it.
    pub(crate) fn text(&self, text: &str) -> anyhow::Result<()> {
        self.raw(&format!("{}\n", text.trim_end_matches('\n')))
    }

    /// Prints a part of the answer as it is.
    pub(crate) fn raw(&self, text: &str) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        printed.map_err(|error| {
            let failure = Failure::unprinted(&error);
            anyhow::Error::new(error).context(failure)
        })
    }

    /// Tells the person something that is not part of the answer. A standard error that is closed
    /// is nobody to tell.
    pub(crate) fn note(&self, text: &str) {
        self.message(&paint(text, Tone::Dim, self.messages.colours));
    }

    /// Tells the person something that they should not overlook.
    pub(crate) fn warn(&self, text: &str) {
        self.message(&paint(text, Tone::Warn, self.messages.colours));
    }

    /// Prints a line on standard error.
    pub(crate) fn message(&self, text: &str) {
        drop(writeln!(io::stderr().lock(), "{text}"));
    }
}

/// How this program was called, so that suggested commands can be pasted: `remit` when it was found
/// on the path, else the path itself.
pub(crate) fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| std::env::args().next().filter(|name| !name.is_empty()).unwrap_or("remit".into()))
}
