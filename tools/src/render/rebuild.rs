//! How making views again ended.

use std::time::Duration;

use contracts::wire::health::{Difference, LastRebuild};
use serde::Serialize;

use super::{
    printable,
    tone::{Tone, paint},
    units,
};
use crate::screen::Screen;

/// The end of a rebuild, with the time that it took.
pub(crate) struct Rebuilt {
    /// The views.
    pub(crate) views: Vec<String>,
    /// How it ended.
    pub(crate) ended: LastRebuild,
    /// How long it took.
    pub(crate) took: Duration,
}

/// What a program reads.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Record<'a> {
    views: &'a [String],
    outcome: &'a str,
    position: Option<u64>,
    seconds: f64,
    difference: Option<&'a Difference>,
    error: Option<&'a str>,
}

impl Rebuilt {
    /// What a program reads.
    pub(crate) fn record(&self) -> Record<'_> {
        Record {
            views: &self.views,
            outcome: &self.ended.outcome,
            position: self.ended.position,
            seconds: self.took.as_secs_f64(),
            difference: self.ended.difference.as_ref(),
            error: self.ended.error.as_deref(),
        }
    }
}

/// What a person reads.
pub(crate) fn rebuilt(screen: Screen, rebuilt: &Rebuilt) -> String {
    let Rebuilt { views, ended, took } = rebuilt;
    let views = views.join(", ");
    let position = units::grouped(ended.position.unwrap_or(0));
    let took = format!("{:.1} s", took.as_secs_f64());
    match (ended.outcome.as_str(), &ended.difference) {
        ("replaced", _) => {
            let done = format!("made {views} again up to position {position} in {took}");
            paint(&done, Tone::Good, screen.colours)
        }
        ("same", _) => {
            let done = format!("{views}: every row is what the log says at position {position} ({took})");
            paint(&done, Tone::Good, screen.colours)
        }
        ("different", Some(difference)) => different(screen, difference, &position),
        ("stopped", _) => format!("stopped at position {position}; ask again to go on from there"),
        (_, _) => {
            let why = ended.error.as_deref().unwrap_or("it did not say why");
            let failed = format!("could not make {views} again: {}", printable::line(why));
            paint(&failed, Tone::Bad, screen.colours)
        }
    }
}

fn different(screen: Screen, difference: &Difference, position: &str) -> String {
    let Difference { view, key, answering, rebuilt } = difference;
    let row = |row: &Option<String>| row.as_deref().map_or("no row".to_owned(), printable::line);
    let title = format!("{view} is not what the log says at position {position}");
    format!(
        "{}\n  row      {}\n  answers  {}\n  the log  {}\n`remit rebuild {view}` replaces it",
        paint(&title, Tone::Bad, screen.colours),
        printable::line(key),
        row(answering),
        row(rebuilt),
    )
}
