//! Where the work of a delegation can be looked up: what its lead and programs are told with the
//! result.

use domain::{
    citation::Citations,
    event::{Scope, SubagentEnded},
    receipt::ReceiptId,
};
use serde_json::{Map, Value, json};

/// Where the work of a delegation can be looked up.
#[derive(Debug, Clone)]
pub(crate) struct Trail {
    scope: Scope,
    turns: u32,
    steps: u32,
    receipts: u32,
    citations: Option<Citations>,
}

impl Trail {
    pub(super) fn of(scope: &Scope, end: &SubagentEnded) -> Self {
        Self {
            scope: scope.clone(),
            turns: end.turns,
            steps: end.steps,
            receipts: end.receipts,
            citations: end.citations.clone(),
        }
    }

    /// Additive keys of the tool message's metadata.
    pub(crate) fn metadata(&self) -> Map<String, Value> {
        let last = (self.receipts > 0).then(|| ReceiptId::numbered(self.receipts));
        Map::from_iter([
            ("delegation_id".to_owned(), json!(self.scope.delegation_id)),
            ("subagent_turns".to_owned(), json!(self.turns)),
            ("subagent_steps".to_owned(), json!(self.steps)),
            ("subagent_last_receipt".to_owned(), json!(last)),
            ("subagent_citations".to_owned(), json!(self.citations)),
        ])
    }

    /// What became of the citations of a usable result, for the lead to read.
    pub(crate) fn citation_line(&self) -> Option<String> {
        self.citations.as_ref()?.line()
    }

    /// Where the work of a delegation without a usable result can be looked up.
    pub(crate) fn text(&self) -> String {
        let id = self.scope.delegation_id.map(|id| id.to_string()).unwrap_or_default();
        let last = if self.receipts > 0 {
            format!(", last receipt {}", ReceiptId::numbered(self.receipts))
        } else {
            String::new()
        };
        format!("\nPartial work: delegation {id}, {} turns, {} steps{last}.", self.turns, self.steps)
    }
}
