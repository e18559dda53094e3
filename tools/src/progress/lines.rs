//! The lines of a run: state, last tool, turns, tokens and time, for the lead and each delegation.

use contracts::wire::delegation::DelegationStatus;
use domain::{card::CardHead, event::RunStatus, ledger::LedgerStatus};
use jiff::Timestamp;

use super::{Changed, Progress, Wait};
use crate::{
    render::{
        printable, status,
        table::{Cell, Column, untitled},
        tone::Tone,
        units,
    },
    screen::Screen,
};

/// A description on a plain line; on a screen it gets what is left.
const DESCRIPTION_CHARS_MAX: usize = 60;

const COLUMNS: [Column; 7] = [
    Column::words(""),
    Column::text("").at_least(11),
    Column::words("").at_least(10).dropped_as(1),
    Column::number("").dropped_as(0),
    Column::number("").dropped_as(2),
    Column::number("").at_least(5).dropped_as(3),
    Column::flexible(""),
];

/// What one line says.
struct Line {
    who: String,
    state: (&'static str, Tone),
    /// The last tool while it works; the guard that stopped it, if one did, afterwards.
    detail: Option<String>,
    turns: u32,
    tokens: Option<u64>,
    ms: Option<u64>,
    what: String,
    /// What it waits for, if it does.
    wait: Option<String>,
}

/// All lines, aligned and cut to the screen: the lead's first.
pub(crate) fn aligned(screen: Screen, progress: &Progress, now: Timestamp) -> Vec<String> {
    let delegations = progress.delegations().enumerate();
    let lines: Vec<Line> = std::iter::once(lead_line(progress, now))
        .chain(delegations.map(|(place, head)| delegation_line(head, progress.wait(place), now)))
        .collect();
    let mut columns = COLUMNS;
    // What somebody waits for is more important than what else there is to see.
    if let (Some(last), Some(wait)) = (
        columns.last_mut(),
        lines.iter().filter_map(|line| line.wait.as_ref()).map(|wait| wait.chars().count()).max(),
    ) {
        *last = last.at_least(wait);
    }
    let rows = lines.into_iter().map(|line| {
        let what = match line.wait {
            Some(wait) => Cell::toned(wait, Tone::Warn),
            None => Cell::toned(line.what, Tone::Dim),
        };
        vec![
            Cell::new(line.who),
            Cell::toned(line.state.0, line.state.1),
            Cell::new(line.detail.unwrap_or_default()),
            Cell::new(turns(line.turns)),
            Cell::new(tokens(line.tokens)),
            Cell::new(line.ms.map(units::duration).unwrap_or_default()),
            what,
        ]
    });
    untitled(screen, &columns, rows.collect()).lines().map(ToOwned::to_owned).collect()
}

/// The line that an event changed, without any layout: for a pipe or a file.
pub(crate) fn plain(progress: &Progress, changed: Changed, now: Timestamp) -> Option<String> {
    let line = match changed {
        Changed::Nothing => return None,
        Changed::Lead => lead_line(progress, now),
        Changed::Delegation(place) => delegation_line(progress.delegation(place)?, progress.wait(place), now),
    };
    let mut parts = vec![printable::line(&line.who)];
    if !line.what.is_empty() {
        parts.push(format!("\"{}\"", printable::short_line(&line.what, DESCRIPTION_CHARS_MAX)));
    }
    parts.push(line.state.0.to_owned());
    parts.extend(line.detail.map(|detail| printable::line(&detail)));
    parts.extend((line.turns > 0).then(|| turns(line.turns)));
    parts.extend(line.tokens.map(|count| tokens(Some(count))));
    parts.extend(line.ms.map(units::duration));
    parts.extend(line.wait);
    Some(parts.join("  "))
}

/// Whole seconds, and never none: a person reads it while the time runs.
fn waiting(wait: &Wait) -> String {
    let seconds = wait.ms.div_ceil(1_000).max(1);
    format!("waiting {seconds} s to ask again ({})", printable::line(&wait.reason))
}

fn turns(count: u32) -> String {
    if count == 0 { String::new() } else { units::counted(u64::from(count), "turn", "turns") }
}

fn tokens(count: Option<u64>) -> String {
    count.map(|count| format!("{} tok", units::tokens(count))).unwrap_or_default()
}

fn lead_line(progress: &Progress, now: Timestamp) -> Line {
    let lead = progress.lead();
    Line {
        who: "lead".to_owned(),
        state: run_state(lead.status),
        detail: lead.last_tool.clone().filter(|_| !lead.status.is_terminal()),
        turns: lead.turns,
        tokens: lead.usage.map(|usage| usage.total_tokens),
        ms: lead.started_at.map(|from| units::elapsed_ms(from, lead.ended_at.unwrap_or(now))),
        what: String::new(),
        wait: lead.wait.as_ref().map(waiting),
    }
}

fn delegation_line(head: &CardHead, wait: Option<&Wait>, now: Timestamp) -> Line {
    let entry = &head.entry;
    let stopped_by = entry.stop_reason.map(|reason| format!("({})", reason.label()));
    Line {
        who: entry.subagent_type.clone(),
        state: status::delegation(wire_status(entry.status)),
        detail: if entry.status.is_terminal() { stopped_by } else { head.last_tool.clone() },
        turns: head.turns,
        tokens: entry.usage.map(|usage| usage.total_tokens),
        ms: entry.started_at.map(|from| units::elapsed_ms(from, entry.ended_at.unwrap_or(now))),
        what: entry.description.clone(),
        wait: wait.map(waiting),
    }
}

const fn run_state(run: RunStatus) -> (&'static str, Tone) {
    use contracts::wire::run::RunStatus as Wire;
    status::run(match run {
        RunStatus::Pending => Wire::Pending,
        RunStatus::Running => Wire::Running,
        RunStatus::Success => Wire::Success,
        RunStatus::Error => Wire::Error,
        RunStatus::Interrupted => Wire::Interrupted,
        RunStatus::Timeout => Wire::Timeout,
    })
}

const fn wire_status(status: LedgerStatus) -> DelegationStatus {
    match status {
        LedgerStatus::Queued => DelegationStatus::Queued,
        LedgerStatus::InProgress => DelegationStatus::InProgress,
        LedgerStatus::Completed => DelegationStatus::Completed,
        LedgerStatus::Failed => DelegationStatus::Failed,
        LedgerStatus::Cancelled => DelegationStatus::Cancelled,
        LedgerStatus::TimedOut => DelegationStatus::TimedOut,
        LedgerStatus::PollingTimedOut => DelegationStatus::PollingTimedOut,
        LedgerStatus::Refused => DelegationStatus::Refused,
    }
}
