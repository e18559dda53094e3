//! The configured models, and what came of trying one.

use super::{
    table::{Cell, Column, table},
    tone::{Tone, paint},
    units,
};
use crate::{
    commands::{
        models::ModelRow,
        models_check::{CheckReport, Outcome},
    },
    screen::Screen,
};

const COLUMNS: [Column; 7] = [
    Column::words("NAME"),
    Column::text("PROVIDER"),
    Column::words("MODEL").dropped_as(2),
    Column::words("BASE URL").dropped_as(3),
    Column::words("KEY"),
    Column::number("WINDOW").dropped_as(1),
    Column::number("PRICE IN/OUT").dropped_as(0),
];

/// The table of models.
pub(crate) fn models(screen: Screen, rows: &[ModelRow]) -> String {
    let cells = rows.iter().map(|row| {
        let name = if row.is_default { format!("{} *", row.name) } else { row.name.clone() };
        let price = row.price.as_ref().map(|price| {
            format!("{}/{} {}", price.input_per_million, price.output_per_million, price.currency)
        });
        vec![
            Cell::new(name),
            Cell::new(row.provider.clone()),
            Cell::new(row.model.clone()),
            Cell::optional(row.base_url.clone()),
            Cell::new(key(row)),
            Cell::optional(row.context_tokens.map(|tokens| units::tokens(tokens.into()))),
            Cell::optional(price),
        ]
    });
    let text = table(screen, &COLUMNS, cells.collect());
    let note = "* is used when none is named; prices are for a million tokens";
    format!("{text}\n{}", paint(note, Tone::Dim, screen.colours))
}

fn key(row: &ModelRow) -> String {
    let place = row.api_key.name.as_deref().unwrap_or(row.api_key.source);
    match (row.api_key.source, row.api_key.present) {
        ("none", _) => "none".to_owned(),
        (_, true) => place.to_owned(),
        (_, false) => format!("{place} (missing)"),
    }
}

/// One line for each check, and what to do below those that failed.
pub(crate) fn check(screen: Screen, report: &CheckReport) -> String {
    let mut text = format!("model {}", super::printable::line(&report.name));
    for finding in &report.checks {
        let (word, tone) = match finding.outcome {
            Outcome::Ok => ("ok", Tone::Good),
            Outcome::Warning => ("warning", Tone::Warn),
            Outcome::Failed => ("failed", Tone::Bad),
            Outcome::Skipped => ("-", Tone::Dim),
        };
        let title = finding.check.replace('_', " ");
        let detail = super::printable::line(&finding.detail);
        let line = format!("  {title:<14} {} {detail}", paint(&format!("{word:<8}"), tone, screen.colours));
        text.push_str(&format!("\n{}", line.trim_end()));
        if let Some(advice) = &finding.advice {
            text.push_str(&format!("\n  {:<14} {}", "", paint(advice, Tone::Dim, screen.colours)));
        }
    }
    let verdict = if report.usable { "it can be used" } else { "it cannot be used so" };
    format!("{text}\n{verdict}")
}
