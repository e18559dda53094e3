//! What a stream can show: how wide it is, and whether colours make sense on it.

use std::{env, ffi::OsStr, io::IsTerminal};

use terminal_size::{Width, terminal_size_of};

/// Below this nothing can be laid out; such a terminal wraps.
const WIDTH_MIN: u16 = 40;

/// What a stream can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Screen {
    /// Columns; none where nothing limits a line, such as in a file.
    pub(crate) width: Option<u16>,
    /// Whether to use colours.
    pub(crate) colours: bool,
    /// Whether a person watches, so that lines can be updated in place.
    pub(crate) is_terminal: bool,
}

impl Screen {
    /// What standard output can show.
    pub(crate) fn stdout() -> Self {
        Self::new(std::io::stdout().is_terminal(), columns_of(std::io::stdout()))
    }

    /// What standard error can show.
    pub(crate) fn stderr() -> Self {
        Self::new(std::io::stderr().is_terminal(), columns_of(std::io::stderr()))
    }

    fn new(is_terminal: bool, width: Option<u16>) -> Self {
        let columns = || env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        let width = width.or_else(columns).map(|width: u16| width.max(WIDTH_MIN));
        let no_color = env::var_os("NO_COLOR");
        let terminal = env::var_os("TERM");
        let colours = is_terminal && wants_colours(no_color.as_deref(), terminal.as_deref());
        Self { width, colours, is_terminal }
    }

    /// A screen of this width without colours.
    #[cfg(test)]
    pub(crate) const fn plain(width: Option<u16>) -> Self {
        Self { width, colours: false, is_terminal: false }
    }
}

/// The columns of the terminal behind a stream.
fn columns_of(stream: impl std::os::fd::AsFd) -> Option<u16> {
    terminal_size_of(stream).map(|(Width(columns), _)| columns)
}

/// `NO_COLOR` counts when it is set to anything but the empty text (no-color.org).
fn wants_colours(no_color: Option<&OsStr>, terminal: Option<&OsStr>) -> bool {
    no_color.is_none_or(OsStr::is_empty) && terminal != Some(OsStr::new("dumb"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(no_color: Option<&str>, terminal: Option<&str>, expected: bool) {
        assert_eq!(wants_colours(no_color.map(OsStr::new), terminal.map(OsStr::new)), expected);
    }

    #[test]
    fn colours_are_asked_for() {
        check(None, Some("xterm"), true);
        check(None, None, true);
        check(Some(""), Some("xterm"), true);
        check(Some("1"), Some("xterm"), false);
        check(Some("0"), None, false);
        check(None, Some("dumb"), false);
    }
}
