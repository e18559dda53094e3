//! What was used and what it cost, a line for each group and one for all of them.

use contracts::wire::usage_report::{UsageFigures, UsageReport};

use super::{
    table::{Cell, Column, table},
    tone::{Tone, paint},
    units,
};
use crate::screen::Screen;

/// Stands before a figure that is the least that it can be.
const AT_LEAST: char = '≥';
/// Digits of an amount of money behind the point.
const COST_DIGITS: usize = 4;

const FIGURES: [Column; 6] = [
    Column::number("CALLS"),
    Column::number("INPUT").dropped_as(1),
    Column::number("OUTPUT").dropped_as(2),
    Column::number("CACHED").dropped_as(0),
    Column::number("TOKENS"),
    Column::number("COST").dropped_as(3),
];

/// The table of a report, with what its marks mean.
pub(crate) fn usage(screen: Screen, report: &UsageReport) -> String {
    if report.total.calls == 0 {
        return paint("no usage: no model has replied", Tone::Dim, screen.colours);
    }
    let columns: Vec<Column> = report.group_by.iter().map(|axis| column(axis)).chain(FIGURES).collect();
    let mut rows: Vec<Vec<Cell>> = report
        .data
        .iter()
        .map(|group| {
            let value = |axis: &String| match axis.as_str() {
                "thread" => group.thread_id.as_deref(),
                "run" => group.run_id.as_deref(),
                "caller" => group.caller.as_deref(),
                "day" => group.day.as_deref(),
                _ => group.model_name.as_deref(),
            };
            let values = report.group_by.iter().map(|axis| Cell::new(value(axis).unwrap_or_default()));
            values.chain(figures(&group.figures, report.currency.as_deref())).collect()
        })
        .collect();
    if report.data.len() > 1 {
        let names = (0..report.group_by.len()).map(|place| Cell::new(if place == 0 { "all" } else { "" }));
        rows.push(names.chain(figures(&report.total, report.currency.as_deref())).collect());
    }
    let mut text = table(screen, &columns, rows);
    for note in notes(report) {
        text.push_str(&format!("\n{}", paint(&note, Tone::Dim, screen.colours)));
    }
    text
}

fn column(axis: &str) -> Column {
    match axis {
        "thread" => Column::id("THREAD"),
        "run" => Column::id("RUN"),
        "caller" => Column::words("CALLER"),
        "day" => Column::text("DAY (UTC)"),
        _ => Column::words("MODEL"),
    }
}

fn figures(figures: &UsageFigures, currency: Option<&str>) -> Vec<Cell> {
    let mark = |is_least: bool, text: String| if is_least { format!("{AT_LEAST}{text}") } else { text };
    let tokens = |count: u64| mark(figures.at_least, units::tokens(count));
    let cached = figures.usage.and_then(|usage| usage.cache_read_tokens);
    let cost = figures
        .cost
        .zip(currency)
        .map(|(cost, currency)| mark(figures.cost_at_least, format!("{cost:.COST_DIGITS$} {currency}")));
    vec![
        Cell::new(units::grouped(figures.calls)),
        Cell::optional(figures.usage.map(|usage| tokens(usage.input_tokens))),
        Cell::optional(figures.usage.map(|usage| tokens(usage.output_tokens))),
        Cell::optional(cached.map(tokens)),
        Cell::optional(figures.usage.map(|usage| tokens(usage.total_tokens))),
        Cell::optional(cost),
    ]
}

/// What the reader cannot know from the table.
fn notes(report: &UsageReport) -> Vec<String> {
    let total = &report.total;
    let mut notes = Vec::new();
    if total.at_least {
        let calls = units::counted(total.calls, "call", "calls");
        let unknown = units::grouped(total.calls_without_usage);
        notes.push(format!("{AT_LEAST} at least: of {calls} {unknown} reported no tokens"));
    }
    if report.currency.is_none() {
        notes.push(
            "no costs: no model has a price; see the section `pricing` of the configuration".to_owned(),
        );
    } else if total.cost_at_least && !total.at_least {
        notes.push(format!("{AT_LEAST} at least: some models have no price"));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn usage_has_a_line_for_each_group_and_one_for_all() {
        for width in [40, 80, 120] {
            let shown = usage(Screen::plain(Some(width)), &samples::usage_report());
            insta::assert_snapshot!(format!("usage_on_{width}_columns"), shown);
        }
    }

    #[test]
    fn a_report_says_what_it_does_not_know() {
        let whole = samples::usage_report();
        let unpriced = UsageReport { currency: None, ..whole.clone() };
        assert!(usage(Screen::plain(None), &unpriced).contains("no model has a price"));
        let total = UsageFigures { at_least: false, calls_without_usage: 0, ..whole.total };
        assert!(
            usage(Screen::plain(None), &UsageReport { total, ..whole.clone() })
                .ends_with("some models have no price")
        );
        let nothing = UsageReport { total: UsageFigures::default(), data: Vec::new(), ..whole };
        assert_eq!(usage(Screen::plain(None), &nothing), "no usage: no model has replied");
    }
}
