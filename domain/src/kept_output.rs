//! Tool outputs that are kept whole beside the log, and how an event names them.
//!
//! The text of a message is a bounded preview. Its `output_blob` says what the whole is called, and
//! the event's metadata says the same to the log, which must not know messages.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    event::{Event, ModelEvent, SubagentEvent},
    message::{Message, ToolMessage},
};

/// Where a tool message names its output.
pub const OUTPUT_BLOB_KEY: &str = "output_blob";
/// Where an event's metadata lists the blobs that it names: `[{"sha256": …, "bytes": …}]`.
pub const BLOBS_KEY: &str = "blobs";

/// The name of a tool's output in the blobs of its thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptOutput {
    /// SHA-256 of what is kept, in hexadecimal.
    pub sha256: String,
    /// Length of what is kept, in bytes.
    pub bytes: u64,
    /// Whether the output was longer, and only its beginning is kept.
    pub truncated: bool,
}

/// Where an agent finds its kept outputs with `read_file`, by their digest. The folder is on no disk.
pub const KEPT_OUTPUTS_FOLDER: &str = "/mnt/user-data/outputs/.tool-results";

impl KeptOutput {
    /// What an agent calls it.
    pub fn path(&self) -> String {
        format!("{KEPT_OUTPUTS_FOLDER}/{}", self.sha256)
    }
}

impl ToolMessage {
    /// Names the blob that has the whole output.
    pub fn keep_output(&mut self, kept: &KeptOutput) {
        self.additional_kwargs.insert(OUTPUT_BLOB_KEY.to_owned(), json!(kept));
    }

    /// The blob that has the whole output, if it is kept.
    pub fn kept_output(&self) -> Option<KeptOutput> {
        self.additional_kwargs.get(OUTPUT_BLOB_KEY).and_then(|kept| KeptOutput::deserialize(kept).ok())
    }
}

/// Lists in an event's metadata the blobs that its content names.
pub(crate) fn list(event: &Event, metadata: &mut Map<String, Value>) {
    let message = match event {
        Event::Model(ModelEvent::ToolResult(message)) => message,
        Event::Subagent(SubagentEvent::Message(recorded)) => &recorded.message,
        Event::Thread(_)
        | Event::Run(_)
        | Event::Model(_)
        | Event::Tool(_)
        | Event::Delegation(_)
        | Event::Subagent(_)
        | Event::Registry(_)
        | Event::Foreign(_) => return,
    };
    let kept = match message {
        Message::Tool(message) => message.kept_output(),
        Message::System(_) | Message::Human(_) | Message::Assistant(_) => None,
    };
    if let Some(KeptOutput { sha256, bytes, .. }) = kept {
        metadata.insert(BLOBS_KEY.to_owned(), json!([{ "sha256": sha256, "bytes": bytes }]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{event::SubagentMessage, ids::ToolCallId};

    #[test]
    fn what_a_message_names_is_listed_in_the_metadata_of_its_event() {
        let mut message = ToolMessage { tool_call_id: "call_1".into(), ..ToolMessage::default() };
        let of_lead = |message: &ToolMessage| {
            Event::Model(ModelEvent::ToolResult(Message::Tool(message.clone()))).metadata()
        };
        assert_eq!(of_lead(&message).get(BLOBS_KEY), None);
        let kept = KeptOutput { sha256: "ab".repeat(32), bytes: 9_000, truncated: false };
        message.keep_output(&kept);
        assert_eq!(message.kept_output(), Some(kept.clone()));
        let listed = json!([{ "sha256": kept.sha256, "bytes": 9_000 }]);
        assert_eq!(of_lead(&message).get(BLOBS_KEY), Some(&listed));
        let task_id = ToolCallId::new("call_2").unwrap();
        let recorded = SubagentMessage { task_id, message: Message::Tool(message) };
        let metadata = Event::Subagent(SubagentEvent::Message(recorded)).metadata();
        assert_eq!(metadata.get(BLOBS_KEY), Some(&listed));
    }

    // A model or a tool that writes such a key names nothing.
    #[test]
    fn what_is_no_name_is_not_listed() {
        for kept in [json!(true), json!({"sha256": 7}), json!({"bytes": 7})] {
            let mut message = ToolMessage::default();
            message.additional_kwargs.insert(OUTPUT_BLOB_KEY.to_owned(), kept);
            assert_eq!(message.kept_output(), None);
        }
    }
}
