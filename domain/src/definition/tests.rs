use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::event::RefusalReason;

fn settings(block: Value) -> SubagentsSettings {
    let settings: SubagentsSettings = serde_json::from_value(block).unwrap();
    settings.validate().unwrap();
    settings
}

fn registry(block: Value) -> Registry {
    Registry::new(settings(block), false)
}

fn custom() -> Value {
    json!({"description": "reviews", "system_prompt": "You review."})
}

/// Checks the turns and the seconds that a delegation to a type gets.
#[track_caller]
fn check(block: Value, name: &str, max_turns: u32, timeout_seconds: u64) {
    let resolved = registry(block.clone()).resolve(name).unwrap();
    let limits = (resolved.definition.max_turns, resolved.definition.timeout_seconds);
    assert_eq!(limits, (max_turns, timeout_seconds), "{name} under {block}");
}

// Facts §12 lines 1 to 6, and the precedence table of §1.3.
#[test]
fn limits_come_from_the_type_then_the_global_setting_then_the_definition() {
    check(json!({}), "general-purpose", 150, 1_800); // 1
    check(json!({}), "bash", 60, 1_800); // 2
    check(json!({"timeout_seconds": 900}), "general-purpose", 150, 900); // 3
    let turns = json!({"max_turns": 140, "custom_agents": {"reviewer": custom()}});
    check(turns.clone(), "general-purpose", 140, 1_800); // 4
    check(turns.clone(), "bash", 140, 1_800); // 4
    check(turns, "reviewer", 50, 900); // 4
    let bash = json!({"timeout_seconds": 900, "agents": {"bash": {"timeout_seconds": 300, "max_turns": 7}}});
    check(bash.clone(), "bash", 7, 300); // 5
    check(bash, "general-purpose", 150, 900); // 5
    let mut reviewer = custom();
    reviewer["timeout_seconds"] = json!(600);
    check(json!({"custom_agents": {"reviewer": reviewer}}), "reviewer", 50, 600);
    let agents = json!({"reviewer": {"timeout_seconds": 300}});
    check(json!({"custom_agents": {"reviewer": reviewer}, "agents": agents}), "reviewer", 50, 300); // 6
}

fn names(registry: &Registry, allow_bash: bool, allowed: Option<&[String]>) -> Vec<String> {
    let listed = registry.available(allow_bash, allowed);
    listed.iter().map(|listed| listed.definition.name.to_string()).collect()
}

// Facts §12 line 7.
#[test]
fn a_built_in_type_owns_its_name() {
    let registry = registry(json!({"custom_agents": {"general-purpose": custom()}}));
    let resolved = registry.resolve("general-purpose").unwrap();
    assert_eq!(resolved.origin, Origin::BuiltIn);
    assert_ne!(resolved.definition.description, "reviews");
    assert_eq!(names(&registry, true, None), ["general-purpose", "bash"]);
}

// Facts §12 line 8.
#[test]
fn an_unknown_name_is_nothing() {
    assert_eq!(registry(json!({})).resolve("nobody"), None);
    assert_eq!(registry(json!({"agents": {"nobody": {"max_turns": 3}}})).resolve("nobody"), None);
}

#[track_caller]
fn check_problem(block: Value, expected: &[&str]) {
    let settings: SubagentsSettings = serde_json::from_value(block.clone()).unwrap();
    let problems: Vec<_> =
        settings.validate().err().unwrap_or_default().iter().map(SettingProblem::to_string).collect();
    assert_eq!(problems, expected, "{block}");
}

