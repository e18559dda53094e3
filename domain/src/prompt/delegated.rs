//! The list of what a lead has delegated, as it is shown to the lead (chain facts (b),
//! "Rendering"). The words are ours; order, bounds and meaning are the contract's.

use crate::{
    agent::DelegatedTask,
    ledger::LedgerStatus,
    limits::SHOWN_BRIEF_CHARS_MAX,
    sanitise::{escape, neutralise},
    status_contract::StopReason,
    text,
};

const HEADING: &str = "## Work that was delegated already";
const MEANING: &str = "\
Newest first. What is in progress or completed is not to be delegated again; what failed, was cancelled or ran out of \
time was an attempt.";

/// What ends a list that had to be cut.
const CUT_MARK: &str = "\n...";

/// The list within its bound; `None` when nothing was delegated.
pub(crate) fn delegated_work(tasks: &[DelegatedTask], chars_max: usize) -> Option<String> {
    if tasks.is_empty() {
        return None;
    }
    let opening = format!("{HEADING}\n{MEANING}");
    let entries: Vec<String> = tasks.iter().rev().map(entry).collect();
    let mut listed = fitting(&opening, &entries, chars_max);
    loop {
        let text = listing(&opening, &entries, listed);
        let is_within = text.chars().count() <= chars_max;
        if is_within {
            return Some(text);
        }
        if listed == 0 {
            let cut = text::prefix(&text, chars_max.saturating_sub(CUT_MARK.len())).text;
            return Some(cut + CUT_MARK);
        }
        listed -= 1;
    }
}

/// How many entries fit behind the opening; the first that does not fit ends the list.
fn fitting(opening: &str, entries: &[String], chars_max: usize) -> usize {
    let mut used = opening.chars().count();
    let fits = |entry: &&String| {
        used += 1 + entry.chars().count();
        used <= chars_max
    };
    entries.iter().take_while(fits).count()
}

fn listing(opening: &str, entries: &[String], listed: usize) -> String {
    let omitted = entries.len() - listed;
    let note = (omitted > 0).then(|| format!("({omitted} more, older or longer, are left out.)"));
    let lines = entries.iter().take(listed).map(String::as_str);
    [opening].into_iter().chain(lines).chain(note.as_deref()).collect::<Vec<_>>().join("\n")
}

fn entry(task: &DelegatedTask) -> String {
    let value = |text: &str| neutralise(&escape(&text::one_line(text)));
    let description = value(&task.description);
    let (status, kind) = (task.status.as_str(), value(&task.subagent_type));
    let line = format!("- [{status}] {description} via {kind} ({})", guidance(task.status, task.stop_reason));
    match &task.brief {
        Some(brief) => format!("{line} → {}", value(&text::head_and_tail(brief, SHOWN_BRIEF_CHARS_MAX).text)),
        None => line,
    }
}

fn guidance(status: LedgerStatus, stop_reason: Option<StopReason>) -> String {
    if let Some(reason) = stop_reason {
        let what = match status {
            LedgerStatus::Completed => "partial result: use it",
            LedgerStatus::Queued
            | LedgerStatus::InProgress
            | LedgerStatus::Failed
            | LedgerStatus::Cancelled
            | LedgerStatus::TimedOut
            | LedgerStatus::PollingTimedOut
            | LedgerStatus::Refused => "no usable result",
        };
        let label = reason.label();
        return format!("{what}; ended by {label}: ask for less, or have max_turns or token_budget raised");
    }
    let text = match status {
        LedgerStatus::Queued | LedgerStatus::InProgress => {
            "do not delegate it again: wait for it, or build on it"
        }
        LedgerStatus::Completed => "do not delegate it again: use its result",
        LedgerStatus::Failed
        | LedgerStatus::Cancelled
        | LedgerStatus::TimedOut
        | LedgerStatus::PollingTimedOut
        | LedgerStatus::Refused => "an attempt: again only with a changed plan",
    };
    text.to_owned()
}
