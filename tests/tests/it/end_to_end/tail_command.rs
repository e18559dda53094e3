//! `remit tail`: following a server over its restart, printing a folder, and ending cleanly.

use std::process::Stdio;

use serde_json::{Value, json};
use tests::{
    process::Remit,
    record::{number, text},
    wait,
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use super::remit;

/// A tail that is read line by line.
struct Tail {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Tail {
    fn start(remit: &Remit, words: &[&str]) -> Self {
        let words = [&["tail", "--json"], words].concat();
        let mut child = remit.command(&words).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    async fn next(&mut self) -> Value {
        let line = wait::within(wait::PATIENCE, "an event", self.lines.next_line()).await.unwrap();
        serde_json::from_str(&line.expect("the tail goes on")).unwrap()
    }

    /// Reads until a run has ended.
    async fn until_end(&mut self) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            let event = self.next().await;
            let is_end = event["event_type"] == "run.status" && event["content"]["status"] == "success";
            seen.push(event);
            if is_end {
                return seen;
            }
        }
    }

    async fn interrupt(mut self) -> Option<i32> {
        let pid = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().await.unwrap().success());
        wait::within(wait::PATIENCE, "the end of the tail", self.child.wait()).await.unwrap().code()
    }
}

fn positions(events: &[Value]) -> Vec<u64> {
    events.iter().map(|event| number(event, "position")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tail_goes_on_over_a_restart_without_gaps_or_repeats() {
    let remit = remit();
    let served = remit.serve(&[]).await;
    let url = served.url.clone();
    let address = url.strip_prefix("http://").unwrap();
    let there = ["--server", url.as_str()];
    let run = async |prompt: &str| remit.run(&["run", prompt, "--server", &url]).await.exited(0);
    run("Before").await;
    let mut all = Tail::start(&remit, &[&["--after-position", "0"], &there[..]].concat());
    let mut starts =
        Tail::start(&remit, &[&["--after-position", "0", "--event-types", "run.start"], &there[..]].concat());
    let mut seen = all.until_end().await;
    assert_eq!(starts.next().await["event_type"], "run.start");

    // The server goes down without a word and comes back at the same address.
    served.crash().await;
    let served = remit.serve_on(address, &[]).await;
    run("After").await;
    seen.extend(all.until_end().await);
    assert_eq!(starts.next().await["event_type"], "run.start");
    let expected: Vec<u64> = (1..=seen.len() as u64).collect();
    assert_eq!(positions(&seen), expected);

    // From now on, one thread alone.
    let thread = text(&seen[0], "thread_id").to_owned();
    let mut one = Tail::start(&remit, &[&["--thread", &thread[..12]], &there[..]].concat());
    let follows = async {
        loop {
            run("Once more").await;
            let words = ["run", "And again", "--thread", &thread, "--server", &url];
            remit.run(&words).await.exited(0);
        }
    };
    let event = tokio::select! {
        event = one.next() => event,
        () = follows => unreachable!("it never ends"),
    };
    assert_eq!(text(&event, "thread_id"), thread);
    assert!(number(&event, "position") > seen.len() as u64);
    for tail in [all, starts, one] {
        assert_eq!(tail.interrupt().await, Some(0));
    }
    served.crash().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_nobody_holds_is_printed() {
    let remit = remit();
    remit.run(&["run", "Look"]).await.exited(0);
    let printed = remit.run(&["tail", "--json"]).await.exited(0);
    let events: Vec<Value> = printed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let whole = remit.run(&["events", "--json"]).await.exited(0).json();
    assert_eq!(json!(events), whole);
    assert!(printed.stderr.contains("this is all"), "{}", printed.stderr);
    let some = remit.run(&["tail", "--event-types", "run.start,run.end"]).await.exited(0);
    let first: Vec<&str> = some.stdout.lines().collect();
    assert_eq!(first.len(), 3, "titles and two events: {}", some.stdout);
    assert!(first[0].contains("POSITION") && first[0].contains("EVENT"), "{}", some.stdout);
    let served = remit.serve(&[]).await;
    let held = remit.run(&["tail"]).await.exited(4);
    assert!(held.stderr.contains("--server"), "{}", held.stderr);
    served.crash().await;
}

// A reader that has what it wanted, such as `head`, is no failure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_pipe_ends_a_tail() {
    let remit = remit();
    let served = remit.serve(&[]).await;
    let mut tail = Tail::start(&remit, &["--after-position", "0", "--server", &served.url]);
    remit.run(&["run", "Look", "--server", &served.url]).await.exited(0);
    tail.next().await;
    let Tail { mut child, lines } = tail;
    drop(lines);
    remit.run(&["run", "Look", "--server", &served.url]).await.exited(0);
    let code = wait::within(wait::PATIENCE, "the end of the tail", child.wait()).await.unwrap().code();
    assert_eq!(code, Some(0));
    served.crash().await;
}
