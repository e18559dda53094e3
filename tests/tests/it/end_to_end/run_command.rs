//! `remit run` as a process, against the scripted model server.

use serde_json::json;
use tests::{
    folders::write_files,
    invariants::assert_whole,
    plain_fold::{assert_card, assert_ledger},
    process::Remit,
    record::{number, only, text},
    stub_model::{Answer, Asked, Call, KEY, Reply, StubModel},
};

use super::remit;

fn configure(remit: &Remit, stub: &StubModel) {
    let config = format!(
        "models:\n  - name: local\n    provider: openai\n    base_url: {}\n    model: qwen\n    api_key: $STUB_KEY\n",
        stub.base_url()
    );
    remit.write("remit.yaml", &config);
}

async fn run(remit: &Remit, words: &[&str]) -> tests::process::Ended {
    let mut command = remit.command(words);
    command.env("STUB_KEY", KEY);
    let output = command.output().await.unwrap();
    tests::process::Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn script(asked: &Asked) -> Answer {
    let path = "/mnt/user-data/workspace/notes.md";
    let reply = match (asked.is_lead(), asked.turn) {
        (true, 0) => Reply::calls([Call::task("general-purpose", "read the notes").id("call_1")]),
        (true, _) => Reply::says("The notes say: buy milk."),
        (false, 0) => Reply::calls([Call::new("read_file", json!({"path": path}))]),
        (false, _) => Reply::says(format!("It says {} [r1 read_file].", asked.results()[0].1)),
    };
    reply.into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_on_a_folder_answers_and_all_commands_agree() {
    let stub = StubModel::start(script).await;
    let remit = remit();
    configure(&remit, &stub);
    write_files(remit.folder(), &[("notes/notes.md", "buy milk")]);
    let done =
        run(&remit, &["run", "What do the notes say?", "--dir", "notes", "--json"]).await.exited(0).json();
    assert_eq!((text(&done, "status"), text(&done, "result")), ("success", "The notes say: buy milk."));
    stub.assert_strict();
    assert!(stub.requests().iter().all(|asked| asked.authorization == format!("Bearer {KEY}")));
    assert!(stub.requests().iter().all(|asked| asked.model == "qwen"));

    let events = run(&remit, &["events", "--json"]).await.exited(0).json();
    let events = events.as_array().unwrap();
    assert_whole(events);
    let ledger = run(&remit, &["ledger", "--json"]).await.exited(0).json();
    assert_ledger(ledger.as_array().unwrap(), events);
    assert_eq!(ledger, done["ledger"]);
    let card = run(&remit, &["card", "call_1", "--json"]).await.exited(0).json();
    assert_card(&card, events);
    assert!(text(&card, "result").contains("buy milk"), "{card}");
    let receipts = run(&remit, &["receipts", "call_1", "--json"]).await.exited(0).json();
    assert_eq!(receipts.to_string().matches("\"r1\"").count(), 1, "{receipts}");

    let again =
        run(&remit, &["run", "And again?", "--thread", text(&done, "thread_id"), "--json"]).await.exited(0);
    assert_eq!(again.json()["thread_id"], done["thread_id"]);
    let runs = run(&remit, &["runs", "--json"]).await.exited(0).json();
    assert_eq!(runs.as_array().unwrap().len(), 2);
    assert_eq!(runs[0]["run_id"], again.json()["run_id"], "the newest first");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_have_their_exit_codes() {
    let stub = StubModel::start(|_| Answer::refusal(400, "no such model here")).await;
    let remit = remit();
    configure(&remit, &stub);
    let failed = run(&remit, &["run", "x", "--json"]).await.exited(1);
    assert_eq!(text(&failed.json(), "status"), "error");
    assert!(failed.stderr.contains("no such model here"), "{}", failed.stderr);
    assert!(!failed.stderr.contains(KEY), "{}", failed.stderr);
    let events = run(&remit, &["events", "--json"]).await.exited(0).json();
    assert_whole(events.as_array().unwrap());
    assert_eq!(number(&only(events.as_array().unwrap(), "llm.error")["content"], "status"), 400);

    let unknown = run(&remit, &["run", "x", "--model", "gpt-9"]).await.exited(2);
    assert!(unknown.stderr.contains("gpt-9") && unknown.stderr.contains("local"), "{}", unknown.stderr);
    let missing = run(&remit, &["run", "x", "--dir", "nowhere"]).await.exited(3);
    assert!(missing.stderr.contains("nowhere"), "{}", missing.stderr);
    let empty = run(&remit, &["run", " "]).await.exited(2);
    assert!(empty.stderr.contains("no message with text"), "{}", empty.stderr);
    run(&remit, &["ledger", "--run", "nope"]).await.exited(3);
    run(&remit, &["events", "--thread", "a.b"]).await.exited(2);
    run(&remit, &["card"]).await.exited(2);
    run(&remit, &["nonsense"]).await.exited(2);
    assert_eq!(stub.count(), 1, "nothing else was asked of the model");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_configuration_is_named() {
    let remit = remit();
    for (config, expected) in [
        ("subagents:\n  max_turnz: 5\n", "max_turnz"),
        ("subagents:\n  max_total_per_run: 51\n", "51"),
        ("subagent_runtime:\n  max_running: 65\n", "max_running"),
        ("models:\n  - name: a\n    provider: openai\n", "base_url"),
        ("models:\n  - name: a\n    provider: nobody\n", "nobody"),
        ("models: [\n", "remit.yaml"),
        (
            "models:\n  - name: a\n    provider: openai\n    base_url: http://127.0.0.1:1\n    api_key: $NO_SUCH_KEY\n",
            "NO_SUCH_KEY",
        ),
    ] {
        remit.write("remit.yaml", config);
        let refused = run(&remit, &["run", "x"]).await.exited(2);
        assert!(refused.stderr.contains(expected), "{config} does not name {expected:?}: {}", refused.stderr);
        assert!(!remit.data().exists(), "{config}: nothing was made");
    }
    // Without any configuration the offline model answers.
    std::fs::remove_file(remit.folder().join("remit.yaml")).unwrap();
    let offline = run(&remit, &["run", "Look at the files here", "--json"]).await.exited(0).json();
    assert_eq!(text(&offline, "model_name"), "offline");
}
