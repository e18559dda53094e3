//! The subagent status contract against the domain's writer and reader.

use std::collections::BTreeSet;

use contracts::{Display, subagent_status, wire};
use domain::{
    event::EndStatus,
    limits,
    status_contract::{CONTRACT_VERSION, StopReason, SubagentStatus, TaskOutcome, read},
    usage::Usage,
};
use serde_json::{Map, Value, json};

use super::variants::variants_of;

// Facts §9.1, and §12 line 113: every contract value is one of the writer's, and there is no other.
#[test]
fn the_contract_has_the_domains_values() {
    let contract = subagent_status();
    let sorted = |names: Vec<&'static str>| names.into_iter().collect::<BTreeSet<_>>();
    let statuses: BTreeSet<_> = contract.statuses.keys().map(String::as_str).collect();
    assert_eq!(statuses, sorted(variants_of::<SubagentStatus>()));
    assert_eq!(statuses, SubagentStatus::ALL.map(SubagentStatus::as_str).into());
    let reasons: BTreeSet<_> = contract.stop_reasons.keys().map(String::as_str).collect();
    assert_eq!(reasons, sorted(variants_of::<StopReason>()));
    assert_eq!(reasons, StopReason::ALL.map(StopReason::as_str).into());
    assert_eq!(contract.persisted_end_statuses, variants_of::<EndStatus>());
    assert_eq!(contract.version, CONTRACT_VERSION);
    assert_eq!(contract.brief_chars_max, limits::BRIEF_CHARS_MAX);
}

#[test]
fn the_wire_types_have_the_domains_values() {
    let same = |wire: Vec<&'static str>, ours: Vec<&'static str>| assert_eq!(wire, ours);
    same(variants_of::<wire::run::RunStatus>(), variants_of::<domain::event::RunStatus>());
    same(variants_of::<wire::delegation::StopReason>(), variants_of::<StopReason>());
    same(variants_of::<wire::evidence::ReceiptOutcome>(), variants_of::<domain::receipt::ReceiptOutcome>());
    let delegation = variants_of::<wire::delegation::DelegationStatus>();
    for status in variants_of::<SubagentStatus>() {
        assert!(delegation.contains(&status), "the ledger's statuses have no {status}");
    }
}

/// What the contract says for an outcome, by filling in its template.
fn text_of_the_contract(outcome: &TaskOutcome) -> String {
    let contract = subagent_status();
    let Some(Display { plain, detailed, capped, capped_detailed }) =
        contract.display.get(outcome.status.as_str())
    else {
        panic!("the contract has no texts for {:?}", outcome.status)
    };
    let label = outcome.stop_reason.and_then(|reason| contract.stop_reasons.get(reason.as_str()));
    let label = label.map(|reason| reason.label.as_str());
    let with_detail = outcome.detail.as_ref().and(detailed.as_ref());
    let template = match (label, with_detail) {
        (Some(_), Some(detailed)) => capped_detailed.as_ref().unwrap_or(detailed),
        (Some(_), None) => capped.as_ref().unwrap_or(plain),
        (None, Some(detailed)) => detailed,
        (None, None) => plain,
    };
    let detail = outcome.detail.as_deref().unwrap_or_default();
    template
        .replace("{label}", label.unwrap_or_default())
        .replace("{result}", detail)
        .replace("{error}", detail)
}

// Facts §9.4.
#[test]
fn the_texts_are_the_domains() {
    let reasons = StopReason::ALL.map(Some).into_iter().chain([None]);
    for stop_reason in reasons {
        for status in SubagentStatus::ALL {
            for detail in [None, Some("what came of it")] {
                let outcome =
                    TaskOutcome { stop_reason, ..TaskOutcome::new(status, detail.map(str::to_owned)) };
                assert_eq!(outcome.text(), text_of_the_contract(&outcome), "{outcome:?}");
            }
        }
    }
}

// Facts §9.2.
#[test]
fn the_metadata_keys_are_the_domains() {
    let mut written = BTreeSet::new();
    for status in SubagentStatus::ALL {
        let outcome = TaskOutcome {
            status,
            detail: Some("x".into()),
            stop_reason: Some(StopReason::TurnCapped),
            model_name: Some("local".into()),
            usage: Some(Usage::new(1, 2)),
        };
        written.extend(outcome.metadata().into_iter().map(|(key, _)| key));
    }
    assert!(subagent_status().metadata.keys().eq(&written), "the domain writes {written:?}");
}

// Facts §9.5, and §12 line 115.
#[test]
fn the_legacy_rule_is_the_domains() {
    let legacy = &subagent_status().legacy.max_turns_reached;
    let old = json!({"subagent_status": "max_turns_reached"});
    let with_brief = json!({"subagent_status": "max_turns_reached", "subagent_result_brief": "x"});
    for (metadata, expected) in [(with_brief, &legacy.with_brief), (old, &legacy.without_brief)] {
        let reading = read(&metadata.as_object().cloned().unwrap_or_else(Map::new)).unwrap();
        assert_eq!(reading.status.as_str(), expected.status);
        assert_eq!(Value::from(reading.stop_reason.map(StopReason::as_str)), expected.stop_reason);
    }
}
