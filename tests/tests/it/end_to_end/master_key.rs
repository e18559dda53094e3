//! The master key from a file and from the environment: every command uses it, and without the right
//! one nothing is done.

use std::{collections::BTreeMap, fs};

use serde_json::Value;
use tests::{
    folders::contents,
    process::{Ended, Remit},
};

use super::remit;

const KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const OTHER: &str = "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";
const FROM_FILE: &str = "log: { master_key: { file: elsewhere/master } }\n";

/// Every command that opens the log.
const COMMANDS: [&[&str]; 11] = [
    &["threads"],
    &["runs"],
    &["events"],
    &["ledger"],
    &["run", "Once more"],
    &["demo"],
    &["verify"],
    &["doctor"],
    &["keys", "list"],
    &["backup", "--out", "backup"],
    &["serve", "--listen", "127.0.0.1:0"],
];

fn write_key(remit: &Remit, key: &str) {
    fs::create_dir_all(remit.folder().join("elsewhere")).unwrap();
    remit.write("elsewhere/master", key);
}

/// A folder with a run in it, whose keys are wrapped with a key from a file.
async fn filled() -> Remit {
    let remit = remit();
    write_key(&remit, KEY);
    remit.write("remit.yaml", FROM_FILE);
    remit.run(&["run", "Look at the files here"]).await.exited(0);
    assert!(!remit.data().join("keys/master.key").exists());
    remit
}

/// All that is in the data folder, but for the name of who locked it last.
fn stored(remit: &Remit) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found = contents(&remit.data());
    found.remove("remit.lock");
    found
}

