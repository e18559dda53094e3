//! The card: one delegation, as a person looks at it.

use contracts::wire::{
    card::{Card, CardCall, CardStep, StepKind},
    delegation::DelegationStatus,
};
use serde_json::Value;

use super::{
    printable, receipts, status,
    table::{Cell, Column, untitled},
    tone::{Tone, bold, paint},
    units,
};
use crate::screen::Screen;

/// The prompt is cut to this; the JSON form has it whole.
const PROMPT_CHARS_MAX: usize = 400;
/// A call's arguments in a list of steps.
const ARGS_CHARS_MAX: usize = 200;

const FACTS: [Column; 2] = [Column::text(""), Column::flexible("")];
const STEPS: [Column; 3] = [Column::number(""), Column::words(""), Column::flexible("")];
const CHECKS: [Column; 3] = [Column::text(""), Column::flexible(""), Column::flexible("")];

/// The card as text.
pub(crate) fn card(screen: Screen, card: &Card) -> String {
    let title = printable::line(&card.description);
    let title = if title.is_empty() { "(no description)".to_owned() } else { title };
    let mut parts = vec![format!("{}\n{}", bold(&title, screen.colours), facts(screen, card))];
    let mut add = |name: &str, text: String| {
        if !text.is_empty() {
            parts.push(format!("{}\n{text}", bold(name, screen.colours)));
        }
    };
    add("Prompt", printable::lines(&cut(card.prompt.as_deref().unwrap_or_default())));
    add("Steps", steps(screen, card));
    add("Caps", caps(screen, card));
    add("Receipts", receipts::of_card(screen, &card.receipts));
    add("Citations", citations(screen, card));
    add("Acceptance", acceptance(screen, card));
    add("Result", printable::lines(card.result.as_deref().unwrap_or_default().trim_end()));
    let error = printable::lines(card.error.as_deref().unwrap_or_default().trim_end());
    add("Error", if error.is_empty() { error } else { paint(&error, Tone::Bad, screen.colours) });
    parts.join("\n\n")
}

fn cut(text: &str) -> String {
    let cut = domain::text::prefix(text.trim(), PROMPT_CHARS_MAX);
    if cut.is_truncated { format!("{}…", cut.text) } else { cut.text }
}

fn facts(screen: Screen, card: &Card) -> String {
    let (state, tone) = status::capped_delegation(card.status, card.stop_reason);
    let used = format!("{}, {}", units::counted(u64::from(card.turns), "turn", "turns"), tokens(card));
    let used = match card.compactions {
        0 => used,
        times => format!("{used}, compacted {}", units::counted(u64::from(times), "time", "times")),
    };
    let rows = [
        ("task", Cell::new(&card.task_id)),
        ("delegation", Cell::new(&card.delegation_id)),
        ("type", Cell::new(&card.subagent_type)),
        ("status", Cell::toned(state, tone)),
        ("model", Cell::optional(card.model_name.as_deref())),
        ("used", Cell::new(used)),
        ("as of", Cell::new(format!("seq {}", card.seq))),
    ];
    untitled(
        screen,
        &FACTS,
        rows.into_iter().map(|(name, cell)| vec![Cell::toned(name, Tone::Dim), cell]).collect(),
    )
}

/// Tokens, or why there are none (facts §11.3).
fn tokens(card: &Card) -> String {
    match card.usage {
        Some(usage) => format!("{} tokens", units::tokens(usage.total_tokens)),
        None if is_terminal(card.status) => "no usage".to_owned(),
        None => "collecting usage".to_owned(),
    }
}

const fn is_terminal(status: DelegationStatus) -> bool {
    match status {
        DelegationStatus::Queued | DelegationStatus::InProgress => false,
        DelegationStatus::Completed
        | DelegationStatus::Failed
        | DelegationStatus::Cancelled
        | DelegationStatus::TimedOut
        | DelegationStatus::PollingTimedOut
        | DelegationStatus::Refused => true,
    }
}

