//! Holds a report's citations against the receipts that were there when it was written. What comes
//! of it says that the cited calls happened, never that what is claimed of them is right.

use serde::{Deserialize, Serialize};

use super::parse_citations;
use crate::{
    limits::CITED_RECEIPTS_MAX,
    receipt::{Receipt, ReceiptId, ReceiptOutcome},
};

/// All citations of a report together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overall {
    /// There are some, and all of them resolve.
    Verified,
    /// Some resolve and some do not.
    Partial,
    /// None resolves, or there is none.
    Unverified,
    /// Receipts are disabled.
    Off,
}

/// One citation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The call happened and did what was asked.
    Resolved,
    /// There was no such receipt when the report was written.
    UnknownReceipt,
    /// The receipt is another tool's.
    WrongTool,
    /// The receipt is older than the newest that count.
    Omitted,
    /// The call happened and did not do what was asked.
    CitesFailedCall,
}

/// One citation and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedCitation {
    /// The citation as the report spells it.
    pub text: String,
    /// The receipt that it names.
    pub receipt_id: ReceiptId,
    /// The tool that it names.
    pub tool_name: String,
    /// Whether it holds.
    pub verdict: Verdict,
}

/// A report's citations, each once, in the order in which they first stand there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citations {
    /// All together.
    pub overall: Overall,
    /// Each citation; at most as many as there are receipts that count.
    pub items: Vec<CheckedCitation>,
}

/// What a citation is held against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cited {
    id: ReceiptId,
    tool_name: String,
    outcome: ReceiptOutcome,
}

impl From<&Receipt> for Cited {
    fn from(receipt: &Receipt) -> Self {
        Self { id: receipt.id, tool_name: receipt.tool_name.clone(), outcome: receipt.outcome }
    }
}

impl Citations {
    /// What is said of a report when receipts are disabled.
    pub const OFF: Self = Self { overall: Overall::Off, items: Vec::new() };

    /// Holds the report against the receipts that were there when it was written, oldest first.
    pub fn check(report: &str, receipts: &[Cited]) -> Self {
        let omitted = receipts.len().saturating_sub(CITED_RECEIPTS_MAX);
        let (older, counting) = receipts.split_at(omitted);
        let mut items: Vec<CheckedCitation> = Vec::new();
        for citation in parse_citations(report) {
            let is_new = items.iter().all(|known| known.text != citation.text);
            if is_new && items.len() < CITED_RECEIPTS_MAX {
                let verdict = verdict(citation.receipt_id, &citation.tool_name, older, counting);
                let super::Citation { text, receipt_id, tool_name } = citation;
                items.push(CheckedCitation { text, receipt_id, tool_name, verdict });
            }
        }
        Self { overall: overall(&items), items }
    }

    /// The one line that the lead reads; nothing when receipts are disabled.
    pub fn line(&self) -> Option<String> {
        let resolved = self.items.iter().filter(|item| item.verdict == Verdict::Resolved).count();
        let counted = match self.overall {
            Overall::Off => return None,
            Overall::Unverified if self.items.is_empty() => "UNVERIFIED, it cites no tool call".to_owned(),
            Overall::Unverified => format!("UNVERIFIED, 0 of {} resolve", self.items.len()),
            Overall::Partial => format!("PARTIAL, {resolved} of {} resolve", self.items.len()),
            Overall::Verified => format!("VERIFIED, all {resolved} resolve"),
        };
        let bad =
            self.items.iter().filter(|item| item.verdict != Verdict::Resolved).map(CheckedCitation::problem);
        let bad: Vec<String> = bad.take(PROBLEMS_SHOWN_MAX).collect();
        let bad = if bad.is_empty() { String::new() } else { format!(" ({})", bad.join("; ")) };
        Some(format!(
            "Citations: {counted}{bad}. Resolved means that the call happened, not that the claim is right."
        ))
    }
}

/// Problems that the lead's line names; the ledger and the card have them all.
const PROBLEMS_SHOWN_MAX: usize = 5;

