//! The committed contracts against the domain: neither changes without the other.

use std::{collections::BTreeMap, fs, path::PathBuf};

use contracts::run_event_stream;
use domain::{
    event::{Category, Event},
    limits,
};
use serde_json::{Value, json};

use self::variants::variants_of;

mod status;
mod variants;

fn contracts_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../contracts")
}

fn read_json(path: &str) -> Value {
    let path = contracts_folder().join(path);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn golden(event_type: &str) -> Value {
    read_json(&format!("events/{}", golden_name(event_type)))
}

/// Not every file system allows a colon in a name.
fn golden_name(event_type: &str) -> String {
    format!("{}.v{}.json", event_type.replace(':', "."), Event::SCHEMA_VERSION)
}

/// The record that would carry a golden example.
fn record(event_type: &str, category: &str, golden: &Value) -> Value {
    json!({
        "thread_id": "t-1", "run_id": "run-1", "seq": 7, "event_type": event_type, "category": category,
        "content": golden["content"], "metadata": golden["metadata"], "created_at": "2026-11-30T10:00:00Z",
        "position": 12, "event_id": "0197c0de-0000-7000-8000-000000000001", "schema_version": 1,
        "recorded_at": "2026-11-30T10:00:00Z", "user_id": "default", "hash": "0".repeat(64),
    })
}

#[test]
fn the_catalogue_and_the_contract_list_the_same_types() {
    let ours: BTreeMap<_, _> =
        Event::catalogue().into_iter().map(|(name, category)| (name, category.as_str())).collect();
    let contract: BTreeMap<_, _> = run_event_stream()
        .types()
        .filter(|(_, event)| event.is_written)
        .map(|(name, event)| (name, event.category.as_str()))
        .collect();
    assert_eq!(ours, contract, "left: domain's catalogue; right: contracts/run_event_stream_contract.json");
    for (name, category) in ours {
        assert_eq!(run_event_stream().category_of(name), Some(category));
    }
}

#[test]
fn the_contract_has_the_domains_categories() {
    let contract: Vec<_> = run_event_stream().categories().map(|(name, _)| name).collect();
    assert_eq!(contract, Category::ALL.map(Category::as_str));
}

#[test]
fn every_golden_example_is_an_event_that_stores_the_same_json() {
    for (event_type, category) in Event::catalogue() {
        let golden = golden(event_type);
        let event = Event::parse(event_type, &golden["content"].to_string()).unwrap();
        let event = event.unwrap_or_else(|error| panic!("{error}: {:?}", std::error::Error::source(&error)));
        assert_eq!(event.content().unwrap(), golden["content"], "content of {event_type}");
        assert_eq!(Value::Object(event.metadata()), golden["metadata"], "metadata of {event_type}");
        let record = record(event_type, category.as_str(), &golden);
        run_event_stream().validate(&record).unwrap_or_else(|violation| panic!("{violation}"));
    }
}

#[test]
fn every_golden_example_belongs_to_a_type() {
    let ours: Vec<_> = Event::catalogue().iter().map(|(name, _)| golden_name(name)).collect();
    for file in fs::read_dir(contracts_folder().join("events")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(ours.contains(&name), "contracts/events/{name} belongs to no type of the catalogue");
    }
}

/// What the domain cannot do without, the schema asks for: else a record could keep the contract
/// and still not be read. Frozen types are laxer, because others record them too.
#[test]
fn the_schemas_of_our_own_types_ask_for_every_field_that_the_domain_needs() {
    let mut needed = 0;
    for (event_type, contract) in
        run_event_stream().types().filter(|(_, event)| event.is_written && !event.is_frozen)
    {
        let golden = golden(event_type);
        for key in golden["content"].as_object().unwrap().keys() {
            let mut without = golden.clone();
            without["content"].as_object_mut().unwrap().remove(key);
            if Event::parse(event_type, &without["content"].to_string()).unwrap().is_err() {
                needed += 1;
                let record = record(event_type, &contract.category, &without);
                let violation = run_event_stream().validate(&record);
                assert!(violation.is_err(), "{event_type} is valid without {key}, and cannot be read");
            }
        }
    }
    assert!(needed > 20, "only {needed} fields were tried");
}

/// Every value of an enum of the domain is in the schema, and the schema has no other.
#[test]
fn the_schemas_list_the_values_of_the_domains_enums() {
    let contract = read_json("run_event_stream_contract.json");
    let check = |pointer: &str, ours: Vec<&str>| {
        let listed = contract.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in the contract"));
        assert_eq!(*listed, json!(ours), "{pointer}");
    };
    let field =
        |event_type: &str, field: &str| format!("/events/{event_type}/content/properties/{field}/enum");
    check(&field("run.status", "status"), variants_of::<domain::event::RunStatus>());
    check(&field("run.status", "stop_reason"), variants_of::<domain::event::RunStopReason>());
    check(&field("delegation.refused", "reason"), variants_of::<domain::event::RefusalReason>());
    check(&field("delegation.delivered", "status"), variants_of::<domain::status_contract::SubagentStatus>());
    check(&field("subagent.end", "status"), variants_of::<domain::event::EndStatus>());
    check(&field("subagent.end", "stop_reason"), variants_of::<domain::status_contract::StopReason>());
    check(&field("subagent.end", "cancel_reason"), variants_of::<domain::event::CancelReason>());
    check(&field("subagent.receipt", "outcome"), variants_of::<domain::receipt::ReceiptOutcome>());
    check(&field("thread.erased", "reason"), variants_of::<domain::event::ErasureReason>());
    check(&field("tool.started", "side_effect"), variants_of::<domain::tool_spec::SideEffect>());
    for event_type in ["run.compaction", "subagent.compaction"] {
        let trigger = format!("/events/{event_type}/content/properties/trigger/properties/unit/enum");
        check(&trigger, variants_of::<domain::event::CompactionUnit>());
    }
    check(&field("middleware:terminal_response", "action"), variants_of::<domain::event::GuardAction>());
    check("/$defs/cap/properties/axis/enum", variants_of::<domain::event::CapAxis>());
    check("/$defs/cap/properties/action/enum", variants_of::<domain::event::CapAction>());
    check("/$defs/tool_message/properties/status/enum", variants_of::<domain::message::ToolStatus>());
}

#[test]
fn the_schemas_have_the_domains_bounds() {
    let contract = read_json("run_event_stream_contract.json");
    let bound = |pointer: &str| contract.pointer(pointer).and_then(Value::as_u64).map(|bound| bound as usize);
    let content = |event_type: &str, field: &str| format!("/events/{event_type}/content/properties/{field}");
    assert_eq!(bound("/record/properties/event_type/maxLength"), Some(limits::EVENT_TYPE_CHARS_MAX));
    assert_eq!(bound("/record/properties/category/maxLength"), Some(limits::CATEGORY_CHARS_MAX));
    assert_eq!(bound("/$defs/task_id/maxLength"), Some(limits::TOOL_CALL_ID_CHARS_MAX));
    for (event_type, field, limit) in [
        ("subagent.step", "text", limits::STEP_TEXT_CHARS_MAX),
        ("subagent.end", "result", limits::END_TEXT_CHARS_MAX),
        ("subagent.end", "error", limits::END_TEXT_CHARS_MAX),
        ("run.compaction", "summary", limits::SUMMARY_CHARS_MAX),
        ("subagent.compaction", "summary", limits::SUMMARY_CHARS_MAX),
        ("delegation.delivered", "result_brief", limits::BRIEF_CHARS_MAX),
        ("delegation.delivered", "error", limits::BRIEF_CHARS_MAX),
    ] {
        let pointer = content(event_type, field) + "/maxLength";
        assert_eq!(bound(&pointer), Some(limit), "{pointer}");
    }
    let criteria = content("delegation.requested", "acceptance_criteria") + "/maxItems";
    assert_eq!(bound(&criteria), Some(limits::ACCEPTANCE_CRITERIA_MAX));
}
