use std::{fs, path::Path};

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::models::Provider;

/// What a test lays down: files of the working folder, variables and flags.
#[derive(Default)]
struct Given<'a> {
    files: &'a [(&'a str, &'a str)],
    explicit: Option<&'a str>,
    env: &'a [(&'a str, &'a str)],
    flags: &'a [(&'a str, Value)],
}

impl Given<'_> {
    fn load(&self) -> (Result<Loaded, ConfigError>, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in self.files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let env: Vec<_> = self.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let flag = |(key, value): &(&str, Value)| Flag {
            key: (*key).to_owned(),
            value: value.clone(),
            name: "--flag".to_owned(),
        };
        let loaded = Config::load(ConfigSources {
            explicit_file: self.explicit.map(PathBuf::from),
            working_dir: folder.path().to_owned(),
            env: Box::new(env.into_iter()),
            flags: self.flags.iter().map(flag).collect(),
        });
        (loaded, folder)
    }
}

fn yaml(text: &str) -> Result<Loaded, ConfigError> {
    Given { files: &[("remit.yaml", text)], ..Given::default() }.load().0
}

/// The message with the folder taken out, and the causes after it.
fn message(error: &ConfigError, folder: &Path) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text.replace(&format!("{}/", folder.display()), "")
}

#[track_caller]
fn check_refused(given: &Given, expected: &str) {
    let (loaded, folder) = given.load();
    assert_eq!(message(&loaded.unwrap_err(), folder.path()), expected);
}

#[track_caller]
fn check_yaml_refused(text: &str, expected: &str) {
    check_refused(&Given { files: &[("remit.yaml", text)], ..Given::default() }, expected);
}

/// The example of the interface, word for word where it is not an ellipsis.
const EXAMPLE: &str = r"
models:
  - name: local                      # shown as model_name
    provider: openai                 # openai | anthropic | gemini | offline
    base_url: http://127.0.0.1:8080/v1
    model: qwen                      # the provider's id
    api_key: $LOCAL_API_KEY          # or a literal, or omitted
    context_tokens: 32768            # optional
    request_timeout_seconds: 120     # optional, and connect/first-byte/chunk time-outs
default_model: local                 # else the first; none configured: the offline model
subagents:
  timeout_seconds: 1800
  max_turns: null
  max_total_per_run: 6
  token_budget: { enabled: true, max_tokens: 2000000, warn_threshold: 0.7, hard_stop_threshold: 1.0 }
  agents: { bash: { timeout_seconds: 300 } }
  custom_agents: { reviewer: { description: Reviews, system_prompt: You review, tools: [read_file, grep] } }
subagent_runtime: { max_running: 3, queue_capacity: 256, queue_timeout_seconds: 300 }
subagent_batches: { max_items_per_batch: 10000, max_live_batches: 16, max_running_items: 3, lease_seconds: 60, max_attempts: 3, result_max_chars: 8192 }
verification: { receipts_enabled: true }
summarization: { enabled: false, trigger: [{ tokens: 32000 }], keep: { messages: 10 } }
loop_detection: { enabled: true, warn_threshold: 3, hard_limit: 5, window_size: 20, tool_freq_warn: 30, tool_freq_hard_limit: 50 }
sandbox: { allow_host_bash: false, network: false }
log: { path: ./remit-data }          # fjall folder; later also nats://…
server: { listen: 127.0.0.1:8700 }
recovery: resume                     # resume | fail
";

#[test]
fn without_anything_the_defaults_hold() {
    let loaded = Given::default().load().0.unwrap();
    assert_eq!(loaded.config, Config::default());
    assert_eq!(loaded.file, None);
    assert_eq!(loaded.provenance("server.listen"), &Provenance::Default);
    assert!(loaded.config.server.listen.ip().is_loopback());
}

#[test]
fn the_example_of_the_interface_says_the_defaults() {
    let mut config = yaml(EXAMPLE).unwrap().config;
    let models = std::mem::take(&mut config.models);
    assert_eq!((models[0].name.as_str(), models[0].provider), ("local", Provider::Openai));
    assert_eq!(config.subagents.agents.get("bash").unwrap().timeout_seconds, Some(300));
    assert!(config.subagents.custom_agents.get("reviewer").is_some());
    config.default_model = None;
    config.subagents = SubagentsSettings::default();
    assert_eq!(config, Config::default(), "a default is not what the interface says");
}

