//! Receipts, packed: two views hold one for every tool call.

use domain::{
    ids::ToolCallId,
    receipt::{Receipt, ReceiptId, ReceiptOutcome},
};

use super::{Packer, Unpacker};

impl Packer<'_> {
    pub(crate) fn receipt(&mut self, receipt: &Receipt) {
        self.text(receipt.task_id.as_str());
        self.number(receipt.id.number().into());
        self.text(&receipt.tool_name);
        self.text(&receipt.tool_call_id);
        self.digest(&receipt.args_sha256);
        self.digest(&receipt.output_sha256);
        self.number(receipt.output_bytes);
        self.byte(match receipt.outcome {
            ReceiptOutcome::Ok => 0,
            ReceiptOutcome::Error => 1,
            ReceiptOutcome::Denied => 2,
            ReceiptOutcome::Unknown => 3,
        });
        self.time(receipt.started_at);
        self.number(receipt.duration_ms);
    }
}

impl Unpacker<'_> {
    pub(crate) fn receipt(&mut self) -> Option<Receipt> {
        Some(Receipt {
            task_id: ToolCallId::new(self.text()?).ok()?,
            id: ReceiptId::numbered(u32::try_from(self.number()?).ok()?),
            tool_name: self.text()?.to_owned(),
            tool_call_id: self.text()?.to_owned(),
            args_sha256: self.digest()?,
            output_sha256: self.digest()?,
            output_bytes: self.number()?,
            outcome: match self.byte()? {
                0 => ReceiptOutcome::Ok,
                1 => ReceiptOutcome::Error,
                2 => ReceiptOutcome::Denied,
                3 => ReceiptOutcome::Unknown,
                _ => return None,
            },
            started_at: self.time()?,
            duration_ms: self.number()?,
        })
    }
}