impl CheckedCitation {
    fn problem(&self) -> String {
        let problem = match self.verdict {
            Verdict::Resolved => "resolves",
            Verdict::UnknownReceipt => "no such receipt",
            Verdict::WrongTool => "another tool's receipt",
            Verdict::Omitted => "too old to count",
            Verdict::CitesFailedCall => "that call failed",
        };
        format!("{}: {problem}", self.text)
    }
}

fn verdict(id: ReceiptId, tool_name: &str, older: &[Cited], counting: &[Cited]) -> Verdict {
    let Some(cited) = counting.iter().find(|cited| cited.id == id) else {
        let is_older = older.iter().any(|cited| cited.id == id);
        return if is_older { Verdict::Omitted } else { Verdict::UnknownReceipt };
    };
    match cited.outcome {
        _ if cited.tool_name != tool_name => Verdict::WrongTool,
        ReceiptOutcome::Ok => Verdict::Resolved,
        ReceiptOutcome::Error | ReceiptOutcome::Denied | ReceiptOutcome::Unknown => Verdict::CitesFailedCall,
    }
}

fn overall(items: &[CheckedCitation]) -> Overall {
    let resolved = items.iter().filter(|item| item.verdict == Verdict::Resolved).count();
    match resolved {
        0 => Overall::Unverified,
        all if all == items.len() => Overall::Verified,
        _ => Overall::Partial,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cited(number: u32, tool_name: &str, outcome: ReceiptOutcome) -> Cited {
        Cited { id: ReceiptId::numbered(number), tool_name: tool_name.into(), outcome }
    }

    fn receipts() -> Vec<Cited> {
        vec![
            cited(1, "read_file", ReceiptOutcome::Ok),
            cited(2, "write_file", ReceiptOutcome::Ok),
            cited(3, "bash", ReceiptOutcome::Error),
        ]
    }

    #[track_caller]
    fn check(report: &str, overall: Overall, verdicts: &[Verdict]) {
        let citations = Citations::check(report, &receipts());
        let found: Vec<_> = citations.items.iter().map(|item| item.verdict).collect();
        assert_eq!((citations.overall, found.as_slice()), (overall, verdicts), "{report:?}");
    }

    // Field report 28: a claim stands beside the receipt that it cites.
    #[test]
    fn citations_are_held_against_receipts() {
        use Verdict as V;
        check(
            "read it [r1 read_file] and wrote it [r2 write_file]",
            Overall::Verified,
            &[V::Resolved, V::Resolved],
        );
        check("wrote it [r1 write_file]", Overall::Unverified, &[V::WrongTool]);
        check(
            "ran it [r3 bash], read it [r1 read_file]",
            Overall::Partial,
            &[V::CitesFailedCall, V::Resolved],
        );
        check("[r9 ls] [r0 ls]", Overall::Unverified, &[V::UnknownReceipt, V::UnknownReceipt]);
        check("[r1 read_file] and again [r1 read_file]", Overall::Verified, &[V::Resolved]);
        check("trust me", Overall::Unverified, &[]);
    }

    #[test]
    fn only_the_newest_receipts_count() {
        let many: Vec<Cited> = (1..=70).map(|number| cited(number, "ls", ReceiptOutcome::Ok)).collect();
        let citations = Citations::check("[r6 ls] [r7 ls]", &many);
        let found: Vec<_> = citations.items.iter().map(|item| item.verdict).collect();
        assert_eq!(found, [Verdict::Omitted, Verdict::Resolved]);
    }

    #[test]
    fn the_lead_s_line_says_what_resolved_means() {
        let line = |report: &str| Citations::check(report, &receipts()).line().unwrap_or_default();
        let meaning = "Resolved means that the call happened, not that the claim is right.";
        assert_eq!(line("[r1 read_file]"), format!("Citations: VERIFIED, all 1 resolve. {meaning}"));
        assert_eq!(line("trust me"), format!("Citations: UNVERIFIED, it cites no tool call. {meaning}"));
        let partial = "Citations: PARTIAL, 1 of 2 resolve ([r9 ls]: no such receipt). ";
        assert_eq!(line("[r1 read_file] [r9 ls]"), format!("{partial}{meaning}"));
        assert_eq!(Citations::OFF.line(), None);
    }
}
