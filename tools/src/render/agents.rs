//! Types of subagent.

use contracts::wire::{
    managed::{ManagedSubagent, ManagedVersion},
    subagent::{Subagent, SubagentSource},
};
use domain::definition::Origin;

use super::{
    printable,
    table::{Cell, Column, table},
    tone::{Tone, bold, paint},
    units,
};
use crate::screen::Screen;

const COLUMNS: [Column; 7] = [
    Column::text("NAME"),
    Column::text("SOURCE"),
    Column::text("STATE"),
    Column::text("MODEL").dropped_as(1),
    Column::number("TURNS").dropped_as(2),
    Column::number("TIME").dropped_as(3),
    Column::flexible("DESCRIPTION").dropped_as(0),
];
const VERSIONS: [Column; 5] = [
    Column::number("VERSION"),
    Column::text("TIME (UTC)").dropped_as(1),
    Column::text("CHANGE"),
    Column::text("STATE"),
    Column::flexible("DESCRIPTION").dropped_as(0),
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

/// The words for where a definition comes from.
pub(crate) const fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::BuiltIn => source(SubagentSource::BuiltIn),
        Origin::Configured => source(SubagentSource::Configured),
        Origin::Managed => source(SubagentSource::Managed),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{samples, table::UNLIMITED_WIDTH, width::columns};

    #[test]
    fn what_is_offered_comes_before_what_is_not() {
        let (types, managed) = (samples::subagents(), samples::managed_subagents());
        for width in [40, 80, 120] {
            let shown = list(Screen::plain(Some(width)), &types, &managed);
            insta::assert_snapshot!(format!("types_on_{width}_columns"), shown);
        }
        insta::assert_snapshot!("types_in_a_pipe", list(Screen::plain(None), &types, &managed));
    }

    #[test]
    fn one_type_is_shown_as_it_is_offered_and_as_it_is_kept() {
        let (types, managed) = (samples::subagents(), samples::managed_subagents());
        let screen = Screen::plain(Some(80));
        let shown = |offered: &str, kept: &str| {
            let offered = types.iter().find(|it| it.name == offered);
            one(screen, offered, managed.iter().find(|it| it.name == kept))
        };
        insta::assert_snapshot!("a_built_in_type", shown("bash", ""));
        insta::assert_snapshot!("a_managed_type", shown("writer", "writer"));
        insta::assert_snapshot!("a_disabled_type", shown("", "drafter"));
        insta::assert_snapshot!("a_hidden_type_and_what_hides_it", shown("reviewer", "reviewer"));
    }

    #[test]
    fn a_history_says_what_each_version_did() {
        for width in [40, 80, 120] {
            let shown = history(Screen::plain(Some(width)), &samples::managed_versions());
            insta::assert_snapshot!(format!("versions_on_{width}_columns"), shown);
        }
    }

    // Whoever wrote a definition cannot move the cursor of whoever looks at it, nor break a row.
    #[test]
    fn rows_stay_rows_whatever_is_in_them() {
        let (mut types, mut managed) = (samples::subagents(), samples::managed_subagents());
        let mut versions = samples::managed_versions();
        let hostile = format!("\u{1b}[2J漢字 {}", "long ".repeat(500));
        types[0].description.clone_from(&hostile);
        types[1].name = "n".repeat(64);
        managed[0].definition.description.clone_from(&hostile);
        managed[0].definition.model = "m".repeat(300);
        if let Some(kept) = &mut versions[0].definition {
            kept.description.clone_from(&hostile);
        }
        for width in (40..200).map(Some).chain([None]) {
            let screen = Screen::plain(width);
            for (shown, lines) in [(list(screen, &types, &managed), 7), (history(screen, &versions), 5)] {
                assert_eq!(shown.lines().count(), lines, "{width:?}: {shown}");
                assert!(!shown.contains('\u{1b}'), "{shown:?}");
                let widest = shown.lines().map(columns).max().unwrap();
                assert!(widest <= usize::from(width.unwrap_or(UNLIMITED_WIDTH)), "{width:?}: {shown}");
            }
        }
        let mut kept = managed.remove(0);
        kept.definition.system_prompt = hostile;
        assert!(!one(Screen::plain(None), None, Some(&kept)).contains('\u{1b}'));
    }
}
