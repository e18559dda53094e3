//! `remit demo` on all sorts of folders: it ends, leaves the folder alone, and what the commands
//! show afterwards agrees with what it said.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use serde_json::Value;
use tests::{
    folders::{contents, write_bytes, write_files},
    invariants::assert_whole,
    plain_fold::{assert_card, assert_ledger},
    process::Remit,
    record::{number, text, types},
};

use super::remit;

/// Runs the demo on a folder, and looks at everything that it left.
async fn check(fill: impl FnOnce(&Path)) -> Value {
    let remit = remit();
    let folder = remit.folder().join("files of ä person");
    fs::create_dir(&folder).unwrap();
    fill(&folder);
    let before = contents(&folder);
    let demo = remit.run(&[Path::new("demo"), &folder, Path::new("--json")]).await.exited(0).json();
    assert_eq!(contents(&folder), before, "the demo changed the folder");
    assert_eq!(text(&demo, "status"), "success", "{demo}");
    assert_agree(&remit, &demo).await;
    demo
}

async fn assert_agree(remit: &Remit, demo: &Value) {
    let run_id = text(demo, "run_id");
    let events = remit.run(&["events", "--json", "--thread", text(demo, "thread_id")]).await.exited(0).json();
    let events = events.as_array().unwrap();
    assert_whole(events);
    assert_eq!(events.len() as u64, number(demo, "events"));
    let earlier =
        ["events", "--json", "--thread", text(demo, "thread_id"), "--after-seq", "2", "--as-of", "7"];
    let earlier = remit.run(&earlier).await.exited(0).json();
    assert_eq!(earlier.as_array().map(Vec::as_slice), events.get(2..7), "seqs 3 to 7");
    let ledger = remit.run(&["ledger", "--json"]).await.exited(0).json();
    assert_eq!(ledger, demo["ledger"]);
    assert_ledger(ledger.as_array().unwrap(), events);
    let shown: Vec<_> = ledger.as_array().unwrap().iter().map(|row| text(row, "subagent_type")).collect();
    assert_eq!(shown, ["general-purpose", "general-purpose", "bash"]);
    assert_eq!(text(&ledger[1], "stop_reason"), "turn_capped", "{ledger}");
    for row in ledger.as_array().unwrap() {
        assert_eq!(text(row, "status"), "completed", "{row}");
        let card =
            remit.run(&["card", "--json", "--run", run_id, text(row, "delegation_id")]).await.exited(0);
        assert_card(&card.json(), events);
    }
    let reports = demo["reports"].as_array().unwrap();
    assert_eq!(reports.len(), 1, "{demo}");
    let report = remit.folder().join(reports[0].as_str().unwrap());
    assert!(fs::read_to_string(report).unwrap().starts_with("# Workspace report"));
    assert!(types(events).contains(&"tool.started"), "the shell command ran");
}

#[tokio::test]
async fn an_empty_folder() {
    check(|_| {}).await;
}

#[tokio::test]
async fn one_file() {
    check(|folder| write_files(folder, &[("only.txt", "one line\n")])).await;
}

#[tokio::test]
async fn three_thousand_files() {
    check(|folder| {
        for number in 0..3_000 {
            write_bytes(
                folder,
                &format!("part {}/file-{number}.txt", number % 30),
                format!("{number}\n").as_bytes(),
            );
        }
        for number in 0..500 {
            write_bytes(folder, &format!("top-{number}.md"), b"# top\n");
        }
    })
    .await;
}

#[tokio::test]
async fn binary_files() {
    check(|folder| {
        let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
        write_bytes(folder, "picture.png", &bytes);
        write_bytes(folder, "zeros.txt", &[0; 10_000]);
        write_bytes(folder, "latin1.md", b"caf\xE9 \xFF\xFE\n");
        write_bytes(folder, "one-long-line.txt", "x".repeat(2_000_000).as_bytes());
    })
    .await;
}

#[tokio::test]
async fn names_with_spaces_and_other_letters() {
    let demo = check(|folder| {
        write_files(
            folder,
            &[
                ("ein Brief an Jürgen.txt", "größer\n"),
                ("日本語.md", "# 見出し\n"),
                ("😀 'quoted' \"twice\".txt", "smile\n"),
                ("-rf.txt", "not an option\n"),
                ("$(touch pwned).txt", "no command\n"),
                ("a\nb.txt", "a line break in the name\n"),
                ("{{ 7 * 7 }}.md", "no template\n"),
            ],
        );
    })
    .await;
    assert!(!demo.to_string().contains("pwned\"}"), "{demo}");
}

#[tokio::test]
async fn a_folder_that_may_not_be_read() {
    check(|folder| {
        write_files(folder, &[("open.txt", "open\n"), ("closed/secret.txt", "secret\n")]);
        fs::set_permissions(folder.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(folder.join("open.txt"), fs::Permissions::from_mode(0o444)).unwrap();
    })
    .await;
}

#[tokio::test]
async fn deep_folders_and_links() {
    check(|folder| {
        let deep = vec!["deep"; 60].join("/");
        write_bytes(folder, &format!("{deep}/bottom.txt"), b"bottom\n");
        std::os::unix::fs::symlink("/etc", folder.join("outside")).unwrap();
        std::os::unix::fs::symlink("..", folder.join("up")).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.join("dangling")).unwrap();
    })
    .await;
}

// A person gets the ledger, the number of events and the next commands; a pipe gets no colours.
#[tokio::test]
async fn the_words_for_people() {
    let remit = remit();
    write_files(remit.folder(), &[("files/notes.md", "# Notes\n")]);
    let demo = remit.run(&["demo", "files"]).await.exited(0);
    for expected in ["TASK", "Read in depth", "events recorded", "ledger", "card", "report.md"] {
        assert!(demo.stdout.contains(expected), "no {expected:?} in\n{}", demo.stdout);
    }
    assert!(!demo.stdout.contains('\u{1b}') && !demo.stderr.contains('\u{1b}'), "colours in a pipe");
    assert!(demo.stderr.contains("general-purpose"), "no progress in\n{}", demo.stderr);
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_named() {
    let remit = remit();
    let demo = remit.run(&["demo", "no such folder"]).await.exited(3);
    assert!(demo.stderr.contains("no such folder"), "{}", demo.stderr);
    assert!(!remit.data().exists(), "nothing was made");
    remit.write("file.txt", "a file");
    remit.run(&["demo", "file.txt"]).await.exited(2);
}