// Facts §12 lines 9 and 10, and the ranges of §1.2 and §1.4.
#[test]
fn a_value_outside_its_range_is_named_with_the_range() {
    let model = "it must be a model's name or \"inherit\"";
    check_problem(
        json!({"agents": {"bash": {"model": ""}}}), // 9
        &[&format!("subagents.agents.bash.model is \"\": {model}")],
    );
    let mut agent = custom();
    agent["model"] = json!(" ");
    agent["max_turns"] = json!(0);
    agent["timeout_seconds"] = json!(0);
    check_problem(
        json!({"custom_agents": {"reviewer": agent}}),
        &[
            "subagents.custom_agents.reviewer.timeout_seconds is 0: it must be at least 1",
            "subagents.custom_agents.reviewer.max_turns is 0: it must be at least 1",
            &format!("subagents.custom_agents.reviewer.model is \" \": {model}"),
        ],
    );
    check_problem(
        json!({"timeout_seconds": 0, "max_turns": 0, "max_total_per_run": 0}), // 10
        &[
            "subagents.timeout_seconds is 0: it must be at least 1",
            "subagents.max_turns is 0: it must be at least 1",
            "subagents.max_total_per_run is 0: it must be from 1 to 50",
        ],
    );
    check_problem(
        json!({"max_total_per_run": 51}), // 10, and chain facts (f) 14
        &["subagents.max_total_per_run is 51: it must be from 1 to 50"],
    );
    check_problem(
        json!({"agents": {"bash": {"timeout_seconds": 0, "max_turns": 0}}}),
        &[
            "subagents.agents.bash.timeout_seconds is 0: it must be at least 1",
            "subagents.agents.bash.max_turns is 0: it must be at least 1",
        ],
    );
    check_problem(json!({"timeout_seconds": 1, "max_turns": 1, "max_total_per_run": 50}), &[]);
}

// Facts §1.4; chain facts (f) 60.
#[test]
fn a_token_budget_outside_its_ranges_is_refused() {
    check_problem(
        json!({"token_budget": {"max_tokens": 999, "max_input_tokens": 0, "max_output_tokens": 0,
            "warn_threshold": -0.1, "hard_stop_threshold": 1.5}}),
        &[
            "subagents.token_budget.max_tokens is 999: it must be at least 1000",
            "subagents.token_budget.max_input_tokens is 0: it must be at least 1",
            "subagents.token_budget.max_output_tokens is 0: it must be at least 1",
            "subagents.token_budget.warn_threshold is -0.1: it must be from 0 to 1",
            "subagents.token_budget.hard_stop_threshold is 1.5: it must be from 0 to 1",
        ],
    );
    check_problem(
        json!({"agents": {"bash": {"token_budget": {"warn_threshold": 0.9, "hard_stop_threshold": 0.8}}}}),
        &[
            "subagents.agents.bash.token_budget.hard_stop_threshold is 0.8: it must be at least warn_threshold, which is 0.9",
        ],
    );
    check_problem(
        json!({"token_budget": {"hard_stop_threshold": 0.5}}),
        &[
            "subagents.token_budget.hard_stop_threshold is 0.5: it must be at least warn_threshold, which is 0.8",
        ],
    );
    check_problem(
        json!({"token_budget": {"max_tokens": 1_000, "warn_threshold": 1, "hard_stop_threshold": 1}}),
        &[],
    );
    let not_a_number = TokenBudgetSettings { warn_threshold: Some(f64::NAN), ..Default::default() };
    assert_eq!(not_a_number.problems("b").len(), 1);
}

#[test]
fn unknown_keys_and_malformed_names_are_errors() {
    for block in [
        json!({"timeout": 3}),
        json!({"agents": {"bash": {"tokens": 3}}}),
        json!({"agents": {"not a name": {}}}),
        json!({"custom_agents": {"reviewer": {"description": "d", "system_prompt": "s", "turns": 1}}}),
        json!({"custom_agents": {"reviewer": {"description": "d"}}}),
        json!({"token_budget": {"max": 3}}),
    ] {
        assert!(serde_json::from_value::<SubagentsSettings>(block.clone()).is_err(), "{block}");
    }
    let twice = r#"{"agents": {"bash": {}, "bash": {}}}"#;
    let error = serde_json::from_str::<SubagentsSettings>(twice).unwrap_err().to_string();
    assert!(error.starts_with("subagent type bash is set twice"), "{error}");
}

