use std::collections::BTreeSet;

use super::*;
use crate::limits::{CATEGORY_CHARS_MAX, EVENT_TYPE_CHARS_MAX};

#[test]
fn every_type_is_listed_once_and_fits_the_record() {
    let catalogue = Event::catalogue();
    let names: BTreeSet<_> = catalogue.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), catalogue.len());
    for (name, category) in catalogue {
        assert!(name.len() <= EVENT_TYPE_CHARS_MAX, "{name}");
        assert!(category.as_str().len() <= CATEGORY_CHARS_MAX, "{name}");
    }
}

#[test]
fn category_names_are_their_serialised_form() {
    for category in Category::ALL {
        assert_eq!(serde_json::to_value(category).unwrap(), category.as_str());
    }
}

#[test]
fn an_event_reads_back_from_what_it_stores() {
    let event = Event::Run(RunEvent::Ended(RunEnded {
        result: "done".into(),
        result_truncated: false,
        usage: None,
        turns: 2,
        delegations: 0,
    }));
    let stored = event.content().unwrap().to_string();
    assert_eq!(Event::parse(event.event_type(), &stored).unwrap().unwrap(), event);
    assert_eq!(Value::Object(event.metadata()), serde_json::json!({"status": "success"}));
}

#[test]
fn an_unknown_type_is_nobodys_and_a_wrong_shape_is_named() {
    assert!(Event::parse("somebody.elses", "{}").is_none());
    let error = Event::parse("subagent.start", "{}").unwrap().unwrap_err();
    assert_eq!(error.to_string(), "reading the content of a subagent.start event");
}

#[test]
fn subagent_metadata_names_the_task_and_the_step() {
    let task_id = ToolCallId::new("call_1").unwrap();
    let step = SubagentEvent::Step(Step {
        task_id,
        message_index: 3,
        text: "x".into(),
        truncated: false,
        body: StepBody::Tool { tool_name: "ls".into() },
    });
    assert_eq!(Value::Object(step.metadata()), serde_json::json!({"task_id": "call_1", "message_index": 3}));
    assert_eq!(
        step.content().unwrap(),
        serde_json::json!({"task_id": "call_1", "message_index": 3, "kind": "tool", "text": "x", "truncated": false, "tool_name": "ls"})
    );
}