/// One row per visible step; a tool's row also says what it was called with.
fn steps(screen: Screen, card: &Card) -> String {
    let mut rows = Vec::new();
    let mut calls: std::slice::Iter<'_, CardCall> = [].iter();
    let hidden = trailing_answer(card);
    for step in &card.steps {
        match step.kind {
            StepKind::Ai => {
                calls = step.tool_calls.as_deref().unwrap_or_default().iter();
                if !step.text.trim().is_empty() && hidden != Some(step.message_index) {
                    rows.push(row(step, Cell::toned("says", Tone::Dim), Cell::new(&step.text)));
                }
            }
            StepKind::Tool => {
                let name = step.tool_name.as_deref().unwrap_or("?");
                let args = calls.next().filter(|call| call.name == name).map(args_text).unwrap_or_default();
                rows.push(row(step, Cell::toned(name, Tone::Busy), Cell::new(args)));
            }
        }
    }
    untitled(screen, &STEPS, rows)
}

fn row(step: &CardStep, what: Cell, text: Cell) -> Vec<Cell> {
    vec![Cell::toned(step.message_index.to_string(), Tone::Dim), what, text]
}

/// The answer of a completed subagent is its result, and is not shown twice (facts §11.3).
fn trailing_answer(card: &Card) -> Option<u32> {
    let last = card.steps.last().filter(|_| card.status == DelegationStatus::Completed)?;
    let has_calls = last.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty());
    (last.kind == StepKind::Ai && !has_calls).then_some(last.message_index)
}

fn args_text(call: &CardCall) -> String {
    let text = match &call.args {
        Value::String(text) => printable::line(text),
        args @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            args.to_string()
        }
    };
    printable::short_line(&text, ARGS_CHARS_MAX)
}

fn caps(screen: Screen, card: &Card) -> String {
    let rows = card.caps.iter().map(|cap| {
        let tone = if cap.action == "stop" { Tone::Bad } else { Tone::Warn };
        let used = format!("{} of {}", units::grouped(cap.used), units::grouped(cap.budget));
        vec![Cell::toned(&cap.action, tone), Cell::new(&cap.axis), Cell::new(used)]
    });
    untitled(screen, &CHECKS, rows.collect())
}

fn citations(screen: Screen, card: &Card) -> String {
    let Some(citations) = &card.citations else { return String::new() };
    let (overall, tone) = status::citations(citations.overall);
    let mut text = paint(overall, tone, screen.colours);
    let rows = citations.items.iter().map(|citation| {
        let (verdict, tone) = status::citation(citation.verdict);
        vec![Cell::toned(verdict, tone), Cell::new(&citation.text), Cell::new("")]
    });
    let listed = untitled(screen, &CHECKS, rows.collect());
    if !listed.is_empty() {
        text.push('\n');
        text.push_str(&listed);
    }
    text
}

fn acceptance(screen: Screen, card: &Card) -> String {
    let rows = card.acceptance.iter().map(|criterion| {
        let (verdict, tone) = status::acceptance(criterion.verdict);
        let evidence = criterion.evidence.as_deref().unwrap_or_default();
        vec![Cell::toned(verdict, tone), Cell::new(&criterion.criterion), Cell::new(evidence)]
    });
    untitled(screen, &CHECKS, rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn a_card_shows_what_was_claimed_beside_what_happened() {
        insta::assert_snapshot!(card(Screen::plain(Some(80)), &samples::card()));
    }

    // Facts §12 line 126.
    #[test]
    fn the_trailing_answer_is_hidden_only_when_it_is_the_result() {
        let completed = samples::card();
        let failed = Card { status: DelegationStatus::Failed, ..completed.clone() };
        let shows_answer = |card: &Card| steps(Screen::plain(None), card).contains("Twelve files");
        assert!(!shows_answer(&completed) && shows_answer(&failed));
        assert!(
            !steps(Screen::plain(None), &failed).lines().any(|line| line.starts_with('1')),
            "a blank reply"
        );
    }

    #[test]
    fn a_card_without_usage_says_whether_there_will_be_any() {
        let mut card = Card { usage: None, ..samples::card() };
        assert_eq!(tokens(&card), "no usage");
        card.status = DelegationStatus::InProgress;
        assert_eq!(tokens(&card), "collecting usage");
    }

    #[test]
    fn a_bare_card_has_no_empty_parts() {
        let bare = Card {
            prompt: None,
            steps: Vec::new(),
            caps: Vec::new(),
            receipts: Vec::new(),
            citations: None,
            acceptance: Vec::new(),
            result: None,
            error: Some("bash is not available".into()),
            status: DelegationStatus::Refused,
            ..samples::card()
        };
        insta::assert_snapshot!(super::card(Screen::plain(Some(80)), &bare));
    }
}
