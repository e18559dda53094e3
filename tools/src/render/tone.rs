//! What a colour means. The meaning is always in the words too: colour only helps the eye.

use owo_colors::{AnsiColors, OwoColorize as _};

/// What a piece of text is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Nothing special.
    Plain,
    /// Went well.
    Good,
    /// Went wrong.
    Bad,
    /// Look here.
    Warn,
    /// At work.
    Busy,
    /// Less important.
    Dim,
}

impl Tone {
    const fn ansi(self) -> Option<AnsiColors> {
        match self {
            Self::Plain => None,
            Self::Good => Some(AnsiColors::Green),
            Self::Bad => Some(AnsiColors::Red),
            Self::Warn => Some(AnsiColors::Yellow),
            Self::Busy => Some(AnsiColors::Cyan),
            Self::Dim => Some(AnsiColors::BrightBlack),
        }
    }
}

/// The text in its colour, or as it is.
pub(crate) fn paint(text: &str, tone: Tone, colours: bool) -> String {
    match tone.ansi() {
        Some(colour) if colours => text.color(colour).to_string(),
        Some(_) | None => text.to_owned(),
    }
}

/// The text as a heading.
pub(crate) fn bold(text: &str, colours: bool) -> String {
    if colours { text.bold().to_string() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_left_out_where_they_are_not_wanted() {
        assert_eq!(paint("x", Tone::Bad, false), "x");
        assert_eq!(paint("x", Tone::Plain, true), "x");
        assert_eq!(paint("x", Tone::Bad, true), "\u{1b}[31mx\u{1b}[39m");
        assert_eq!(bold("x", false), "x");
    }
}
