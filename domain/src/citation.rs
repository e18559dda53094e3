//! Citations: how a subagent's report points at its receipts. One function writes them, for
//! examples in prompts, and one finds them, so the two cannot disagree.

mod verdict;

pub use self::verdict::{CheckedCitation, Citations, Cited, Overall, Verdict};
use crate::receipt::ReceiptId;

/// A citation in a report. That it is well formed says nothing of whether the receipt exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// The citation as the report spells it.
    pub text: String,
    /// The receipt that it names.
    pub receipt_id: ReceiptId,
    /// The tool that it names.
    pub tool_name: String,
}

/// Writes a citation: `[r3 bash]`.
pub fn format_citation(receipt_id: ReceiptId, tool_name: &str) -> String {
    format!("[{receipt_id} {tool_name}]")
}

/// Finds every citation of a report, in order, repeated ones each time.
///
/// The number may be any: `[r0 bash]` and one with too many digits are citations of receipts that
/// do not exist, not ordinary text, so that an invented one is still seen.
pub fn parse_citations(report: &str) -> Vec<Citation> {
    // A bracket that opens a citation has no other bracket before its end.
    report.split('[').skip(1).filter_map(parse_one).collect()
}

/// Reads `r3 bash]…`: what follows an opening bracket.
fn parse_one(text: &str) -> Option<Citation> {
    let (inside, _) = text.split_once(']')?;
    let (name, tool_name) = inside.split_once(' ')?;
    let digits = name.strip_prefix('r').filter(|digits| !digits.is_empty())?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_tool = !tool_name.is_empty() && !tool_name.chars().any(char::is_whitespace);
    (is_number && is_tool).then(|| Citation {
        text: format!("[{inside}]"),
        receipt_id: ReceiptId::numbered(digits.parse().unwrap_or(u32::MAX)),
        tool_name: tool_name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(report: &str, expected: &[(u32, &str)]) {
        let found: Vec<_> = parse_citations(report)
            .into_iter()
            .map(|citation| {
                assert!(report.contains(&citation.text), "{report:?} has no {:?}", citation.text);
                (citation.receipt_id.number(), citation.tool_name)
            })
            .collect();
        let found: Vec<_> = found.iter().map(|(number, tool)| (*number, tool.as_str())).collect();
        assert_eq!(found, expected, "{report:?}");
    }

    #[test]
    fn citations_are_found_where_they_are_well_formed() {
        check("wrote it [r1 write_file] and ran it [r2 bash].", &[(1, "write_file"), (2, "bash")]);
        check("[r2 bash][r2 bash]", &[(2, "bash"), (2, "bash")]);
        check("[[r3 mcp-x_y.z]]", &[(3, "mcp-x_y.z")]);
        check("[see [r4 ls] there]", &[(4, "ls")]);
        for none in [
            "",
            "r1 bash",
            "[r1]",
            "[r bash]",
            "[r1 ]",
            "[R1 bash]",
            "[r1  bash]",
            "[r1 bash",
            "[r+1 a]",
            "[r1 a b]",
        ] {
            check(none, &[]);
        }
    }

    #[test]
    fn an_invented_receipt_is_still_a_citation() {
        check("[r0 bash] [r99999999999 bash] [r007 ls]", &[(0, "bash"), (u32::MAX, "bash"), (7, "ls")]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_found(number in 1_u32.., tool in "[A-Za-z0-9_-]{1,20}", around in "[a-z .\n\\]]{0,20}") {
            let written = format_citation(ReceiptId::numbered(number), &tool);
            let found = parse_citations(&format!("{around}{written}{around}"));
            let expected = Citation { text: written, receipt_id: ReceiptId::numbered(number), tool_name: tool };
            prop_assert_eq!(found, [expected]);
        }
    }
}
