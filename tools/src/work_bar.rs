//! Long work over a known number of events, as a bar on a terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::screen::Screen;

/// Shorter work shows nothing.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// A bar on standard error, where a person watches it. It goes when it is dropped.
pub(crate) struct WorkBar {
    what: &'static str,
    is_terminal: bool,
    started: Instant,
    bar: Option<ProgressBar>,
}

impl WorkBar {
    /// A bar that is not shown yet. `what` says what is being done.
    pub(crate) fn new(what: &'static str, messages: Screen) -> Self {
        Self { what, is_terminal: messages.is_terminal, started: Instant::now(), bar: None }
    }

    /// How far the work is.
    pub(crate) fn show(&mut self, progress: eventlog::Progress) {
        if !self.is_terminal || self.started.elapsed() < SHOWN_AFTER {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| bar(self.what));
        bar.set_length(progress.head.get());
        bar.set_position(progress.position.get());
    }

    /// How long it has taken.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

impl Drop for WorkBar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style).with_message(what)
}
