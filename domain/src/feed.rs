//! Message feeds: which records are in them, and who sees which (facts §7.2 and §8).

use crate::event::{Category, Logged};

/// A model's reply.
const REPLY_TYPE: &str = "llm.ai.response";
/// The same, as older writers called it.
const OLD_REPLY_TYPE: &str = "ai_message";
/// How the callers begin that are part of the framework, such as one that makes titles.
pub const MIDDLEWARE_PREFIX: &str = "middleware:";
/// How the callers begin that are subagents.
pub const SUBAGENT_PREFIX: &str = "subagent:";

/// What a feed needs to know of a record that is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedMessage {
    /// Whether it is shown to whoever reads the conversation: what the framework's own calls said
    /// is not, and neither is what a subagent's model said. What a `task` call returned is.
    pub is_visible: bool,
    /// Whether it is a model's reply.
    pub is_reply: bool,
}

impl FeedMessage {
    /// What a feed knows of a record; none if it is in no feed.
    pub fn of(logged: &Logged) -> Option<Self> {
        if logged.category() != Category::Message.as_str() {
            return None;
        }
        let is_reply = matches!(logged.event.event_type(), REPLY_TYPE | OLD_REPLY_TYPE);
        let caller = logged.caller().unwrap_or_default();
        let is_hidden =
            caller.starts_with(MIDDLEWARE_PREFIX) || (is_reply && caller.starts_with(SUBAGENT_PREFIX));
        Some(Self { is_visible: !is_hidden, is_reply })
    }

    /// Whether it is a reply that is shown: of these the last one of a run is asked for.
    pub const fn is_answer(self) -> bool {
        self.is_visible && self.is_reply
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::{
        event::{Event, ForeignEvent, Labels, ModelEvent, Scope},
        ids::{ThreadId, UserId},
        message::{AssistantMessage, Message},
    };

    fn logged(event: Event, labels: Option<Labels>) -> Logged {
        Logged {
            position: 1,
            seq: 1,
            thread_id: ThreadId::new("t").unwrap(),
            owner: UserId::unowned(),
            scope: Scope::default(),
            recorded_at: Timestamp::UNIX_EPOCH,
            labels: labels.map(Box::new),
            event,
        }
    }

    fn foreign(event_type: &str, category: &str, caller: Option<&str>) -> Logged {
        let metadata = caller.map(|caller| ("caller".to_owned(), json!(caller))).into_iter();
        let event = ForeignEvent {
            event_type: event_type.into(),
            category: category.into(),
            content: Value::Null,
            metadata: metadata.collect::<Map<_, _>>(),
        };
        logged(Event::Foreign(event), None)
    }

    #[track_caller]
    fn check(logged: &Logged, expected: Option<(bool, bool)>) {
        let feed = FeedMessage::of(logged).map(|feed| (feed.is_visible, feed.is_answer()));
        assert_eq!(feed, expected, "{logged:?}");
    }

    // Facts §8, "/page visibility", and §7.2.
    #[test]
    fn who_called_decides_what_is_shown() {
        check(&foreign("llm.ai.response", "message", None), Some((true, true)));
        check(&foreign("ai_message", "message", Some("lead_agent")), Some((true, true)));
        check(&foreign("llm.ai.response", "message", Some("middleware:title")), Some((false, false)));
        check(&foreign("llm.human.input", "message", Some("middleware:summary")), Some((false, false)));
        check(&foreign("llm.ai.response", "message", Some("subagent:bash")), Some((false, false)));
        // What a `task` call returned stays, whoever is named as its caller.
        check(&foreign("llm.tool.result", "message", Some("subagent:bash")), Some((true, false)));
        check(&foreign("llm.tool.result", "message", Some("lead_agent")), Some((true, false)));
    }

    #[test]
    fn the_category_of_the_record_decides_what_is_in_a_feed() {
        check(&foreign("llm.ai.response", "subagent", None), None);
        check(&foreign("anything", "message", None), Some((true, false)));
        let reply = || Event::Model(ModelEvent::AiResponse(Message::Assistant(AssistantMessage::default())));
        check(&logged(reply(), None), Some((true, true)));
        let labels = |category: &str, caller: Option<&str>| Labels {
            category: category.into(),
            caller: caller.map(str::to_owned),
        };
        check(&logged(reply(), Some(labels("trace", None))), None);
        check(&logged(reply(), Some(labels("message", Some("middleware:x")))), Some((false, false)));
    }
}
