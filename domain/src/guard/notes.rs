//! What guards tell a model. Each note opens with a tag, so that people and tests find it.

use crate::event::RefusalReason;

/// Added to a reply whose `task` calls were all dropped because the run has none left.
pub const SUBAGENT_LIMIT_REACHED: &str = "[SUBAGENT LIMIT REACHED] The subagent delegation limit of this run is used up. \
     Work with the results that are there, do what is simple directly, or say what remains to be done.";

/// What is recorded of one `task` call that was dropped.
pub fn call_dropped(reason: RefusalReason) -> String {
    calls_dropped(reason, 1)
}

/// Told to the model with its next request: how many calls were dropped, and why.
pub fn calls_dropped(reason: RefusalReason, count: u32) -> String {
    let calls = match count {
        1 => "A `task` call of your last reply was not carried out".to_owned(),
        _ => format!("{count} `task` calls of your last reply were not carried out"),
    };
    format!("[TASK CALL DROPPED] {calls}: {}", drop_reason(reason))
}

const fn drop_reason(reason: RefusalReason) -> &'static str {
    match reason {
        RefusalReason::PerRunLimit => "this run has no delegation left for that.",
        RefusalReason::PerResponseLimit
        | RefusalReason::UnknownType
        | RefusalReason::NotAllowed
        | RefusalReason::BashDisabled
        | RefusalReason::InvalidArguments
        | RefusalReason::Depth
        | RefusalReason::QueueFull
        | RefusalReason::QueueTimeout => {
            "that was over the limit per response. Ask again after the others have returned, if it is still needed."
        }
    }
}
