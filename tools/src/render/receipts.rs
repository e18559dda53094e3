//! Receipts: evidence that tool calls ended, whatever anybody says about them.

use contracts::wire::evidence::{OwnedReceipt, Receipt};

use super::{
    status,
    table::{Cell, Column, table, untitled},
    tone::{Tone, paint},
    units,
};
use crate::screen::Screen;

/// Digests are cut to this in tables; JSON has them whole.
const DIGEST_CHARS: usize = 12;

const COLUMNS: [Column; 8] = [
    Column::id("TASK"),
    Column::text("RECEIPT"),
    Column::words("TOOL"),
    Column::text("OUTCOME"),
    Column::number("TIME").dropped_as(2),
    Column::number("OUTPUT").dropped_as(1),
    Column::text("OUTPUT SHA-256").dropped_as(0),
    Column::number("SEQ").dropped_as(3),
];

/// The receipts of several delegations, each with its task.
pub(crate) fn receipts(screen: Screen, receipts: &[OwnedReceipt]) -> String {
    if receipts.is_empty() {
        return paint("no receipts: no tool call of a subagent has ended", Tone::Dim, screen.colours);
    }
    let rows = receipts.iter().map(|owned| {
        let mut cells = vec![Cell::new(&owned.task_id)];
        cells.extend(row(&owned.receipt));
        cells
    });
    table(screen, &COLUMNS, rows.collect())
}

/// The receipts of one delegation, as a part of its card.
pub(super) fn of_card(screen: Screen, receipts: &[Receipt]) -> String {
    let columns = COLUMNS.get(1..).unwrap_or_default();
    untitled(screen, columns, receipts.iter().map(row).collect())
}

fn row(receipt: &Receipt) -> Vec<Cell> {
    let (outcome, tone) = status::receipt(receipt.outcome);
    let digest: String = receipt.output_sha256.chars().take(DIGEST_CHARS).collect();
    vec![
        Cell::new(&receipt.id),
        Cell::new(&receipt.tool_name),
        Cell::toned(outcome, tone),
        Cell::new(units::duration(receipt.duration_ms)),
        Cell::new(units::bytes(receipt.output_bytes)),
        Cell::toned(digest, Tone::Dim),
        Cell::toned(receipt.seq.to_string(), Tone::Dim),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn receipts_name_their_task() {
        let owned = |receipt| OwnedReceipt {
            run_id: Some("r".into()),
            task_id: "call_1".into(),
            delegation_id: "d".into(),
            receipt,
        };
        let listed: Vec<_> = samples::card().receipts.into_iter().map(owned).collect();
        for width in [40, 80, 100] {
            let shown = receipts(Screen::plain(Some(width)), &listed);
            insta::assert_snapshot!(format!("receipts_on_{width}_columns"), shown);
        }
    }
}
