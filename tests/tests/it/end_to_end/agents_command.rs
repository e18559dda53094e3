//! `remit agents`: on a folder and through a server, with the exit codes of the interface.

use serde_json::{Value, json};
use tests::process::Remit;

use super::remit;

const REVIEWER: &str =
    "description: Reviews a change\nsystem_prompt: |\n  Look for what could break.\ntools: [grep]\n";

/// Does the same there as here, with these options before every command.
async fn check(remit: &Remit, there: &[&str]) {
    let words =
        |words: &[&str]| -> Vec<String> { [words, there].concat().into_iter().map(str::to_owned).collect() };
    let run = |list: Vec<String>, code: i32| async move {
        let list: Vec<&str> = list.iter().map(String::as_str).collect();
        remit.run(&list).await.exited(code)
    };
    remit.write("reviewer.yaml", REVIEWER);
    remit.write("other.json", r#"{"description": "Other", "system_prompt": "p", "model": "small"}"#);
    remit.write("broken.yaml", "description: d\nsystem_prompt: p\nmax_turns: 0\n");

    let made = run(words(&["agents", "create", "reviewer", "--file", "reviewer.yaml"]), 0).await;
    assert_eq!(made.stdout, "created reviewer: version 1\n");
    run(words(&["agents", "create", "reviewer", "--file", "reviewer.yaml"]), 4).await;
    let broken = run(words(&["agents", "create", "broken", "--file", "broken.yaml"]), 2).await;
    assert!(broken.stderr.contains("definition.max_turns is 0: it must be at least 1"), "{}", broken.stderr);
    run(words(&["agents", "create", "broken", "--file", "nowhere.yaml"]), 2).await;
    let hidden = run(words(&["agents", "create", "bash", "--file", "reviewer.yaml"]), 0).await;
    assert!(hidden.stderr.contains("a built-in type has the name bash"), "{}", hidden.stderr);

    let updated =
        run(words(&["agents", "update", "reviewer", "--file", "other.json", "--expect", "1", "--json"]), 0)
            .await;
    assert_eq!(updated.json()["version"], 2);
    let late =
        run(words(&["agents", "update", "reviewer", "--file", "reviewer.yaml", "--expect", "1"]), 4).await;
    assert!(late.stderr.contains("is at version 2, not 1"), "{}", late.stderr);
    run(words(&["agents", "disable", "reviewer"]), 0).await;
    let listed = run(words(&["agents", "list"]), 0).await;
    assert!(
        listed.stdout.contains("disabled") && listed.stdout.contains("hidden by a built-in type"),
        "{}",
        listed.stdout
    );
    let listed: Value = run(words(&["agents", "list", "--json"]), 0).await.json();
    assert_eq!(listed["managed"].as_array().unwrap().len(), 2);
    run(words(&["agents", "rollback", "reviewer", "--to", "1"]), 0).await;
    run(words(&["agents", "rollback", "reviewer", "--to", "77"]), 3).await;
    run(words(&["agents", "enable", "reviewer"]), 0).await;
    let shown = run(words(&["agents", "show", "reviewer"]), 0).await;
    assert!(
        shown.stdout.contains("Look for what could break.") && shown.stdout.contains("version 5"),
        "{}",
        shown.stdout
    );
    run(words(&["agents", "show", "nobody"]), 3).await;
    run(words(&["agents", "delete", "reviewer"]), 0).await;
    run(words(&["agents", "delete", "reviewer"]), 3).await;
    let history: Value = run(words(&["agents", "history", "reviewer", "--json"]), 0).await.json();
    let changes: Vec<_> = history.as_array().unwrap().iter().map(|one| one["change"].clone()).collect();
    assert_eq!(
        changes,
        ["created", "updated", "disabled", "rolled_back", "enabled", "deleted"].map(|one| json!(one))
    );
    run(words(&["agents", "history", "nobody"]), 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_are_kept_in_a_folder() {
    let remit = remit();
    check(&remit, &[]).await;
    // A lead that may delegate to one type is refused the others by name; with nobody to delegate to it
    // does not try.
    remit.run(&["agents", "create", "writer", "--file", "reviewer.yaml"]).await.exited(0);
    let ended = remit.run(&["run", "go", "--subagents", "writer", "--json"]).await.exited(0).json();
    let ledger = ended["ledger"].as_array().unwrap();
    assert!(!ledger.is_empty() && ledger.iter().all(|one| one["status"] == "refused"), "{ended}");
    let ended = remit.run(&["run", "go", "--subagents", "", "--json"]).await.exited(0).json();
    assert_eq!(ended["ledger"], json!([]), "{ended}");
    remit.run(&["run", "go", "--subagents", "a b"]).await.exited(2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_are_kept_by_a_server_over_a_kill() {
    let remit = remit();
    let served = remit.serve(&[]).await;
    let address = served.url.clone();
    check(&remit, &["--server", &address]).await;
    remit
        .run(&["agents", "create", "writer", "--file", "reviewer.yaml", "--server", &address])
        .await
        .exited(0);
    served.crash().await;
    let listed = remit.run(&["agents", "list", "--json"]).await.exited(0).json();
    assert_eq!(listed["types"].as_array().unwrap().last().unwrap()["name"], "writer");
    assert_eq!(listed["types"].as_array().unwrap().last().unwrap()["source"], "managed");
    // An operator is told of what is hidden at every start, also by what was configured later.
    let again = remit.run(&["agents", "show", "bash"]).await.exited(0);
    assert!(again.stdout.contains("hidden by a built-in type"), "{}", again.stdout);
    let own = "{writer: {description: d, system_prompt: p}}";
    remit.write("remit.yaml", &format!("subagents: {{custom_agents: {own}}}\n"));
    let served = remit.serve(&[]).await;
    for (name, source) in [("bash", "built-in"), ("writer", "configured")] {
        let words = format!("leads do not see the managed definition {name}: a {source} type has its name");
        assert!(served.said.iter().any(|line| line.contains(&words)), "{:?}", served.said);
    }
    served.crash().await;
}
