//! Shows the lines of a run as they change: in place on a terminal, one by one on a pipe.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;

use super::{Changed, Progress, lines};
use crate::screen::Screen;

/// Where the lines go.
pub(crate) enum ScreenLines {
    /// A terminal: every line is kept up to date where it stands.
    Updating {
        /// Draws the lines.
        drawing: MultiProgress,
        /// One for each line.
        bars: Vec<ProgressBar>,
    },
    /// A pipe or a file: a line for each change that says something new.
    Plain {
        /// The last line of each, so that nothing is said twice; the lead's first.
        said: Vec<Option<String>>,
    },
}

impl ScreenLines {
    /// Lines on standard error.
    pub(crate) fn new(screen: Screen) -> Self {
        if screen.is_terminal {
            let drawing = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
            Self::Updating { drawing, bars: Vec::new() }
        } else {
            Self::Plain { said: Vec::new() }
        }
    }

    /// Shows what an event changed. Gives the line to print, where lines are printed one by one.
    pub(crate) fn show(&mut self, progress: &Progress, changed: Changed, now: Timestamp) -> Option<String> {
        match self {
            Self::Updating { .. } => {
                self.tick(progress, now);
                None
            }
            Self::Plain { said } => said_anew(said, progress, changed, now),
        }
    }

    /// Shows that time has passed.
    pub(crate) fn tick(&mut self, progress: &Progress, now: Timestamp) {
        let Self::Updating { drawing, bars } = self else { return };
        // Asked for anew each time: a window may change its size.
        let lines = lines::aligned(Screen::stderr(), progress, now);
        while bars.len() < lines.len() {
            bars.push(drawing.add(ProgressBar::new_spinner().with_style(style())));
        }
        for (bar, line) in bars.iter().zip(lines) {
            bar.set_message(line);
        }
    }

    /// Leaves the last state on the screen and gives the cursor back.
    pub(crate) fn finish(&self) {
        match self {
            Self::Updating { bars, .. } => bars.iter().for_each(ProgressBar::abandon),
            Self::Plain { .. } => {}
        }
    }

    /// Prints a line above the lines that are being updated.
    pub(crate) fn message(&self, text: &str) {
        match self {
            // A terminal that is gone cannot be told anything.
            Self::Updating { drawing, .. } => drop(drawing.println(text)),
            Self::Plain { .. } => {
                drop(std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{text}\n")))
            }
        }
    }
}

/// The line is cut to the terminal here too, for a terminal narrower than what cannot be cut.
fn style() -> ProgressStyle {
    ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// The changed line, unless only its time is new.
fn said_anew(
    said: &mut Vec<Option<String>>,
    progress: &Progress,
    changed: Changed,
    now: Timestamp,
) -> Option<String> {
    let place = match changed {
        Changed::Nothing => return None,
        Changed::Lead => 0,
        Changed::Delegation(place) => place + 1,
    };
    // At the beginning of time every duration is zero.
    let timeless = lines::plain(progress, changed, Timestamp::MIN);
    if said.len() <= place {
        said.resize(place + 1, None);
    }
    let last = said.get_mut(place)?;
    if *last == timeless {
        return None;
    }
    *last = timeless;
    lines::plain(progress, changed, now)
}