// Facts §12 lines 11 and 12.
#[test]
fn an_override_changes_a_copy() {
    let agents = json!({"bash": {"skills": [], "model": "fast", "max_turns": 3}});
    let registry = registry(json!({ "agents": agents }));
    let untouched = registry.available(true, None)[1].definition.clone();
    let resolved = registry.resolve("bash").unwrap().definition;
    assert_eq!(resolved.skills, Some(vec![])); // 11
    assert_eq!(resolved.model, ModelChoice::Named("fast".into()));
    let listed = registry.available(true, None)[1].definition.clone();
    assert_eq!(listed, untouched); // 12
    assert_eq!((untouched.skills, untouched.model, untouched.max_turns), (None, ModelChoice::Inherit, 60));
}

// Facts §12 line 13, and §1.8.
#[test]
fn types_are_listed_in_order_and_filtered() {
    let none = registry(json!({}));
    assert_eq!(names(&none, false, None), ["general-purpose"]); // 13
    assert!(none.resolve("bash").is_some(), "a direct look-up still succeeds");

    let agents = json!({"zebra": custom(), "ape": custom(), "bash": custom(), "mole": custom()});
    let registry = registry(json!({ "custom_agents": agents }));
    assert_eq!(names(&registry, true, None), ["general-purpose", "bash", "zebra", "ape", "mole"]);
    assert_eq!(names(&registry, true, Some(&[])), Vec::<String>::new());
    let allowed = ["mole", "bash", "nobody"].map(str::to_owned);
    assert_eq!(names(&registry, false, Some(&allowed)), ["mole"]);
    assert_eq!(names(&registry, true, Some(&allowed)), ["bash", "mole"]);
}

#[test]
fn a_lead_is_permitted_what_is_listed() {
    let registry = registry(json!({"custom_agents": {"mole": custom()}}));
    let permit = |name: &str, allow_bash: bool, allowed: Option<&[String]>| {
        registry.permit(name, allow_bash, allowed).map(|resolved| resolved.definition.name.to_string())
    };
    let mole = ["mole".to_owned()];
    assert_eq!(permit("nobody", true, None), Err(RefusalReason::UnknownType));
    assert_eq!(permit("bash", false, None), Err(RefusalReason::BashDisabled));
    assert_eq!(permit("bash", true, Some(&mole)), Err(RefusalReason::NotAllowed));
    assert_eq!(permit("general-purpose", true, Some(&[])), Err(RefusalReason::NotAllowed));
    assert_eq!(permit("bash", true, None), Ok("bash".into()));
    assert_eq!(permit("mole", false, Some(&mole)), Ok("mole".into()));
}

#[track_caller]
fn check_budget(block: Value, summarization_enabled: bool, max_tokens: u64, enabled: bool) {
    let registry = Registry::new(settings(block.clone()), summarization_enabled);
    let budget = registry.resolve("bash").unwrap().token_budget;
    assert_eq!((budget.max_tokens, budget.enabled), (max_tokens, enabled), "{block}");
}

// Facts §12 lines 14 to 16; chain facts (f) 64.
#[test]
fn the_default_budget_depends_on_summarization_and_a_written_one_does_not() {
    check_budget(json!({}), true, 1_000_000, true); // 14
    check_budget(json!({}), false, 2_000_000, true); // 14
    for summarization_enabled in [true, false] {
        let global = json!({"token_budget": {"enabled": true, "max_tokens": 500_000}});
        check_budget(global, summarization_enabled, 500_000, true); // 15
        let agent = json!({"token_budget": {"max_tokens": 500_000}, "agents": {"bash": {"token_budget": {"max_tokens": 300_000}}}});
        check_budget(agent, summarization_enabled, 300_000, true); // 16
    }
    let default = TokenBudget::subagent_default(false);
    assert_eq!((default.warn_threshold, default.hard_stop_threshold), (0.7, 1.0));
}

// The reference's trap: a block with only a limit switches the guard off there (facts §1.4).
#[test]
fn a_written_block_is_on_unless_it_says_otherwise() {
    check_budget(json!({"token_budget": {"max_tokens": 5_000}}), false, 5_000, true);
    check_budget(json!({"token_budget": {"max_input_tokens": 5_000}}), false, 200_000, true);
    check_budget(json!({"token_budget": {"warn_threshold": 0.5}}), false, 200_000, true);
    check_budget(json!({"token_budget": {"enabled": false, "max_tokens": 5_000}}), false, 5_000, false);
}

