use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::{
    definition::{ModelChoice, Origin, Registry, Resolved, SubagentsSettings},
    event::RefusalReason,
    limits::MANAGED_DEFINITIONS_MAX,
};

fn name(text: &str) -> SubagentType {
    SubagentType::new(text).unwrap()
}

fn agent(description: &str) -> Box<CustomAgent> {
    Box::new(CustomAgent {
        description: description.to_owned(),
        system_prompt: "work".to_owned(),
        tools: None,
        disallowed_tools: None,
        skills: None,
        model: ModelChoice::Inherit,
        max_turns: 50,
        timeout_seconds: 900,
    })
}

fn create(description: &str) -> ManageCommand {
    ManageCommand::Create { definition: agent(description), enabled: true }
}

fn update(description: &str) -> ManageCommand {
    ManageCommand::Update { definition: agent(description) }
}

/// A registry with the events that made it.
#[derive(Default)]
struct World {
    state: ManagedDefinitions,
    events: Vec<RegistryEvent>,
}

impl World {
    fn given(commands: impl IntoIterator<Item = (&'static str, ManageCommand)>) -> Self {
        let mut world = Self::default();
        for (of, command) in commands {
            world.perform(of, command, None).unwrap();
        }
        world
    }

    fn perform(
        &mut self,
        of: &str,
        command: ManageCommand,
        expected: Option<u64>,
    ) -> Result<Option<RegistryEvent>, ManageRejection> {
        let event = self.state.decide(&name(of), command, expected)?;
        if let Some(event) = &event {
            self.state.evolve(event, Timestamp::UNIX_EPOCH);
            self.events.push(event.clone());
        }
        Ok(event)
    }

    fn history(&self, of: &str) -> Vec<Version> {
        history(self.events.iter().map(|event| (event, Timestamp::UNIX_EPOCH)), &name(of))
    }

    fn text(&self, of: &str) -> Option<&str> {
        self.state.get(&name(of)).map(|one| one.definition.description.as_str())
    }
}

#[track_caller]
fn check(given: Vec<ManageCommand>, when: ManageCommand, expected: Result<Option<&str>, &str>) {
    let mut world = World::given(given.into_iter().map(|command| ("a", command)));
    let found = world.perform("a", when, None);
    match (found, expected) {
        (Ok(event), Ok(event_type)) => assert_eq!(event.as_ref().map(RegistryEvent::event_type), event_type),
        (Err(rejection), Err(words)) => assert_eq!(rejection.to_string(), words),
        (found, expected) => panic!("{found:?}, not {expected:?}"),
    }
}

#[test]
fn each_command_has_its_event_and_its_refusals() {
    use ManageCommand::{Delete, Disable, Enable};
    let unknown = Err("managed definition a not found");
    check(vec![], create("one"), Ok(Some("definition.created")));
    let exists = Err("managed definition a exists at version 1; update it instead");
    check(vec![create("one")], create("two"), exists);
    check(vec![create("one"), Delete], create("two"), Ok(Some("definition.created")));
    check(vec![create("one")], update("two"), Ok(Some("definition.updated")));
    check(vec![create("one")], update("one"), Ok(None));
    check(vec![], update("two"), unknown);
    check(vec![create("one")], Enable, Ok(None));
    check(vec![create("one"), Disable], Enable, Ok(Some("definition.enabled")));
    check(vec![create("one")], Disable, Ok(Some("definition.disabled")));
    check(vec![], Disable, unknown);
    check(vec![], Enable, unknown);
    check(vec![create("one")], Delete, Ok(Some("definition.deleted")));
    check(vec![create("one"), Delete], Delete, unknown);
    let back = |was| ManageCommand::RollBack { to_version: 7, was };
    check(vec![create("one")], back(Some(agent("old"))), Ok(Some("definition.rolled_back")));
    check(vec![create("one")], back(Some(agent("one"))), Ok(None));
    let nothing = Err("managed definition a had no text at version 7; its history lists the versions");
    check(vec![create("one")], back(None), nothing);
    check(vec![], back(Some(agent("old"))), unknown);
}

#[test]
fn a_change_may_say_which_version_it_is_for() {
    let mut world = World::given([("a", create("one")), ("a", update("two"))]);
    let late = world.perform("a", update("three"), Some(1)).unwrap_err();
    assert_eq!(late, ManageRejection::Changed { name: name("a"), expected: 1, actual: 2 });
    world.perform("a", update("three"), Some(2)).unwrap();
    world.perform("a", ManageCommand::Delete, Some(3)).unwrap();
    let blind = world.perform("a", create("four"), Some(0)).unwrap_err();
    assert_eq!(blind, ManageRejection::Changed { name: name("a"), expected: 0, actual: 4 });
    world.perform("a", create("four"), Some(4)).unwrap();
    assert_eq!(world.state.get(&name("a")).unwrap().version, 5);
    world.perform("b", create("other"), Some(0)).unwrap();
}

#[test]
fn the_rules_of_the_configuration_hold() {
    let broken = CustomAgent {
        max_turns: 0,
        timeout_seconds: 0,
        model: ModelChoice::Named(" ".into()),
        ..*agent(" ")
    };
    let rejection = World::default()
        .perform("a", ManageCommand::Create { definition: Box::new(broken), enabled: true }, None)
        .unwrap_err();
    let words = rejection.to_string();
    for key in ["timeout_seconds", "max_turns", "model", "description"] {
        assert!(words.contains(&format!("definition.{key} is")), "{words}");
    }
    let long = CustomAgent { system_prompt: "x".repeat(32_001), ..*agent("a") };
    let rejection = World::given([("a", create("one"))])
        .perform("a", ManageCommand::Update { definition: Box::new(long) }, None)
        .unwrap_err();
    assert!(
        rejection.to_string().contains("32001 characters long: it must be 32000 characters at most"),
        "{rejection}"
    );
}

#[test]
fn there_are_not_more_than_fit() {
    let mut world = World::default();
    for at in 0..MANAGED_DEFINITIONS_MAX {
        world.perform(&format!("a{at}"), create("one"), None).unwrap();
    }
    assert_eq!(world.perform("b", create("one"), None), Err(ManageRejection::TooMany));
    world.perform("a0", ManageCommand::Delete, None).unwrap();
    world.perform("b", create("one"), None).unwrap();
}

#[test]
fn a_history_tells_every_version() {
    let world = World::given([
        ("a", create("one")),
        ("b", create("other")),
        ("a", update("two")),
        ("a", ManageCommand::Disable),
        ("a", ManageCommand::RollBack { to_version: 1, was: Some(agent("one")) }),
        ("a", ManageCommand::Enable),
        ("a", ManageCommand::Delete),
    ]);
    let told: Vec<_> = world
        .history("a")
        .into_iter()
        .map(|one| (one.version, one.change, one.definition.map(|it| it.description), one.is_enabled))
        .collect();
    let text = |text: &str| Some(text.to_owned());
    let expected = vec![
        (1, Change::Created { enabled: true }, text("one"), true),
        (2, Change::Updated, text("two"), true),
        (3, Change::Disabled, text("two"), false),
        (4, Change::RolledBack { to_version: 1 }, text("one"), false),
        (5, Change::Enabled, text("one"), true),
        (6, Change::Deleted, None, false),
    ];
    assert_eq!(told, expected);
}

/// What a delegation to the managed `writer` obeys: seconds, turns, model, skills and tokens.
#[track_caller]
fn check_precedence(settings: serde_json::Value, expected: (u64, u32, &str, Option<&[&str]>, u64)) {
    let written = serde_json::json!({
        "description": "d", "system_prompt": "p", "timeout_seconds": 100, "max_turns": 20, "model": "own",
        "skills": ["own"],
    });
    let definition: Box<CustomAgent> = serde_json::from_value(written).unwrap();
    let world = World::given([("writer", ManageCommand::Create { definition, enabled: true })]);
    let parsed: SubagentsSettings = serde_json::from_value(settings.clone()).unwrap();
    let registry = Registry::new(parsed, false).with_managed(world.state.enabled().as_ref());
    let Resolved { definition, token_budget, .. } = registry.resolve("writer").unwrap();
    let skills = definition.skills.as_ref().map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
    let model = String::from(definition.model);
    let found = (
        definition.timeout_seconds,
        definition.max_turns,
        model.as_str(),
        skills.as_deref(),
        token_budget.max_tokens,
    );
    assert_eq!(found, expected, "{settings}");
}

// Facts §1.3, with managed definitions in it: an override of the name, then the definition. The global limits
// are for built-in types, the global budget is for all.
#[test]
fn what_is_configured_of_a_name_lies_over_its_managed_definition() {
    use serde_json::json;
    let own: Option<&[&str]> = Some(&["own"]);
    check_precedence(json!({}), (100, 20, "own", own, 2_000_000));
    let global = json!({"timeout_seconds": 7, "max_turns": 7, "token_budget": {"max_tokens": 5_000}});
    check_precedence(global.clone(), (100, 20, "own", own, 5_000));
    let over = |key: &str, value: serde_json::Value| {
        let mut settings = global.clone();
        settings["agents"]["writer"][key] = value;
        settings
    };
    check_precedence(over("timeout_seconds", json!(300)), (300, 20, "own", own, 5_000));
    check_precedence(over("max_turns", json!(3)), (100, 3, "own", own, 5_000));
    check_precedence(over("model", json!("fast")), (100, 20, "fast", own, 5_000));
    check_precedence(over("model", json!("inherit")), (100, 20, "inherit", own, 5_000));
    check_precedence(over("skills", json!([])), (100, 20, "own", Some(&[]), 5_000));
    check_precedence(over("skills", json!(["a"])), (100, 20, "own", Some(&["a"]), 5_000));
    check_precedence(over("token_budget", json!({"max_tokens": 9_000})), (100, 20, "own", own, 9_000));
    // An override of another name says nothing of this one.
    check_precedence(json!({"agents": {"bash": {"max_turns": 1}}}), (100, 20, "own", own, 2_000_000));
}

/// Facts §1.8: an earlier source owns its names, and what it hides comes back when it lets go.
#[test]
fn earlier_sources_hide_managed_definitions_and_overrides_lie_over_them() {
    let settings: SubagentsSettings = serde_json::from_value(serde_json::json!({
        "timeout_seconds": 60,
        "max_turns": 7,
        "custom_agents": {"reviewer": {"description": "configured", "system_prompt": "work"}},
        "agents": {"writer": {"max_turns": 3}},
    }))
    .unwrap();
    let world = World::given([
        ("reviewer", create("managed")),
        ("bash", create("managed")),
        ("writer", create("managed")),
        ("off", ManageCommand::Create { definition: agent("managed"), enabled: false }),
    ]);
    let registry = Registry::new(settings, false).with_managed(world.state.enabled().as_ref());
    let origins = |registry: &Registry| -> Vec<_> {
        let listed = registry.available(true, None);
        listed.iter().map(|one| (one.definition.name.to_string(), one.origin)).collect()
    };
    let listed = origins(&registry);
    assert!(listed.contains(&("reviewer".into(), Origin::Configured)), "{listed:?}");
    assert_eq!(listed.last().unwrap(), &("writer".to_owned(), Origin::Managed));
    assert!(!listed.iter().any(|(name, _)| name == "off"));
    assert_eq!(registry.hides("reviewer"), Some(Origin::Configured));
    assert_eq!(registry.hides("bash"), Some(Origin::BuiltIn));
    assert_eq!(registry.hides("writer"), None);
    // Its own limits, and not the global ones, with what the configuration says of its name.
    let writer = registry.resolve("writer").unwrap();
    assert_eq!((writer.definition.timeout_seconds, writer.definition.max_turns), (900, 3));
    assert_eq!(registry.permit("off", true, None), Err(RefusalReason::UnknownType));
    let only = ["bash".to_owned()];
    assert_eq!(registry.permit("writer", true, Some(&only)), Err(RefusalReason::NotAllowed));
    let free =
        Registry::new(SubagentsSettings::default(), false).with_managed(world.state.enabled().as_ref());
    assert!(origins(&free).contains(&("reviewer".into(), Origin::Managed)));
}

fn command() -> impl Strategy<Value = ManageCommand> {
    prop_oneof![
        ("[a-c]", any::<bool>())
            .prop_map(|(text, enabled)| ManageCommand::Create { definition: agent(&text), enabled }),
        "[a-c]".prop_map(|text| update(&text)),
        Just(ManageCommand::Enable),
        Just(ManageCommand::Disable),
        Just(ManageCommand::Delete),
        (1..6_u64).prop_map(|to_version| ManageCommand::RollBack { to_version, was: None }),
    ]
}

proptest! {
    /// Versions count without a gap, the last one is the state, and going back gives that text again.
    #[test]
    fn versions_name_states_for_ever(commands in prop::collection::vec(("[xy]", command()), 0..40)) {
        let mut world = World::default();
        for (of, command) in commands {
            let before = world.history(&of);
            let mut wanted = None;
            let command = if let ManageCommand::RollBack { to_version, .. } = command {
                let then = before.iter().find(|one| one.version == to_version);
                wanted = then.and_then(|one| one.definition.clone()).map(Box::new);
                ManageCommand::RollBack { to_version, was: wanted.clone() }
            } else {
                command
            };
            let changed = world.perform(&of, command, None);
            let after = world.history(&of);
            prop_assert_eq!(&after[..before.len()], &before[..]);
            prop_assert!(after.iter().map(|one| one.version).eq(1..=after.len() as u64));
            if let (Ok(_), Some(wanted)) = (&changed, wanted) {
                prop_assert_eq!(world.text(&of), Some(wanted.description.as_str()));
            }
            let last = after.last().and_then(|one| Some((one.definition.clone()?, one.is_enabled)));
            let state = world.state.get(&name(&of)).map(|one| (one.definition.clone(), one.is_enabled));
            prop_assert_eq!(last, state);
        }
    }
}