#[test]
fn yaml_and_toml_say_the_same() {
    let toml = r#"
        recovery = "fail"
        [subagents]
        max_total_per_run = 9
        [subagents.agents.bash]
        timeout_seconds = 300
        [[models]]
        name = "local"
        provider = "offline"
    "#;
    let yaml_text = "recovery: fail\nsubagents: {max_total_per_run: 9, agents: {bash: {timeout_seconds: 300}}}\n\
                     models: [{name: local, provider: offline}]\n";
    let (from_toml, _folder) = Given { files: &[("remit.toml", toml)], ..Given::default() }.load();
    assert_eq!(from_toml.unwrap().config, yaml(yaml_text).unwrap().config);
}

#[test]
fn empty_files_and_sections_mean_the_defaults() {
    for text in ["", "# nothing here\n", "subagents:\nlog: # path: x\n", "summarization: {}\n"] {
        assert_eq!(yaml(text).unwrap().config, Config::default(), "{text:?}");
    }
}

#[test]
fn later_layers_win_key_by_key() {
    let given = Given {
        files: &[("remit.yaml", "subagents: {max_turns: 5, timeout_seconds: 50, max_total_per_run: 2}\n")],
        env: &[("REMIT__SUBAGENTS__TIMEOUT_SECONDS", "60"), ("REMIT__SUBAGENTS__MAX_TOTAL_PER_RUN", "3")],
        flags: &[("subagents.max_total_per_run", json!(4))],
        ..Given::default()
    };
    let (loaded, folder) = given.load();
    let loaded = loaded.unwrap();
    let subagents = &loaded.config.subagents;
    assert_eq!(
        (subagents.max_turns, subagents.timeout_seconds, subagents.max_total_per_run),
        (Some(5), 60, 4)
    );
    let path = folder.path().join("remit.yaml");
    for (key, expected) in [
        ("subagents.max_turns", Provenance::File { path }),
        ("subagents.timeout_seconds", Provenance::Env { name: "REMIT__SUBAGENTS__TIMEOUT_SECONDS".into() }),
        ("subagents.max_total_per_run", Provenance::Flag { name: "--flag".into() }),
        ("subagents.agents", Provenance::Default),
    ] {
        assert_eq!(loaded.provenance(key), &expected, "{key}");
    }
}

#[test]
fn a_list_is_replaced_as_a_whole_and_an_object_is_not() {
    let given = Given {
        files: &[(
            "remit.yaml",
            "models: [{name: a, provider: offline}, {name: b, provider: offline}]\nsubagents: {agents: {bash: {max_turns: 7}}}\n",
        )],
        env: &[
            ("REMIT__MODELS", "[{name: c, provider: offline}]"),
            ("REMIT__SUBAGENTS__AGENTS", "{\"general-purpose\": {\"max_turns\": 8}}"),
        ],
        ..Given::default()
    };
    let config = given.load().0.unwrap().config;
    assert_eq!(config.models.iter().map(|model| model.name.as_str()).collect::<Vec<_>>(), ["c"]);
    let turns = |name: &str| config.subagents.agents.get(name).and_then(|agent| agent.max_turns);
    assert_eq!((turns("bash"), turns("general-purpose")), (Some(7), Some(8)));
}

#[test]
fn one_trigger_needs_no_list_and_none_means_never() {
    let trigger = |text: &str| yaml(text).unwrap().config.summarization.trigger;
    assert_eq!(trigger("summarization: {trigger: {messages: 40}}"), [Extent::Messages(40)]);
    assert_eq!(trigger("summarization: {trigger: null}"), []);
}

#[test]
fn how_models_are_called_has_its_ranges() {
    let section = "llm_call: {max_concurrent_calls: 4, retry_max_attempts: 5, retry_base_ms: 10, retry_cap_ms: 20, burst_base_ms: 30}\n";
    let set =
        yaml(&format!("{section}circuit_breaker: {{threshold: 0, recovery_seconds: 9}}\n")).unwrap().config;
    let policy = set.llm_call.retry_policy();
    assert_eq!((set.llm_call.max_concurrent_calls, policy.attempts_max), (4, 5));
    assert_eq!(
        [policy.wait_base, policy.wait_cap, policy.burst_wait_base].map(|wait| wait.as_millis()),
        [10, 20, 30]
    );
    assert_eq!(
        (set.circuit_breaker.policy().threshold, set.circuit_breaker.policy().recovery.as_secs()),
        (0, 9)
    );
    assert_eq!(Config::default().llm_call.retry_policy(), crate::models::RetryPolicy::default());
    for (text, expected) in [
        ("llm_call: {retry_max_attempts: 0}", "llm_call.retry_max_attempts is 0: it must be from 1 to 20"),
        (
            "circuit_breaker: {recovery_seconds: 0}",
            "circuit_breaker.recovery_seconds is 0: it must be from 1 to 86400",
        ),
    ] {
        check_yaml_refused(text, &format!("{expected} (set in remit.yaml)"));
    }
}

