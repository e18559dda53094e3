//! `remit erase`: on a folder and through a server, with the exit codes of the interface.

use std::fs;

use serde_json::{Value, json};
use tests::{process::Remit, record::text};

use super::remit;

/// Runs on a thread of its own, and gives the thread.
async fn thread(remit: &Remit, there: &[&str]) -> String {
    let words = [&["run", "Look at the files here", "--json"], there].concat();
    let done = remit.run(&words).await.exited(0).json();
    text(&done, "thread_id").to_owned()
}

async fn listed(remit: &Remit, there: &[&str]) -> Vec<String> {
    let threads = remit.run(&[&["threads", "--json"], there].concat()).await.exited(0).json();
    threads.as_array().unwrap().iter().map(|thread| text(thread, "thread_id").to_owned()).collect()
}

/// Erases one of two threads with these options before every command, and looks for what is left.
async fn check_erased(remit: &Remit, there: &[&str]) {
    let (gone, stays) = (thread(remit, there).await, thread(remit, there).await);
    assert!(remit.data().join("threads").join(&gone).exists());
    let unasked = remit.run(&[&["erase", &gone], there].concat()).await.exited(4);
    assert!(unasked.stderr.contains("--yes"), "{}", unasked.stderr);
    assert_eq!(listed(remit, there).await.len(), 2, "nothing was erased");

    let erased: Value =
        remit.run(&[&["erase", &gone, "--yes", "--json"], there].concat()).await.exited(0).json();
    assert!(erased["deleted"].as_u64().unwrap() > 5, "{erased}");
    assert_eq!(text(&erased, "erasure_id").len(), 36);
    assert_eq!(listed(remit, there).await, std::slice::from_ref(&stays));
    assert!(!remit.data().join("threads").join(&gone).exists());
    for missing in [gone.as_str(), "nobody"] {
        let refused = remit.run(&[&["erase", missing, "--yes"], there].concat()).await.exited(3);
        assert!(refused.stderr.contains(missing), "{}", refused.stderr);
        assert!(refused.stdout.is_empty());
    }
    let told = remit.run(&[&["erase", &stays, "--yes"], there].concat()).await.exited(0);
    assert!(told.stdout.starts_with(&format!("erased thread {stays}: ")), "{}", told.stdout);
    let runs = remit.run(&[&["runs", "--json"], there].concat()).await.exited(0).json();
    assert_eq!(runs, json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_is_erased_in_a_folder() {
    let remit = remit();
    thread(&remit, &[]).await;
    let lock = fs::read_to_string(remit.data().join("remit.lock")).unwrap();
    assert!(lock.contains("run") && !lock.contains("Look at"), "a prompt is in the lock: {lock}");
    let named = listed(&remit, &[]).await;
    remit.run(&["erase", &named[0][..12], "--yes"]).await.exited(0);
    check_erased(&remit, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_is_erased_through_a_server() {
    let remit = remit();
    let served = remit.serve(&[]).await;
    check_erased(&remit, &["--server", &served.url]).await;
    assert_eq!(served.stop("-TERM").await, Some(0));
}

/// Two runs on one thread: the thread, and the runs, the first one first.
async fn two_runs(remit: &Remit, there: &[&str]) -> (String, [String; 2]) {
    let thread_id = thread(remit, there).await;
    let again = ["run", "And again", "--json", "--thread", &thread_id];
    remit.run(&[&again, there].concat()).await.exited(0);
    let runs =
        remit.run(&[&["runs", "--json", "--thread", &thread_id], there].concat()).await.exited(0).json();
    let mut ids = runs.as_array().unwrap().iter().rev().map(|run| text(run, "run_id").to_owned());
    (thread_id, [ids.next().unwrap(), ids.next().unwrap()])
}

/// Erases one of two runs, then all threads of their owner.
async fn check_run_and_owner(remit: &Remit, there: &[&str]) {
    let (thread_id, [gone, stays]) = two_runs(remit, there).await;
    let ask = async |words: &[&str]| remit.run(&[words, there].concat()).await;
    let unasked = ask(&["erase", "--thread", &thread_id, "--run", &gone]).await.exited(4);
    assert!(unasked.stderr.contains("--yes"), "{}", unasked.stderr);
    let erased =
        ask(&["erase", "--thread", &thread_id, "--run", &gone, "--yes", "--json"]).await.exited(0).json();
    assert!(erased["deleted"].as_u64().unwrap() > 5, "{erased}");
    let runs = ask(&["runs", "--json"]).await.exited(0).json();
    let left: Vec<_> = runs.as_array().unwrap().iter().map(|run| text(run, "run_id")).collect();
    assert_eq!(left, [stays.as_str()]);
    let events = ask(&["events", "--json", "--thread", &thread_id]).await.exited(0).stdout;
    assert!(events.contains(&stays) && !events.contains(&gone));
    assert!(remit.data().join("threads").join(&thread_id).exists(), "files are the thread's");
    for missing in [&gone, "nobody"] {
        let words = ["erase", "--thread", &thread_id, "--run", missing, "--yes"];
        let refused = ask(&words).await.exited(3);
        assert!(refused.stderr.contains(missing), "{}", refused.stderr);
    }
    let told = ask(&["erase", "--run", &stays[..13], "--yes"]).await.exited(0);
    assert!(
        told.stdout.starts_with(&format!("erased run {stays} of thread {thread_id}: ")),
        "{}",
        told.stdout
    );

    thread(remit, there).await;
    ask(&["erase", "--owner", "nobody", "--yes"]).await.exited(3);
    ask(&["erase", "--owner", "default", "--thread", &thread_id, "--yes"]).await.exited(2);
    ask(&["erase", "--yes"]).await.exited(2);
    let erased = ask(&["erase", "--owner", "default", "--yes", "--json"]).await.exited(0).json();
    assert_eq!((&erased["state"], erased["erasures"].as_array().unwrap().len()), (&json!("done"), 2));
    assert_eq!(listed(remit, there).await, Vec::<String>::new());
    let verified = remit.run(&["verify"]).await;
    assert!(there.is_empty() == (verified.code == Some(0)), "{verified:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_and_an_owner_are_erased_in_a_folder() {
    check_run_and_owner(&remit(), &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_and_an_owner_are_erased_through_a_server() {
    let remit = remit();
    let served = remit.serve(&[]).await;
    check_run_and_owner(&remit, &["--server", &served.url]).await;
    assert_eq!(served.stop("-TERM").await, Some(0));
}

#[tokio::test]
async fn nothing_is_made_in_order_to_erase() {
    let remit = remit();
    remit.run(&["erase", "t", "--yes"]).await.exited(3);
    assert!(!remit.data().exists());
}
