//! The golden files of `contracts/prompts`, and what holds for all of them.

use std::path::PathBuf;

use super::*;
use crate::sanitise::BLOCKED_TAGS;

/// Writes the golden files again, after a change that is meant.
const REGENERATE: &str = "REMIT_REGENERATE=1 cargo test -p domain prompts";

/// Every text, by the name of its file.
fn all() -> Vec<(&'static str, String)> {
    let custom =
        json!({"reviewer": {"description": "Reads changes and says what is wrong.", "system_prompt": "s"}});
    let acceptance_criteria = criteria(&["file_exists: /mnt/user-data/outputs/report.md", "no_failed_tools"]);
    let definition_prompt = general_purpose();
    let briefing = Briefing {
        system_prompt: Some(&definition_prompt),
        receipts_enabled: true,
        prompt: "Write the report.",
        acceptance_criteria: &acceptance_criteria,
        ..Briefing::default()
    };
    let (system, task) = texts(&briefing);
    let tool = serde_json::to_string_pretty(&task_tool(&["general-purpose", "bash"])).unwrap();
    vec![
        ("bash", bash()),
        ("bash_description", bash_description()),
        ("durable_context", durable::sample()),
        ("durable_context_contract", DURABLE_CONTEXT_CONTRACT.to_owned()),
        ("general_purpose", general_purpose()),
        ("general_purpose_description", general_purpose_description()),
        ("lead", lead(custom.clone(), 3, true)),
        ("lead_of_allowed_types", lead_of(custom.clone(), Some(&criteria(&["writer", "bash"])), 2, true)),
        ("lead_one_at_a_time", lead(json!({}), 1, false)),
        ("lead_without_delegation", lead_system_prompt(None)),
        ("refusals", [&unknown_type("poet", &["general-purpose", "bash"]), BASH_DISABLED].join("\n")),
        ("report_contract", report_contract(true)),
        ("report_contract_without_receipts", report_contract(false)),
        ("subagent_system", system),
        ("subagent_task", task),
        ("summary", summary_request(&durable::material(&[]))[0].content().to_owned()),
        ("task_tool", tool),
    ]
}

#[test]
#[expect(clippy::disallowed_methods, reason = "golden files are read and written by their test alone")]
fn prompts_are_what_the_golden_files_hold() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../contracts/prompts");
    let is_regenerating = std::env::var_os("REMIT_REGENERATE").is_some();
    for (name, text) in all() {
        let path = folder.join(format!("{name}.txt"));
        let text = text + "\n";
        if is_regenerating {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, golden, "{name}.txt differs; if that is meant, run: {REGENERATE}");
    }
}

/// A tag that our prompts use and users could imitate must be one that is neutralised.
#[test]
fn every_tag_in_the_prompts_is_blocked_in_untrusted_text() {
    let mut texts = all();
    texts.push(("date", date_note(jiff::civil::date(2026, 9, 1))));
    let mut seen = 0;
    for (name, text) in texts {
        for (at, _) in text.match_indices('<') {
            let tag = text[at + 1..].trim_start_matches('/');
            let tag = &tag[..tag.find('>').unwrap_or_else(|| panic!("{name} has a lone angle bracket"))];
            assert!(BLOCKED_TAGS.contains(&tag), "{name} uses <{tag}>: add it to BLOCKED_TAGS");
            seen += 1;
        }
    }
    assert!(seen > 0, "the prompts have no tags at all");
}