/// Runs a command with a variable.
async fn run_with(remit: &Remit, words: &[&str], (name, value): (&str, &str)) -> Ended {
    let output = remit.command(words).env(name, value).output().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_command_does_anything_with_a_wrong_or_missing_key() {
    let remit = filled().await;
    // The first reading makes the views and cuts the unused end off the journal.
    remit.run(&["ledger"]).await.exited(0);
    let before = stored(&remit);
    write_key(&remit, OTHER);
    for words in COMMANDS {
        let refused = remit.run(words).await.exited(1);
        let said = refused.stdout + &refused.stderr;
        for expected in ["elsewhere/master", "keys/threads", "log.master_key"] {
            assert!(said.contains(expected), "{words:?} does not say {expected:?}: {said}");
        }
        assert!(stored(&remit) == before, "{words:?} changed the data folder");
    }
    fs::remove_file(remit.folder().join("elsewhere/master")).unwrap();
    for words in COMMANDS {
        let refused = remit.run(words).await.exited(1);
        let said = refused.stdout + &refused.stderr;
        assert!(said.contains("there is no master key in elsewhere/master"), "{words:?}: {said}");
        assert!(stored(&remit) == before, "{words:?} changed the data folder");
    }
    // A new folder is not even begun.
    remit.run(&["run", "Look", "--data", "new"]).await.exited(1);
    assert!(!remit.folder().join("new").exists());

    write_key(&remit, KEY);
    for words in COMMANDS.iter().filter(|words| words[0] != "serve") {
        remit.run(words).await.exited(0);
    }
    let served = remit.serve(&[]).await;
    assert_eq!(served.stop("-TERM").await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_environment_holds_the_key_or_says_where_it_is() {
    let remit = filled().await;
    remit.write("remit.yaml", "log: { master_key: $MY_KEY }\n");
    run_with(&remit, &["ledger"], ("MY_KEY", KEY)).await.exited(0);
    let unset = remit.run(&["ledger"]).await.exited(2);
    assert!(unset.stderr.contains("MY_KEY, which is not set"), "{}", unset.stderr);
    let wrong = run_with(&remit, &["ledger"], ("MY_KEY", OTHER)).await.exited(1);
    assert!(wrong.stderr.contains("from the environment variable MY_KEY is not"), "{}", wrong.stderr);
    assert!(!wrong.stderr.contains(OTHER), "{}", wrong.stderr);
    fs::remove_file(remit.folder().join("remit.yaml")).unwrap();
    for (name, value) in [
        ("REMIT__LOG__MASTER_KEY__FILE", "elsewhere/master"),
        ("REMIT__LOG__MASTER_KEY", "file:elsewhere/master"),
    ] {
        run_with(&remit, &["ledger"], (name, value)).await.exited(0);
    }
    // A key that was not kept apart is not taken, and not shown.
    let inline = run_with(&remit, &["ledger"], ("REMIT__LOG__MASTER_KEY", KEY)).await.exited(2);
    assert!(inline.stderr.contains("log.master_key") && !inline.stderr.contains(KEY), "{}", inline.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_without_its_key_needs_it_to_be_restored() {
    let remit = filled().await;
    let ledger = remit.run(&["runs", "--json"]).await.exited(0).json();
    let backup = remit.run(&["backup", "--out", "backup", "--json"]).await.exited(0).json();
    assert_eq!(backup["master_key"], "elsewhere");
    assert!(!remit.folder().join("backup/keys/master.key").exists());
    let told = remit.run(&["backup", "--out", "again"]).await.exited(0);
    assert!(told.stdout.contains("not in the backup: restoring needs"), "{}", told.stdout);
    remit.run(&["restore", "backup", "--data", "restored"]).await.exited(0);
    assert_eq!(remit.run(&["runs", "--json", "--data", "restored"]).await.exited(0).json(), ledger);
    fs::remove_file(remit.folder().join("remit.yaml")).unwrap();
    let lost = remit.run(&["restore", "backup", "--data", "lost"]).await.exited(1);
    assert!(lost.stderr.contains("log.master_key"), "{}", lost.stderr);
    assert!(!remit.folder().join("lost").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_master_key_is_changed_and_keys_are_listed_without_being_shown() {
    let remit = remit();
    remit.run(&["run", "Look at the files here"]).await.exited(0);
    let threads = remit.run(&["threads", "--json"]).await.exited(0).json();
    let thread = threads[0]["thread_id"].as_str().unwrap().to_owned();
    let generated = fs::read_to_string(remit.data().join("keys/master.key")).unwrap();
    write_key(&remit, KEY);

    // From the generated key to one in a file. Until the configuration names it, nothing opens.
    remit.run(&["keys", "rewrap"]).await.exited(2);
    remit.run(&["keys", "rewrap", "--to", "file:elsewhere/none"]).await.exited(1);
    remit.run(&["keys", "rewrap", "--to", KEY]).await.exited(2);
    let to_file = ["keys", "rewrap", "--to", "file:elsewhere/master"];
    let told = remit.run(&to_file).await.exited(0);
    assert!(told.stderr.contains("set log.master_key to file:elsewhere/master"), "{}", told.stderr);
    assert!(!remit.data().join("keys/master.key").exists());
    remit.run(&["runs"]).await.exited(1);
    let again = remit.run(&[&to_file[..], &["--json"]].concat()).await.exited(0).json();
    assert_eq!(again["changed"], false);
    remit.write("remit.yaml", FROM_FILE);
    assert_eq!(remit.run(&["threads", "--json"]).await.exited(0).json(), threads);

    // From there to one in the environment.
    let to_variable = ["keys", "rewrap", "--to", "$NEW_KEY", "--json"];
    let done = run_with(&remit, &to_variable, ("NEW_KEY", OTHER)).await.exited(0).json();
    assert_eq!((&done["changed"], &done["live"], &done["damaged"]), (&true.into(), &2.into(), &0.into()));
    remit.run(&["threads"]).await.exited(1);
    remit.write("remit.yaml", "log: { master_key: $NEW_KEY }\n");
    let new = ("NEW_KEY", OTHER);
    assert_eq!(run_with(&remit, &["threads", "--json"], new).await.exited(0).json(), threads);
    run_with(&remit, &["verify"], new).await.exited(0);

    let list = ["keys", "list", "--thread", &thread, "--json"];
    let states = |listed: &Value| -> Vec<_> {
        listed.as_array().unwrap().iter().map(|row| row["state"].clone()).collect()
    };
    let listed = run_with(&remit, &list, new).await.exited(0);
    for key in [KEY, OTHER, generated.trim()] {
        assert!(!listed.stdout.contains(key), "{}", listed.stdout);
    }
    assert_eq!(states(&listed.json()), ["live", "live"]);
    let none = run_with(&remit, &["keys", "list", "--thread", "other", "--json"], new).await.exited(0);
    assert_eq!(none.json(), serde_json::json!([]));
    run_with(&remit, &["erase", &thread, "--yes"], new).await.exited(0);
    assert_eq!(states(&run_with(&remit, &list, new).await.exited(0).json()), ["destroyed", "destroyed"]);
    let table = run_with(&remit, &["keys", "list"], new).await.exited(0);
    assert!(table.stdout.contains("destroyed"), "{}", table.stdout);
}
