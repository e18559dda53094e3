//! The ledger and the cards once more: folded from public records in the plainest way, without a
//! line of the code that the product folds with.

use serde_json::{Map, Value, json};

use crate::{
    invariants::grouped,
    record::{number, text},
};

/// The fields of a ledger row that the plain fold knows.
const LEDGER_FIELDS: [&str; 10] = [
    "task_id",
    "delegation_id",
    "run_id",
    "description",
    "subagent_type",
    "status",
    "stop_reason",
    "error",
    "usage",
    "delivered",
];

/// The fields of a card that the plain fold knows.
const CARD_FIELDS: [&str; 12] = [
    "compactions",
    "task_id",
    "delegation_id",
    "status",
    "description",
    "subagent_type",
    "usage",
    "turns",
    "steps",
    "receipts",
    "caps",
    "result",
];

/// What the ledger says, reduced to what the plain fold knows.
#[track_caller]
pub fn assert_ledger(ledger: &[Value], events: &[Value]) {
    let shown: Vec<Value> = ledger.iter().map(|row| reduced(row, &LEDGER_FIELDS)).collect();
    let mut folded: Vec<(u64, Value)> = grouped(events, "delegation_id")
        .values()
        .map(|events| (number(events[0], "seq"), reduced(&row(events), &LEDGER_FIELDS)))
        .collect();
    folded.sort_by_key(|(seq, _)| *seq);
    let folded: Vec<Value> = folded.into_iter().map(|(_, row)| row).collect();
    assert_eq!(shown, folded, "left: the ledger; right: the plain fold of the events");
}

/// What a card says, reduced to what the plain fold knows.
#[track_caller]
pub fn assert_card(card: &Value, events: &[Value]) {
    let groups = grouped(events, "delegation_id");
    let events = &groups[text(card, "delegation_id")];
    let folded = reduced(&folded_card(events), &CARD_FIELDS);
    assert_eq!(reduced(card, &CARD_FIELDS), folded, "left: the card; right: the plain fold of the events");
}

/// The fields that are there and not null.
fn reduced(value: &Value, fields: &[&str]) -> Value {
    let kept = fields.iter().filter(|field| !value[**field].is_null());
    kept.map(|field| ((*field).to_owned(), value[*field].clone())).collect::<Map<_, _>>().into()
}

fn contents<'a>(events: &'a [&Value], event_type: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["event_type"] == event_type).map(|event| &event["content"])
}

fn row(events: &[&Value]) -> Value {
    let first = events[0];
    let end = contents(events, "subagent.end").next();
    let refused = contents(events, "delegation.refused").next();
    let admitted = contents(events, "delegation.admitted").next();
    let delivered = contents(events, "delegation.delivered").next();
    let status = match (end, refused, admitted) {
        (Some(end), _, _) => text(end, "status"),
        (None, Some(_), _) => "refused",
        (None, None, Some(_)) => "in_progress",
        (None, None, None) => "queued",
    };
    let ran_out = delivered.is_some_and(|delivered| delivered["status"] == "polling_timed_out");
    let error = end.map(|end| end["error"].clone()).or(refused.map(|refused| refused["message"].clone()));
    json!({
        "task_id": first["task_id"],
        "delegation_id": first["delegation_id"],
        "run_id": first["run_id"],
        "description": first["content"]["description"],
        "subagent_type": first["content"]["subagent_type"],
        "status": if ran_out { "polling_timed_out" } else { status },
        "stop_reason": end.map(|end| end["stop_reason"].clone()),
        "error": error,
        "usage": usage(events),
        "delivered": delivered.is_some(),
    })
}

fn usage(events: &[&Value]) -> Value {
    let mut sum: Option<Map<String, Value>> = None;
    let replies = contents(events, "subagent.message").map(|content| &content["message"]["usage_metadata"]);
    let summaries = contents(events, "subagent.compaction").flat_map(|content| {
        let useless = content["failures"].as_array().into_iter().flatten();
        useless.map(|failure| &failure["usage"]).chain([&content["usage"]])
    });
    for reported in replies.chain(summaries) {
        let Some(usage) = reported.as_object() else { continue };
        let sum = sum.get_or_insert_with(Map::new);
        for (key, count) in usage {
            let known = sum.get(key).and_then(Value::as_u64).unwrap_or(0);
            sum.insert(key.clone(), (known + count.as_u64().unwrap_or(0)).into());
        }
    }
    sum.map_or(Value::Null, Value::Object)
}

fn folded_card(events: &[&Value]) -> Value {
    let mut card = row(events);
    let replies = contents(events, "subagent.message").filter(|content| is_reply(&content["message"]));
    let steps: Vec<Value> = contents(events, "subagent.step").map(step).collect();
    let end = contents(events, "subagent.end").next();
    card["turns"] = replies.count().into();
    let compacted = contents(events, "subagent.compaction").filter(|one| one["outcome"] == "compacted");
    card["compactions"] = match compacted.count() {
        0 => Value::Null,
        times => times.into(),
    };
    card["steps"] = steps.into();
    card["receipts"] = with_seq(events, "subagent.receipt");
    card["caps"] = with_seq(events, "subagent.cap");
    card["result"] = end.map_or(Value::Null, |end| end["result"].clone());
    card
}

fn is_reply(message: &Value) -> bool {
    text(message, "type") == "ai"
}

fn step(content: &Value) -> Value {
    reduced(content, &["message_index", "kind", "text", "truncated", "tool_calls", "tool_name"])
}

/// The contents without what only the event says, and with the event's place.
fn with_seq(events: &[&Value], event_type: &str) -> Value {
    let of_type = events.iter().filter(|event| event["event_type"] == event_type);
    let parts = of_type.map(|event| {
        let mut part = event["content"].clone();
        if let Some(fields) = part.as_object_mut() {
            fields.remove("task_id");
            fields.insert("seq".into(), event["seq"].clone());
        }
        part
    });
    parts.collect::<Vec<_>>().into()
}
