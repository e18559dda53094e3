//! Parts of a card, packed into a chunk.
//!
//! ```text
//! part     number of the seq · u8 what it is · what follows
//! step     0  text task_id · number message_index · u8 truncated · text · u8 kind
//!             0 (ai) number of calls, each: text name · text args as JSON · u8 args_truncated
//!             1 (tool) text tool_name
//! receipt  1  receipt
//! cap      2  time · text of the cap as JSON
//! ```

use domain::{
    card::CardPart,
    event::{CapturedCall, Step, StepBody},
    ids::ToolCallId,
};
use serde::Serialize;

use crate::{
    keys::Row,
    packed::{Packer, Unpacker, flaw},
};

const STEP: u8 = 0;
const RECEIPT: u8 = 1;
const CAP: u8 = 2;
const AI: u8 = 0;
const TOOL: u8 = 1;

/// A part of a card, and the seq of the event that added it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PlacedPart {
    pub(crate) seq: u64,
    pub(crate) part: CardPart,
}

/// Parts that were added one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CardParts(Vec<u8>);

impl Row for CardParts {
    fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        Ok(self.0.clone())
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(Self(bytes.to_vec()))
    }
}

impl CardParts {
    /// Adds a part.
    pub(crate) fn push(&mut self, seq: u64, part: &CardPart) -> Result<(), serde_json::Error> {
        let mut packer = Packer(&mut self.0);
        packer.number(seq);
        match part {
            CardPart::Step(step) => {
                packer.byte(STEP);
                pack_step(&mut packer, step)?;
            }
            CardPart::Receipt { receipt, .. } => {
                packer.byte(RECEIPT);
                packer.receipt(receipt);
            }
            CardPart::Cap { cap, at, .. } => {
                packer.byte(CAP);
                packer.time(*at);
                packer.text(&serde_json::to_string(cap)?);
            }
        }
        Ok(())
    }

    /// Adds the parts to others.
    pub(crate) fn unpack_into(&self, parts: &mut Vec<PlacedPart>) -> Result<(), serde_json::Error> {
        let mut unpacker = Unpacker(&self.0);
        while !unpacker.is_empty() {
            parts
                .push(unpack(&mut unpacker).ok_or_else(|| flaw("a part of a card is not as it was packed"))?);
        }
        Ok(())
    }

    /// The parts.
    pub(crate) fn unpacked(&self) -> Result<Vec<PlacedPart>, serde_json::Error> {
        let mut parts = Vec::new();
        self.unpack_into(&mut parts)?;
        Ok(parts)
    }
}

fn pack_step(packer: &mut Packer<'_>, step: &Step) -> Result<(), serde_json::Error> {
    packer.text(step.task_id.as_str());
    packer.number(step.message_index.into());
    packer.byte(step.truncated.into());
    packer.text(&step.text);
    match &step.body {
        StepBody::Ai { tool_calls } => {
            packer.byte(AI);
            packer.number(tool_calls.len() as u64);
            for CapturedCall { name, args, args_truncated } in tool_calls {
                packer.text(name);
                packer.text(&serde_json::to_string(args)?);
                packer.byte((*args_truncated).into());
            }
        }
        StepBody::Tool { tool_name } => {
            packer.byte(TOOL);
            packer.text(tool_name);
        }
    }
    Ok(())
}

fn unpack(unpacker: &mut Unpacker<'_>) -> Option<PlacedPart> {
    let seq = unpacker.number()?;
    let part = match unpacker.byte()? {
        STEP => CardPart::Step(unpack_step(unpacker)?),
        RECEIPT => CardPart::Receipt { receipt: unpacker.receipt()?, seq },
        CAP => {
            let at = unpacker.time()?;
            CardPart::Cap { cap: serde_json::from_str(unpacker.text()?).ok()?, at, seq }
        }
        _ => return None,
    };
    Some(PlacedPart { seq, part })
}

