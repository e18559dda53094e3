//! What every subagent's report has to hold (facts §3.10).

use crate::{citation::format_citation, receipt::ReceiptId};

/// The contract. Without receipts nothing is checked, and then it promises no check.
pub(super) fn report_contract(receipts_enabled: bool) -> String {
    let (opening, citations) =
        if receipts_enabled { (CHECKED_OPENING, citation_rule()) } else { (PLAIN_OPENING, String::new()) };
    format!("<report_contract>\n{opening}\n{citations}{RULES}\n</report_contract>")
}

const CHECKED_OPENING: &str = "\
Your report is compared with the record of your tool calls. Each call that ended has a receipt there: the first tool \
result that you get is r1, the next r2, and so on.";

const PLAIN_OPENING: &str = "Your report has to be such that its reader can check it.";

const RULES: &str = "\
- For each thing that you deliver, name something that can be looked up: a full path, a URL, an identifier or an HTTP \
status code.
- Say what failed, what you left out and what you could not check. A gap that is named is worth more than a claim that \
does not hold.";

/// The examples are written by the function that citations are read against.
fn citation_rule() -> String {
    let example = |number, tool_name| format_citation(ReceiptId::numbered(number), tool_name);
    format!(
        "- For each action that you claim, cite its receipt in the form `[rN tool_name]`, such as `{}` or `{}`, with the \
         tool's name as you called it. Cite nothing that you did not do.\n",
        example(1, "write_file"),
        example(3, "bash"),
    )
}
