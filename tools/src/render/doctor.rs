//! What the doctor found.

use super::{
    printable,
    table::{Cell, Column, table},
    tone::{Tone, bold},
};
use crate::{
    diagnosis::{Finding, State},
    screen::Screen,
};

const COLUMNS: [Column; 3] = [Column::text("CHECK"), Column::text("STATE"), Column::flexible("FOUND")];

/// The table, and below it what to do, in full.
pub(crate) fn findings(screen: Screen, findings: &[Finding]) -> String {
    let rows = findings.iter().map(|finding| {
        let state = match finding.state {
            State::Ok => Cell::toned("ok", Tone::Good),
            State::Warning => Cell::toned("warning", Tone::Warn),
            State::Problem => Cell::toned("PROBLEM", Tone::Bad),
        };
        vec![Cell::new(finding.check), state, Cell::new(&finding.found)]
    });
    let mut text = table(screen, &COLUMNS, rows.collect());
    for finding in findings {
        if let Some(advice) = &finding.advice {
            let check = bold(finding.check, screen.colours);
            let (found, advice) = (printable::line(&finding.found), printable::line(advice));
            text.push_str(&format!("\n\n{check}: {found}\n  {advice}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    #[test]
    fn what_to_do_is_below() {
        let found = [
            Finding::ok("lock", "nobody has the folder open"),
            Finding::warning(
                "record",
                "a torn end of 500 B in ./remit-data/log/segments/0000000000000000.seg, which was never acknowledged",
                "`remit doctor --repair` shows it and cuts it off",
            ),
            Finding::problem("keys", Exit::Integrity, "the key file is missing", "put it back from a backup"),
        ];
        insta::assert_snapshot!(findings(Screen::plain(Some(60)), &found));
    }
}