#[test]
fn a_history_cannot_be_compacted_by_what_is_not_there() {
    for (text, expected) in [
        (
            "summarization: {enabled: true, trigger: {fraction: 0.5}}",
            "summarization.trigger.fraction is 0.5: it must be in tokens or messages as long as context_tokens is not set for the offline model",
        ),
        (
            "models: [{name: a, provider: offline}]\nsummarization: {enabled: true, keep: {fraction: 0.1}}",
            "summarization.keep.fraction is 0.1: it must be in tokens or messages as long as context_tokens is not set for a",
        ),
        (
            "models: [{name: a, provider: offline}]\nsummarization: {model_name: b}",
            "summarization.model_name is \"b\": it must be null or a configured model: a",
        ),
        (
            "summarization: {model_name: b}",
            "summarization.model_name is \"b\": it must be null or a configured model: offline",
        ),
        (
            "summarization: {trim_tokens: 99}",
            "summarization.trim_tokens is 99: it must be from 100 to 10000000",
        ),
        ("summarization: {prompt: \" \"}", "summarization.prompt is blank: it must be null or a text"),
    ] {
        check_yaml_refused(text, &format!("{expected} (set in remit.yaml)"));
    }
}

#[test]
fn a_share_of_the_context_needs_models_that_say_what_they_hold() {
    let models = "models: [{name: a, provider: offline, context_tokens: 8192}]\n";
    let section = "summarization: {enabled: true, trigger: {fraction: 0.8}, keep: {fraction: 0.2}, trim_tokens: null, model_name: a}\n";
    let set = yaml(&format!("{models}{section}")).unwrap().config.summarization;
    assert_eq!(
        (set.trigger, set.keep, set.trim_tokens),
        (vec![Extent::Fraction(0.8)], Extent::Fraction(0.2), None)
    );
    // What is switched off needs nothing.
    yaml("summarization: {trigger: {fraction: 0.8}}\n").unwrap();
}

#[test]
fn a_budget_is_set_only_where_it_is_written() {
    assert_eq!(yaml("recovery: fail\n").unwrap().config.subagents.token_budget, None);
    let set =
        yaml("subagents: {token_budget: {max_tokens: 500000}}\n").unwrap().config.subagents.token_budget;
    assert_eq!(set.map(|budget| budget.resolve().max_tokens), Some(500_000));
}

#[test]
fn an_explicit_file_wins_over_the_folders() {
    let given = Given {
        files: &[("remit.yaml", "recovery: resume\n"), ("other.yml", "recovery: fail\n")],
        explicit: Some("other.yml"),
        ..Given::default()
    };
    let loaded = given.load().0.unwrap();
    assert_eq!(loaded.config.recovery, Recovery::Fail);
    assert_eq!(loaded.file, Some(PathBuf::from("other.yml")));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let missing = Given { explicit: Some("absent.yaml"), ..Given::default() };
    check_refused(
        &missing,
        "reading the configuration file absent.yaml: No such file or directory (os error 2)",
    );
    let json = Given { files: &[("c.json", "{}")], explicit: Some("c.json"), ..Given::default() };
    check_refused(&json, "the configuration file c.json must end in .yaml, .yml or .toml");
    let two = Given { files: &[("remit.yaml", ""), ("remit.toml", "")], ..Given::default() };
    check_refused(&two, "both remit.yaml and remit.toml are here: keep one, or name one with --config");
    check_yaml_refused("- a\n- b\n", "the configuration file remit.yaml must hold keys and values");
    let large = " ".repeat(1024 * 1024 + 1);
    check_yaml_refused(&large, "the configuration file remit.yaml is larger than 1048576 bytes");
}

