//! What guards tell a model. Each note opens with a tag, so that people and tests find it.

use crate::event::RefusalReason;

/// Added to a reply whose `task` calls were all dropped because the run has none left.
pub const SUBAGENT_LIMIT_REACHED: &str = "[SUBAGENT LIMIT REACHED] The subagent delegation limit of this run is used up. \
     Work with the results that are there, do what is simple directly, or say what remains to be done.";

/// Told to the model with its next request, once for each call that was dropped.
pub const fn call_dropped(reason: RefusalReason) -> &'static str {
    match reason {
        RefusalReason::PerRunLimit => {
            "[TASK CALL DROPPED] A `task` call of your last reply was not carried out: this run has no delegation left for it."
        }
        RefusalReason::PerResponseLimit
        | RefusalReason::UnknownType
        | RefusalReason::NotAllowed
        | RefusalReason::BashDisabled
        | RefusalReason::InvalidArguments
        | RefusalReason::Depth
        | RefusalReason::QueueFull
        | RefusalReason::QueueTimeout => {
            "[TASK CALL DROPPED] A `task` call of your last reply was not carried out: it was over the limit per response. \
             Ask again after the others have returned, if it is still needed."
        }
    }
}
