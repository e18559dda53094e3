//! Receipts of one run, packed into a chunk.
//!
//! ```text
//! receipt  number of the seq · u8 whether a run follows · [text run_id] · 16 delegation_id · receipt
//! ```

use domain::ids::{DelegationId, RunId};

use super::ReceiptRow;
use crate::{
    keys::Row,
    packed::{Packer, Unpacker, flaw},
};

/// Receipts that were added one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Receipts(Vec<u8>);

impl Row for Receipts {
    fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        Ok(self.0.clone())
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(Self(bytes.to_vec()))
    }
}

impl Receipts {
    /// Adds a receipt.
    pub(crate) fn push(&mut self, row: &ReceiptRow) {
        let mut packer = Packer(&mut self.0);
        packer.number(row.seq);
        packer.byte(row.run_id.is_some().into());
        if let Some(run_id) = &row.run_id {
            packer.text(run_id.as_str());
        }
        packer.uuid(row.delegation_id.as_uuid());
        packer.receipt(&row.receipt);
    }

    /// The receipts.
    pub(crate) fn unpacked(&self) -> Result<Vec<ReceiptRow>, serde_json::Error> {
        let (mut rows, mut unpacker) = (Vec::new(), Unpacker(&self.0));
        while !unpacker.is_empty() {
            rows.push(unpack(&mut unpacker).ok_or_else(|| flaw("a receipt is not as it was packed"))?);
        }
        Ok(rows)
    }
}

fn unpack(unpacker: &mut Unpacker<'_>) -> Option<ReceiptRow> {
    Some(ReceiptRow {
        seq: unpacker.number()?,
        run_id: if unpacker.flag()? { Some(RunId::new(unpacker.text()?).ok()?) } else { None },
        delegation_id: DelegationId::from_uuid(unpacker.uuid()?),
        receipt: unpacker.receipt()?,
    })
}

#[cfg(test)]
mod tests {
    use domain::{
        ids::ToolCallId,
        receipt::{Receipt, ReceiptId, ReceiptOutcome},
    };
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;

    fn row(seq: u64, run: Option<&str>) -> ReceiptRow {
        let receipt = Receipt {
            task_id: ToolCallId::new("call_1").unwrap(),
            id: ReceiptId::numbered(1),
            tool_name: "ls".to_owned(),
            tool_call_id: "c".to_owned(),
            args_sha256: "ab".repeat(32),
            output_sha256: String::new(),
            output_bytes: seq,
            outcome: ReceiptOutcome::Ok,
            started_at: Timestamp::UNIX_EPOCH,
            duration_ms: 0,
        };
        let run_id = run.map(|run| RunId::new(run).unwrap());
        ReceiptRow {
            seq,
            run_id,
            delegation_id: DelegationId::from_uuid(Uuid::from_u128(seq.into())),
            receipt,
        }
    }

    #[test]
    fn receipts_come_back_as_they_were_added() {
        let (mut packed, rows) =
            (Receipts::default(), [row(1, Some("r")), row(9, None), row(u64::MAX, Some("q"))]);
        rows.iter().for_each(|row| packed.push(row));
        let bytes = packed.to_bytes().unwrap();
        assert_eq!(Receipts::from_bytes(&bytes).unwrap().unpacked().unwrap(), rows);
        for length in 0..bytes.len() {
            let cut = Receipts::from_bytes(&bytes[..length]).unwrap().unpacked();
            assert!(cut.is_err() || rows.starts_with(&cut.unwrap()), "{length} bytes");
        }
    }
}