#[test]
fn settings_that_nobody_wrote_stay_unwritten_when_they_are_dumped_and_read_again() {
    for block in
        [json!({}), json!({"token_budget": {"max_tokens": 5_000}, "agents": {"z": {"skills": []}, "a": {}}})]
    {
        let written = settings(block);
        assert_eq!(settings(serde_json::to_value(&written).unwrap()), written);
    }
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().copied().map(str::to_owned).collect()
}

// Facts §12 line 17, and §1.6.
#[test]
fn a_subagent_has_no_skill_that_its_lead_lacks() {
    let (safe, both) = (list(&["safe", "other"]), list(&["other", "safe", "wild"]));
    assert_eq!(effective_skills(Some(&list(&["safe"])), None), Some(list(&["safe"])));
    assert_eq!(effective_skills(Some(&list(&["safe"])), Some(&safe)), Some(list(&["safe"])));
    assert_eq!(effective_skills(Some(&safe), Some(&both)), Some(list(&["other", "safe"])));
    assert_eq!(effective_skills(None, Some(&both)), Some(both));
    assert_eq!(effective_skills(None, None), None);
    assert_eq!(effective_skills(Some(&safe), Some(&[])), Some(vec![]));
}

// Facts §12 lines 18 and 19, and §1.5.
#[test]
fn the_model_is_the_definitions_then_the_leads_then_the_first() {
    let configured = list(&["first", "second"]);
    let named = ModelChoice::Named("vision".into());
    assert_eq!(model_name(&ModelChoice::Inherit, Some("ark-model"), &configured), Ok("ark-model".into())); // 18
    assert_eq!(model_name(&named, Some("ark-model"), &configured), Ok("vision".into())); // 18
    assert_eq!(model_name(&ModelChoice::Inherit, None, &configured), Ok("first".into())); // 19
    assert_eq!(model_name(&ModelChoice::Inherit, None, &[]), Err(NoModel));
    assert_eq!(ModelChoice::from("inherit".to_owned()), ModelChoice::Inherit);
}

// Facts §1.7 and §2.
#[test]
fn tools_are_selected_by_exact_name_in_the_candidates_order() {
    let registry = registry(json!({"custom_agents": {
        "open": {"description": "d", "system_prompt": "s", "disallowed_tools": null},
        "tight": {"description": "d", "system_prompt": "s", "tools": ["ls", "bash", "task"], "disallowed_tools": ["bash"]},
    }}));
    let candidates = list(&["task", "bash", "Bash", "ask_clarification", "ls", "grep", "present_files"]);
    let selected = |name: &str| registry.resolve(name).unwrap().definition.select_tools(&candidates);
    assert_eq!(selected("general-purpose"), ["bash", "Bash", "ls", "grep"]);
    assert_eq!(selected("bash"), ["bash", "ls"]);
    assert_eq!(selected("open"), ["bash", "Bash", "ask_clarification", "ls", "grep", "present_files"]);
    assert_eq!(selected("tight"), ["ls"]);
}

proptest! {
    #[test]
    fn what_is_listed_is_permitted_and_the_rest_is_not(
        custom_names in prop::collection::vec("[a-d]{1,2}|bash|general-purpose", 0..6),
        allowed in prop::option::of(prop::collection::vec("[a-d]{1,2}|bash|general-purpose".prop_map(String::from), 0..4)),
        allow_bash: bool,
    ) {
        let agents: serde_json::Map<_, _> = custom_names.iter().map(|name| (name.clone(), custom())).collect();
        let registry = registry(json!({ "custom_agents": agents }));
        let listed = names(&registry, allow_bash, allowed.as_deref());
        let mut distinct = listed.clone();
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(distinct.len(), listed.len(), "no name is listed twice");
        for name in custom_names.iter().map(String::as_str).chain(["bash", "general-purpose", "zz"]) {
            let is_listed = listed.iter().any(|known| known == name);
            prop_assert_eq!(registry.permit(name, allow_bash, allowed.as_deref()).is_ok(), is_listed, "{}", name);
        }
    }
}