#[test]
fn a_malformed_file_is_named_without_quoting_it() {
    let yaml =
        Given { files: &[("remit.yaml", "models:\n  - {name: a, api_key: 's3cret\n")], ..Given::default() };
    let toml =
        Given { files: &[("remit.toml", "recovery = \"fail\"\napi_key = 's3cret\n")], ..Given::default() };
    for (given, opening) in
        [(yaml, "reading remit.yaml as YAML: "), (toml, "reading remit.toml as TOML: line 2: ")]
    {
        let (loaded, folder) = given.load();
        let text = message(&loaded.unwrap_err(), folder.path());
        assert!(text.starts_with(opening), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
}

#[test]
fn a_key_that_stands_twice_is_refused() {
    let text = yaml("recovery: fail\nrecovery: resume\n").unwrap_err();
    assert!(matches!(text, ConfigError::Malformed { format: "YAML", .. }), "{text}");
}

#[test]
fn a_file_that_is_no_yaml_is_described_to_whoever_wrote_it() {
    for (text, expected) in [
        ("log: {path: x}\n: 3\n", "line 2: a key is empty; write a name before the colon"),
        ("{~: 3}\n", "line 1: a key is empty; write a name before the colon"),
        ("log:\n  path: x\n  path: y\n", "line 3: a key stands twice in its place; keep one of the two"),
        ("a: 1\n---\nb: 2\n", "line 3: only single YAML document expected but multiple found"),
        ("models: [\n", "line 1: unclosed bracket '['"),
    ] {
        let error = yaml(text).unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(source, expected, "{text}");
    }
}

#[test]
fn an_unknown_key_is_named_with_what_was_meant() {
    check_yaml_refused(
        "subagent_runtime: {max_runing: 3}\n",
        "unknown key subagent_runtime.max_runing, did you mean max_running?: known here are max_running, \
         queue_capacity, queue_timeout_seconds (set in remit.yaml)",
    );
    check_yaml_refused(
        "verification: {xyz: 3}\n",
        "unknown key verification.xyz: known here are receipts_enabled (set in remit.yaml)",
    );
    let error = yaml("models: [{name: a, provider: offline, base_ulr: x}]\n").unwrap_err();
    let ConfigError::UnknownKey { key, nearest, set_by: Provenance::File { .. }, .. } = error else {
        panic!("{error}")
    };
    assert_eq!((key.as_str(), nearest.as_deref()), ("models[0].base_ulr", Some("base_url")));
    let nested = yaml("subagents: {agents: {bash: {max_turn: 3}}}\n").unwrap_err().to_string();
    let expected = "unknown key subagents.agents.bash.max_turn, did you mean max_turns?";
    assert!(nested.starts_with(expected), "{nested}");
}

#[test]
fn an_unknown_variable_is_an_error_and_others_are_not_ours() {
    let env = [("REMIT__SUBAGENTS__MAX_TOTAL_PER_RUM", "3"), ("REMIT_LOG", "x"), ("PATH", "y")];
    let error = Given { env: &env, ..Given::default() }.load().0.unwrap_err().to_string();
    assert!(
        error.starts_with("unknown key subagents.max_total_per_rum, did you mean max_total_per_run?"),
        "{error}"
    );
    assert!(
        error.ends_with("(set by the environment variable REMIT__SUBAGENTS__MAX_TOTAL_PER_RUM)"),
        "{error}"
    );
    let section = Given { env: &[("REMIT__SUBAGENT__X__Y", "3")], ..Given::default() }.load().0.unwrap_err();
    assert!(section.to_string().starts_with("unknown key subagent, did you mean subagents?"), "{section}");
    let empty = Given { env: &[("REMIT__LOG____PATH", "3")], ..Given::default() };
    check_refused(
        &empty,
        "the environment variable REMIT__LOG____PATH names no key; write REMIT__SECTION__KEY",
    );
}

#[test]
fn sections_that_nothing_obeys_yet_are_refused() {
    for section in ["tool_search", "guardrails", "skills", "mcp", "auth"] {
        check_yaml_refused(
            &format!("{section}: {{}}\n{section}_: 1\n"),
            &format!("{section} is not supported yet: take the section out (set in remit.yaml)"),
        );
    }
}

#[test]
fn a_value_of_the_wrong_type_is_named() {
    check_yaml_refused(
        "subagents: {max_total_per_run: many}\n",
        "subagents.max_total_per_run: invalid type: string \"many\", expected a whole number (set in remit.yaml)",
    );
    check_yaml_refused(
        "recovery: maybe\n",
        "recovery: unknown value `maybe`, expected `resume` or `fail` (set in remit.yaml)",
    );
    check_yaml_refused(
        "server: {listen: nowhere}\n",
        "server.listen: invalid socket address syntax (set in remit.yaml)",
    );
    check_yaml_refused(
        "log: {master_key: 0123abcd}\n",
        "log.master_key: it must be {file: PATH}, {env: NAME}, file:PATH or $NAME; the key itself does not belong \
         into the configuration (set in remit.yaml)",
    );
    check_yaml_refused(
        "models: [{provider: offline}]\n",
        "models[0]: missing key `name` (set in remit.yaml)",
    );
    check_yaml_refused(
        "models: [{name: a, provider: openai, api_key: 5551234}]\n",
        "models[0].api_key: it must be text (set in remit.yaml)",
    );
    check_yaml_refused(
        "sandbox: {network: yes}\n",
        "sandbox.network: invalid type: string \"yes\", expected a boolean (set in remit.yaml)",
    );
}

#[test]
fn a_value_out_of_its_range_is_named_with_the_range() {
    for (text, expected) in [
        (
            "subagent_runtime: {max_running: 65}",
            "subagent_runtime.max_running is 65: it must be from 1 to 64",
        ),
        (
            "subagent_batches: {lease_seconds: 4}",
            "subagent_batches.lease_seconds is 4: it must be from 5 to 86400",
        ),
        (
            "subagent_batches: {max_attempts: 0}",
            "subagent_batches.max_attempts is 0: it must be from 1 to 100",
        ),
        ("summarization: {keep: {messages: 0}}", "summarization.keep.messages is 0: it must be at least 1"),
        (
            "summarization: {trigger: [{fraction: 1.5}]}",
            "summarization.trigger.fraction is 1.5: it must be above 0 and at most 1",
        ),
        ("loop_detection: {window_size: 0}", "loop_detection.window_size is 0: it must be from 1 to 10000"),
        (
            "loop_detection: {tool_freq_overrides: {bash: {warn: 9, hard_limit: 8}}}",
            "loop_detection.tool_freq_overrides.bash.hard_limit is 8: it must be at least warn, which is 9",
        ),
        ("token_budget: {max_tokens: 999}", "token_budget.max_tokens is 999: it must be at least 1000"),
        (
            "token_budget: {warn_threshold: 0.9, hard_stop_threshold: 0.5}",
            "token_budget.hard_stop_threshold is 0.5: it must be at least warn_threshold, which is 0.9",
        ),
        (
            "log: {path: 'nats://me:s3cret@host'}",
            "log.path is \"nats://[secret]@host\": it must be a folder; logs on other servers are not supported yet",
        ),
        (
            "redaction: {allow: ['(']}",
            "redaction.allow is \"(\": it must be a regular expression (unclosed group)",
        ),
        (
            "redaction: {extra_patterns: ['x*']}",
            "redaction.extra_patterns is \"x*\": it must be a regular expression that does not match nothing at all",
        ),
        (
            "models: [{name: a, provider: offline, context_tokens: 1}]",
            "models.a.context_tokens is 1: it must be from 1024 to 10000000",
        ),
        (
            "models: [{name: a, provider: offline}, {name: a, provider: offline}]",
            "models.a.name is \"a\" twice: it must be a name of its own",
        ),
        (
            "{default_model: b, models: [{name: a, provider: offline}]}",
            "default_model is \"b\": it must be a configured model: a",
        ),
        ("default_model: b", "default_model is \"b\": it must be a configured model: offline"),
        (
            "pricing: {models: {a: {input_per_million: -1, output_per_million: 2}}}",
            "pricing.models.a.input_per_million is -1: it must be from 0 to 1000000",
        ),
        ("pricing: {currency: ''}", "pricing.currency is \"\": it must be 1 to 16 characters, such as USD"),
        (
            "{log: {path: d}, server: {backups: ./d/b}}",
            "server.backups is \"./d/b\": it must be a folder outside of log.path",
        ),
    ] {
        check_yaml_refused(text, &format!("{expected} (set in remit.yaml)"));
    }
}

#[test]
fn all_values_out_of_range_are_named_at_once_each_with_who_set_it() {
    let given = Given {
        files: &[("remit.yaml", "loop_detection: {warn_threshold: 9}\n")],
        env: &[("REMIT__SUBAGENT_RUNTIME__QUEUE_CAPACITY", "0")],
        ..Given::default()
    };
    check_refused(
        &given,
        "subagent_runtime.queue_capacity is 0: it must be from 1 to 100000 (set by the environment variable \
         REMIT__SUBAGENT_RUNTIME__QUEUE_CAPACITY); loop_detection.hard_limit is 5: it must be at least \
         warn_threshold, which is 9 (the default)",
    );
}

// Facts §12 line 9: an override's model that is empty fails the load.
#[test]
fn an_empty_model_of_an_override_is_refused() {
    check_yaml_refused(
        "subagents: {agents: {bash: {model: ''}}}\n",
        "subagents.agents.bash.model is \"\": it must be a model's name or \"inherit\" (set in remit.yaml)",
    );
    let env = [("REMIT__SUBAGENTS__AGENTS__BASH__MODEL", "\"\"")];
    let (loaded, _folder) = Given { env: &env, ..Given::default() }.load();
    assert!(matches!(loaded, Err(ConfigError::OutOfRange(_))));
}

// Facts §12 line 10: a limit of 0, or more than 50 delegations per run, fails the load.
#[test]
fn limits_of_zero_and_too_many_delegations_are_refused() {
    for (setting, allowed) in [
        ("timeout_seconds: 0", "at least 1"),
        ("max_turns: 0", "at least 1"),
        ("max_total_per_run: 0", "from 1 to 50"),
        ("max_total_per_run: 51", "from 1 to 50"),
    ] {
        let (key, value) = setting.split_once(": ").unwrap();
        check_yaml_refused(
            &format!("subagents: {{{setting}}}\n"),
            &format!("subagents.{key} is {value}: it must be {allowed} (set in remit.yaml)"),
        );
    }
    assert!(yaml("subagents: {timeout_seconds: 1, max_turns: 1, max_total_per_run: 50}\n").is_ok());
}

#[test]
fn what_is_in_force_is_shown_without_secrets() {
    let text = "models:\n\
                - {name: a, provider: openai, api_key: s3cret, base_url: 'http://me:s3cret@host/v1'}\n\
                - {name: b, provider: openai, api_key: $KEY, base_url: 'http://host/v1'}\n\
                - {name: c, provider: offline}\n";
    let loaded = yaml(text).unwrap();
    let models = &loaded.effective()["models"];
    assert_eq!(models[0]["api_key"], "[secret]");
    assert_eq!(models[0]["base_url"], "http://[secret]@host/v1");
    assert_eq!(models[1]["api_key"], "$KEY");
    assert_eq!(models[2].get("api_key"), None);
    assert!(!format!("{:?} {:?}", loaded.entries(), loaded.config.models[0].api_key).contains("s3cret"));
}

#[test]
fn every_value_in_force_is_listed_with_who_set_it() {
    let entries = yaml("subagents: {max_turns: 5}\n").unwrap().entries();
    let of = |key: &str| entries.iter().find(|entry| entry.key == key).unwrap();
    assert_eq!(of("subagents.max_turns").value, 5);
    assert!(matches!(of("subagents.max_turns").provenance, Provenance::File { .. }));
    assert_eq!(of("server.listen").value, "127.0.0.1:8700");
    assert_eq!(of("server.listen").provenance, Provenance::Default);
    assert_eq!(of("models").value, json!([]));
}

#[test]
fn backups_go_beside_the_data_folder_unless_another_is_named() {
    for (text, expected) in [
        ("{}", "./remit-data-backups"),
        ("log: {path: /srv/remit/}", "/srv/remit-backups"),
        ("log: {path: ..}", "../../remit-data-backups"),
        ("server: {backups: /backups}", "/backups"),
    ] {
        assert_eq!(yaml(text).unwrap().config.backups_folder(), Path::new(expected), "{text}");
    }
}

#[test]
fn what_is_in_force_loads_again_as_the_same() {
    let config = yaml(EXAMPLE).unwrap().config;
    let text = serde_json::to_string(&config).unwrap();
    let mut again = yaml(&text).unwrap().config;
    again.models[0].api_key.clone_from(&config.models[0].api_key);
    assert_eq!(again, config);
}