fn unpack_step(unpacker: &mut Unpacker<'_>) -> Option<Step> {
    let task_id = ToolCallId::new(unpacker.text()?).ok()?;
    let message_index = u32::try_from(unpacker.number()?).ok()?;
    let truncated = unpacker.flag()?;
    let text = unpacker.text()?.to_owned();
    let body = match unpacker.byte()? {
        AI => StepBody::Ai { tool_calls: unpack_calls(unpacker)? },
        TOOL => StepBody::Tool { tool_name: unpacker.text()?.to_owned() },
        _ => return None,
    };
    Some(Step { task_id, message_index, text, truncated, body })
}

fn unpack_calls(unpacker: &mut Unpacker<'_>) -> Option<Vec<CapturedCall>> {
    let mut calls = Vec::new();
    for _ in 0..unpacker.number()? {
        calls.push(CapturedCall {
            name: unpacker.text()?.to_owned(),
            args: serde_json::from_str(unpacker.text()?).ok()?,
            args_truncated: unpacker.flag()?,
        });
    }
    Some(calls)
}

#[cfg(test)]
mod tests {
    use domain::{
        event::{Cap, CapAction, CapAxis},
        receipt::{Receipt, ReceiptId, ReceiptOutcome},
    };
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn parts() -> Vec<PlacedPart> {
        let task_id = ToolCallId::new("call_ä").unwrap();
        let step = |message_index, body| {
            let (task_id, text) = (task_id.clone(), "said \"\u{1F600}\n\0".to_owned());
            CardPart::Step(Step { task_id, message_index, text, truncated: message_index == 1, body })
        };
        let call = |args, args_truncated| CapturedCall { name: "read".to_owned(), args, args_truncated };
        let calls = vec![call(json!({ "b": [1, -2.5, null], "a": {} }), false), call(json!("cut"), true)];
        let receipt = Receipt {
            task_id: task_id.clone(),
            id: ReceiptId::numbered(7),
            tool_name: "read".to_owned(),
            tool_call_id: "c".to_owned(),
            args_sha256: "0f".repeat(32),
            output_sha256: "no digest".to_owned(),
            output_bytes: 1 << 40,
            outcome: ReceiptOutcome::Denied,
            started_at: Timestamp::UNIX_EPOCH,
            duration_ms: 3,
        };
        let cap = Cap { axis: CapAxis::Loop, action: CapAction::Stop, used: 5, budget: 5 };
        let all = [
            step(0, StepBody::Ai { tool_calls: calls }),
            step(1, StepBody::Ai { tool_calls: Vec::new() }),
            step(u32::MAX, StepBody::Tool { tool_name: "bash".to_owned() }),
            CardPart::Receipt { receipt, seq: 130 },
            CardPart::Cap { cap, at: Timestamp::MAX, seq: 131 },
        ];
        (127..).zip(all).map(|(seq, part)| PlacedPart { seq, part }).collect()
    }

    #[test]
    fn parts_come_back_as_they_were_added() {
        let (mut packed, parts) = (CardParts::default(), parts());
        for (count, PlacedPart { seq, part }) in parts.iter().enumerate() {
            packed.push(*seq, part).unwrap();
            let stored = CardParts::from_bytes(&packed.to_bytes().unwrap()).unwrap();
            assert_eq!(stored.unpacked().unwrap(), parts[..=count]);
        }
    }

    #[test]
    fn what_is_cut_or_changed_is_an_error_or_something_else_and_no_panic() {
        let mut packed = CardParts::default();
        for PlacedPart { seq, part } in parts() {
            packed.push(seq, &part).unwrap();
        }
        let (bytes, whole) = (packed.to_bytes().unwrap(), packed.unpacked().unwrap());
        for length in 0..bytes.len() {
            let cut = CardParts::from_bytes(&bytes[..length]).unwrap().unpacked();
            assert!(cut.is_err() || whole.starts_with(&cut.unwrap()), "{length} bytes");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0xff;
            if let Ok(other) = CardParts::from_bytes(&changed).unwrap().unpacked() {
                assert_ne!(other, whole, "byte {at}");
            }
        }
    }
}
