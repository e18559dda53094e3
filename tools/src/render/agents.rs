//! Types of subagent.

use contracts::wire::{
    managed::{ManagedSubagent, ManagedVersion},
    subagent::{Subagent, SubagentSource},
};

use super::{
    printable,
    table::{Cell, Column, table},
    tone::{Tone, bold, paint},
    units,
};
use crate::screen::Screen;

const COLUMNS: [Column; 7] = [
    Column::id("NAME"),
    Column::text("SOURCE"),
    Column::text("STATE"),
    Column::text("MODEL").dropped_as(1),
    Column::number("TURNS").dropped_as(2),
    Column::number("TIME").dropped_as(3),
    Column::text("DESCRIPTION").dropped_as(0),
];
const VERSIONS: [Column; 5] = [
    Column::number("VERSION"),
    Column::text("TIME (UTC)").dropped_as(1),
    Column::text("CHANGE"),
    Column::text("STATE"),
    Column::text("DESCRIPTION").dropped_as(0),
];
/// Characters of a description that stand in a table.
const DESCRIPTION_CHARS_MAX: usize = 60;

/// The words for a source.
pub(crate) const fn source(source: SubagentSource) -> &'static str {
    match source {
        SubagentSource::BuiltIn => "built-in",
        SubagentSource::Configured => "configured",
        SubagentSource::Managed => "managed",
    }
}

/// What leads are offered, then the managed definitions that they are not.
pub(crate) fn list(screen: Screen, types: &[Subagent], managed: &[ManagedSubagent]) -> String {
    let mut rows: Vec<Vec<Cell>> = types.iter().map(offered).collect();
    rows.extend(managed.iter().filter(|one| !one.enabled || one.hidden_by.is_some()).map(not_offered));
    table(screen, &COLUMNS, rows)
}

fn offered(one: &Subagent) -> Vec<Cell> {
    let (state, tone) =
        if one.available { ("offered", Tone::Good) } else { ("not available here", Tone::Dim) };
    vec![
        Cell::new(&one.name),
        Cell::new(source(one.source)),
        Cell::toned(state, tone),
        Cell::new(&one.model),
        Cell::new(one.max_turns.to_string()),
        Cell::new(units::duration(one.timeout_seconds.saturating_mul(1_000))),
        Cell::new(first_line(&one.description)),
    ]
}

fn not_offered(one: &ManagedSubagent) -> Vec<Cell> {
    vec![
        Cell::new(&one.name),
        Cell::new(source(SubagentSource::Managed)),
        Cell::toned(state(one), Tone::Dim),
        Cell::new(&one.definition.model),
        Cell::new(one.definition.max_turns.to_string()),
        Cell::new(units::duration(one.definition.timeout_seconds.saturating_mul(1_000))),
        Cell::new(first_line(&one.definition.description)),
    ]
}

fn state(one: &ManagedSubagent) -> String {
    match one.hidden_by {
        _ if !one.enabled => "disabled".to_owned(),
        Some(by) => format!("hidden by a {} type", source(by)),
        None => "offered".to_owned(),
    }
}

fn first_line(text: &str) -> String {
    printable::short_line(text.trim().lines().next().unwrap_or_default(), DESCRIPTION_CHARS_MAX)
}

/// One type: as leads are offered it, and as it is kept.
pub(crate) fn one(screen: Screen, offered: Option<&Subagent>, managed: Option<&ManagedSubagent>) -> String {
    let mut parts = Vec::new();
    parts.extend(offered.map(|one| as_offered(screen, one)));
    // What is offered as it is kept is not said twice.
    let is_told = offered.is_some_and(|one| one.source == SubagentSource::Managed);
    parts.extend(managed.map(|one| as_kept(screen, one, is_told)));
    parts.join("\n\n")
}

fn as_offered(screen: Screen, one: &Subagent) -> String {
    let state = if one.available { "offered to leads" } else { "not available here" };
    let mut lines = vec![format!("{}  {}, {state}", bold(&one.name, screen.colours), source(one.source))];
    lines.push(field("model", &one.model));
    let time = units::duration(one.timeout_seconds.saturating_mul(1_000));
    lines.push(field("limits", &format!("{} turns, {time}", one.max_turns)));
    lines.push(field("tools", &names(one.tools.as_deref(), "all")));
    lines.push(field("not", &names(one.disallowed_tools.as_deref(), "none")));
    lines.push(field("skills", &names(one.skills.as_deref(), "all")));
    lines.push(text(screen, "When to delegate to it", &one.description));
    lines.extend(one.system_prompt.as_deref().map(|prompt| text(screen, "What it is told", prompt)));
    lines.join("\n")
}

fn as_kept(screen: Screen, one: &ManagedSubagent, is_told: bool) -> String {
    let name = bold(&one.name, screen.colours);
    let mut lines = vec![format!("{name}  managed, version {}, {}", one.version, state(one))];
    lines.push(field("changed", &units::instant(&one.updated_at)));
    if !is_told {
        let kept = &one.definition;
        lines.push(field("model", &kept.model));
        let time = units::duration(kept.timeout_seconds.saturating_mul(1_000));
        lines.push(field("limits", &format!("{} turns, {time}", kept.max_turns)));
        lines.push(field("tools", &names(kept.tools.as_deref(), "all")));
        lines.push(field("not", &names(kept.disallowed_tools.as_deref(), "none")));
        lines.push(field("skills", &names(kept.skills.as_deref(), "all")));
        lines.push(text(screen, "When to delegate to it", &kept.description));
        lines.push(text(screen, "What it is told", &kept.system_prompt));
    }
    lines.join("\n")
}

fn field(name: &str, value: &str) -> String {
    format!("  {name:<8} {}", printable::line(value))
}

fn names(list: Option<&[String]>, unset: &str) -> String {
    match list {
        None => unset.to_owned(),
        Some([]) => "none".to_owned(),
        Some(names) => names.join(", "),
    }
}

fn text(screen: Screen, title: &str, text: &str) -> String {
    let lines: Vec<String> = printable::lines(text.trim())
        .lines()
        .map(|line| format!("    {line}").trim_end().to_owned())
        .collect();
    format!("  {}\n{}", paint(title, Tone::Dim, screen.colours), lines.join("\n"))
}

/// The versions of a managed definition, the newest last.
pub(crate) fn history(screen: Screen, versions: &[ManagedVersion]) -> String {
    let rows = versions.iter().map(|one| {
        let change = match one.to_version {
            Some(to) => format!("rolled back to {to}"),
            None => one.change.as_str().replace('_', " "),
        };
        let (state, tone) = match (&one.definition, one.enabled) {
            (None, _) => ("gone", Tone::Dim),
            (Some(_), true) => ("enabled", Tone::Good),
            (Some(_), false) => ("disabled", Tone::Dim),
        };
        vec![
            Cell::new(one.version.to_string()),
            Cell::toned(units::instant(&one.at), Tone::Dim),
            Cell::new(change),
            Cell::toned(state, tone),
            Cell::new(one.definition.as_ref().map(|it| first_line(&it.description)).unwrap_or_default()),
        ]
    });
    table(screen, &VERSIONS, rows.collect())
}
