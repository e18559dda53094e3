//! The tables that say which test holds which line: complete, and about tests that exist.

use std::{collections::BTreeSet, fs, path::PathBuf};

/// What a row may say instead of naming tests.
const REASONS: [&str; 2] = ["Does not apply: ", "Not built yet: "];
/// The least that a reason has to say.
const REASON_CHARS_MIN: usize = 30;

/// One row: its number, and what its last cell says.
#[derive(Debug)]
struct Row {
    number: u32,
    cells: Vec<String>,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn rows(table: &str) -> Vec<Row> {
    let path = root().join("tests").join(table);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    rows_of(&text)
}

fn rows_of(text: &str) -> Vec<Row> {
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let tables = text.lines().filter(|line| line.starts_with('|')).map(cells);
    tables.filter_map(|cells| Some(Row { number: cells.first()?.parse().ok()?, cells })).collect()
}

/// What is wrong with a row's last cell.
fn problems(row: &Row) -> Vec<String> {
    let held_by = row.cells.last().map(String::as_str).unwrap_or_default();
    if let Some(reason) = REASONS.iter().find_map(|prefix| held_by.strip_prefix(prefix)) {
        let is_short = reason.chars().count() < REASON_CHARS_MIN;
        return is_short
            .then(|| format!("{}: the reason {reason:?} says too little", row.number))
            .into_iter()
            .collect();
    }
    let named: Vec<&str> = held_by.split('`').skip(1).step_by(2).collect();
    if named.is_empty() {
        return vec![format!("{}: names no test and gives no reason: {held_by:?}", row.number)];
    }
    named.into_iter().filter_map(|test| missing(row.number, test)).collect()
}

fn missing(number: u32, test: &str) -> Option<String> {
    let Some((file, name)) = test.split_once("::") else {
        return Some(format!("{number}: {test} is not written as file::test"));
    };
    let Ok(source) = fs::read_to_string(root().join(file)) else {
        return Some(format!("{number}: there is no file {file}"));
    };
    let is_there = source.contains(&format!("fn {name}(")) || source.contains(&format!("fn {name}<"));
    (!is_there).then(|| format!("{number}: there is no {name} in {file}"))
}

#[track_caller]
fn assert_complete(table: &str, numbers: impl Iterator<Item = u32>) {
    let rows = rows(table);
    let mut listed = BTreeSet::new();
    for row in &rows {
        assert!(listed.insert(row.number), "{table} has {} twice", row.number);
    }
    let absent: Vec<u32> = numbers.filter(|number| !listed.contains(number)).collect();
    assert!(absent.is_empty(), "{table} says nothing of {absent:?}");
    let problems: Vec<String> = rows.iter().flat_map(problems).collect();
    assert!(problems.is_empty(), "{table}:\n{}", problems.join("\n"));
}

#[test]
fn every_line_is_held() {
    assert_complete("CONFORMANCE.md", 1..=128);
}

#[test]
fn every_line_of_the_agent_chain_in_scope_is_held() {
    assert_complete("CHAIN_CONFORMANCE.md", (1..=72).chain([79]).chain(81..=105).chain(116..=119));
}

#[test]
fn every_field_report_in_scope_is_held() {
    let of_caps = [1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 13];
    let of_endings = [14, 15, 16, 17, 18, 21, 22, 23, 24, 25, 26];
    let of_events = [35, 36, 38, 39, 40, 41, 42, 43, 44, 46, 48];
    let of_cards = [50, 51, 52, 53, 56, 57, 58, 59, 60, 61];
    let of_streams = [63, 64, 65];
    let of_views = [67, 68, 69, 70, 71];
    let of_storage = [74, 75, 76, 77, 78];
    let of_providers = [79, 81, 83, 85, 86, 87, 88, 90];
    let of_sizes = [91, 93, 94];
    let of_privacy = [100, 102, 103];
    let of_the_log = of_events.into_iter().chain(of_storage).chain(of_privacy).chain(of_sizes);
    let all = of_the_log.chain(of_cards).chain(of_streams).chain(of_views).chain(of_providers);
    let all = all.chain(of_caps).chain(of_endings);
    assert_complete("FIELD_REPORTS.md", all);
}

#[test]
fn a_bad_row_is_named() {
    let text = "| Line | Held by |\n|---|---|\n| 1 | nobody |\n| 2 | Does not apply: no. |\n\
        | 3 | `nowhere.rs::x` |\n| 4 | `tests/tests/it/index.rs::gone` |\n| 5 | `tests/tests/it/index.rs::problems` |\n";
    let rows = rows_of(text);
    assert_eq!(rows.iter().map(|row| row.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    let found: Vec<usize> = rows.iter().map(|row| problems(row).len()).collect();
    assert_eq!(found, [1, 1, 1, 1, 0]);
}
