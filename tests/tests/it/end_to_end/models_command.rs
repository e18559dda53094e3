//! `remit models` and `remit models check`, against the stub as each provider.

use serde_json::{Value, json};
use tests::{
    process::Remit,
    stub_model::{Answer, Asked, Call, Face, KEY, Reply, StubModel, UsageSent},
};

use super::remit;

/// As models are meant to be: streams, counts, and calls what it is asked to call.
fn good(asked: &Asked) -> Answer {
    match asked.tools().first() {
        Some(tool) => Reply::calls([Call::new(tool, json!({"word": "ready"}))]).into(),
        None => Reply::says("one two three four five").into(),
    }
}

/// The command with one model of each provider, whose keys are in different places.
fn configured(stub: &StubModel) -> Remit {
    let base = stub.base_url();
    let root = base.trim_end_matches("/v1");
    let remit = remit().with("CLAUDE_KEY", KEY);
    remit.write("gemini.key", &format!("{KEY}\n"));
    remit.write(
        "remit.yaml",
        &format!(
            "default_model: claude\n\
             models:\n\
             - {{name: local, provider: openai, base_url: '{base}', model: qwen, context_tokens: 32768, api_key: {KEY}}}\n\
             - {{name: claude, provider: anthropic, base_url: '{root}', api_key: $CLAUDE_KEY, headers: {{x-team: red}}}}\n\
             - {{name: gemini, provider: gemini, base_url: '{root}', api_key: 'file:gemini.key'}}\n\
             - {{name: lost, provider: openai, base_url: 'http://me:pw@127.0.0.1:1/v1', api_key: $NOBODY_HAS_THIS}}\n\
             - {{name: down, provider: openai, base_url: 'http://127.0.0.1:1/v1'}}\n\
             - {{name: offline, provider: offline}}\n\
             pricing: {{models: {{local: {{input_per_million: 0.5, output_per_million: 1.5}}}}}}\n"
        ),
    );
    remit
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn models_are_listed_without_their_keys() {
    let stub = StubModel::start(good).await;
    let base = stub.base_url();
    let root = base.trim_end_matches("/v1");
    let remit = configured(&stub);
    // A user and password in an address would be refused; the list shows neither.
    let text = std::fs::read_to_string(remit.folder().join("remit.yaml")).unwrap();
    let listed = remit.run(&["models", "--json"]).await.exited(0);
    assert!(text.contains("me:pw@") && !listed.stdout.contains("pw") && !listed.stdout.contains(KEY));
    let rows = listed.json();
    let of = |name: &str| rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
    assert_eq!(
        of("local"),
        json!({
            "name": "local", "is_default": false, "provider": "openai", "model": "qwen", "base_url": base,
            "api_key": {"present": true, "source": "configuration", "name": null},
            "context_tokens": 32_768, "max_tokens": null,
            "price": {"currency": "USD", "input_per_million": 0.5, "output_per_million": 1.5,
                "cached_input_per_million": null},
        })
    );
    let key = |name: &str| of(name)["api_key"].clone();
    assert_eq!(key("claude"), json!({"present": true, "source": "environment", "name": "CLAUDE_KEY"}));
    assert_eq!(key("gemini"), json!({"present": true, "source": "file", "name": "gemini.key"}));
    assert_eq!(key("lost"), json!({"present": false, "source": "environment", "name": "NOBODY_HAS_THIS"}));
    assert_eq!(key("offline"), json!({"present": false, "source": "none", "name": null}));
    assert_eq!(
        (of("claude")["is_default"].clone(), of("claude")["base_url"].clone()),
        (json!(true), json!(root))
    );
    let shown = remit.run(&["models"]).await.exited(0).stdout;
    for part in ["claude *", "CLAUDE_KEY", "NOBODY_HAS_THIS (missing)", "0.5/1.5 USD"] {
        assert!(shown.contains(part), "{shown}");
    }
    assert_eq!(stub.count(), 0, "listing asks nobody");
    let bare = super::remit().run(&["models", "--json"]).await.exited(0).json();
    assert_eq!((bare.as_array().unwrap().len(), bare[0]["provider"].clone()), (1, json!("offline")));
}

/// What came of each check.
fn outcomes(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| (text(&check["check"]), text(&check["outcome"])))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_good_model_of_every_provider_passes() {
    let stub = StubModel::start(good).await;
    let remit = configured(&stub);
    for (name, face) in [("local", Face::Openai), ("claude", Face::Anthropic), ("gemini", Face::Gemini)] {
        let report = remit.run(&["models", "check", name, "--json"]).await.exited(0).json();
        assert_eq!(report["usable"], true, "{report}");
        assert!(outcomes(&report).iter().all(|(_, outcome)| outcome == "ok"), "{report}");
        let asked = stub.requests().pop().unwrap();
        assert_eq!((asked.face, asked.authorization.contains(KEY)), (face, true));
    }
    stub.assert_strict();
    assert_eq!(stub.count(), 6);
    let shown = remit.run(&["models", "check", "claude"]).await.exited(0).stdout;
    assert!(shown.contains("calls tools") && shown.contains("it can be used"), "{shown}");
    remit.run(&["models", "check", "offline"]).await.exited(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_failure_has_its_exit_code_and_advice() {
    let cases: Vec<(Answer, i32, &str, &str)> = vec![
        (Answer::refusal(401, "invalid api key"), 4, "authorised", "look at the key in $CLAUDE_KEY"),
        (Answer::refusal(402, "pay first"), 4, "answers", "billing"),
        (Answer::refusal(404, "no such model"), 1, "answers", "look at model"),
        (Answer::refusal(400, "what?"), 1, "answers", "look at provider"),
        (
            Answer::refusal(529, "Overloaded").header("retry-after", "7"),
            1,
            "answers",
            "try again in 7 seconds",
        ),
        (Answer::raw(200, b"<html>".to_vec()), 1, "answers", "look at provider"),
        (Reply::says("I will not call it").into(), 1, "calls_tools", "agents work by tools"),
        (Reply::says("one").usage(UsageSent::Absent).into(), 1, "calls_tools", "agents work by tools"),
    ];
    for (answer, code, check, advice) in cases {
        let stub = StubModel::start(move |_: &Asked| answer.clone()).await;
        let ended = configured(&stub).run(&["models", "check", "claude", "--json"]).await.exited(code);
        let report = ended.json();
        assert_eq!(report["usable"], false, "{report}");
        let failed =
            report["checks"].as_array().unwrap().iter().find(|check| check["outcome"] == "failed").unwrap();
        assert_eq!(failed["check"], check, "{report}");
        assert!(failed["advice"].as_str().unwrap().contains(advice), "{report}");
        assert!(!ended.stdout.contains(KEY));
    }
    let stub = StubModel::start(good).await;
    let remit = configured(&stub);
    let report = remit.run(&["models", "check", "down", "--json"]).await.exited(1).json();
    assert_eq!(outcomes(&report)[0], ("reachable".to_owned(), "failed".to_owned()), "{report}");
    let unset = remit.run(&["models", "check", "lost"]).await.exited(2);
    assert!(unset.stderr.contains("NOBODY_HAS_THIS, which is not set"), "{}", unset.stderr);
    let unknown = remit.run(&["models", "check", "nobody"]).await.exited(3);
    assert!(unknown.stderr.contains("local, claude, gemini"), "{}", unknown.stderr);
}
