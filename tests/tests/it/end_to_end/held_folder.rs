//! A data folder that another process holds: the error says who it is and what to do.

use tests::{record::text, wait};

use super::remit;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_error_names_the_holder_and_the_way_round_it() {
    let remit = remit();
    let served = remit.serve(&[]).await;
    let pid = served.child.id().unwrap().to_string();
    for words in [
        &["ledger"] as &[&str],
        &["events", "--json"],
        &["run", "x"],
        &["demo"],
        &["serve", "--listen", "127.0.0.1:0"],
    ] {
        let refused = remit.run(words).await.exited(4);
        for expected in [pid.as_str(), "serve", "remit-data"] {
            assert!(
                refused.stderr.contains(expected),
                "{words:?} does not say {expected:?}: {}",
                refused.stderr
            );
        }
        assert!(refused.stdout.is_empty(), "{words:?}: {}", refused.stdout);
        assert!(
            refused.stderr.contains(&format!("--server {}", served.url)),
            "{words:?}: {}",
            refused.stderr
        );
    }
    // What the error says to do works.
    let there = ["--server", served.url.as_str(), "--json"];
    let done = remit.run(&[&["run", "Look at the files here"], &there[..]].concat()).await.exited(0).json();
    assert_eq!(text(&done, "status"), "success");
    for command in ["ledger", "events", "runs", "threads"] {
        let shown = remit.run(&[&[command], &there[..]].concat()).await.exited(0).json();
        assert!(!shown.as_array().unwrap().is_empty() || command == "ledger", "{command}");
    }
    // A crash releases the folder.
    served.crash().await;
    let runs = wait::until_answer("the folder is free", || async {
        let shown = remit.run(&["runs", "--json"]).await;
        (shown.code == Some(0)).then(|| shown.json())
    })
    .await;
    assert_eq!(runs[0]["run_id"], done["run_id"]);
}
