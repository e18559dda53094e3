//! Outputs of tools that are too large for an event: kept whole beside the log, named by the events,
//! and bounded for the model.

use domain::{
    digest::sha256_hex,
    event::{Event, SubagentEvent},
    kept_output::{KEPT_OUTPUTS_FOLDER, KeptOutput},
    limits::{KEPT_OUTPUT_BYTES_MIN, TOOL_OUTPUT_CHARS_MAX},
    message::{Message, ToolMessage},
};
use eventlog::VerifyRequest;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::testing::{Script, Setup, Turn, World, calling, delegating, saying, task};

/// A world whose log is in a folder, and shell lines run in some way.
async fn world(script: Script) -> (World, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let log = EventLog::open(folder.path(), Options::default()).unwrap();
    let setup = Setup::new(script).log(log).config(|config| config.sandbox.allow_host_bash = true);
    (setup.build().await, folder)
}

fn bash(command: &str) -> domain::message::AssistantMessage {
    calling(&[("b1", "bash", json!({"command": command}))])
}

fn blob(world: &World, kept: &KeptOutput) -> Vec<u8> {
    let mut reader = world.log.open_blob(&world.thread, &kept.sha256.parse().unwrap()).unwrap();
    assert_eq!(reader.blob().bytes, kept.bytes);
    let mut bytes = Vec::new();
    while let Some(piece) = reader.next_piece().unwrap() {
        bytes.extend(piece);
    }
    bytes
}

/// What the tools of the only subagent returned.
fn subagent_results(world: &World) -> Vec<ToolMessage> {
    let result = |fact: domain::event::Logged| match fact.event {
        Event::Subagent(SubagentEvent::Message(recorded)) => match recorded.message {
            Message::Tool(message) => Some(message),
            _ => None,
        },
        _ => None,
    };
    world.facts().into_iter().filter_map(result).collect()
}

#[track_caller]
fn check_blobs(world: &World, count: u64) {
    let report = world.log.verify(VerifyRequest::default()).unwrap();
    assert_eq!((report.damage, report.blobs), (None, count));
    assert_eq!(world.log.blob_stats().staged, 0, "every blob is named");
}

// Field report 94: 50 MB of output have one clear outcome: kept whole, and named by one result.
#[tokio::test]
async fn fifty_megabytes_of_output_are_kept_whole_and_the_run_goes_on() {
    let length = 50 * 1024 * 1024;
    let line = "0123456789abcdef".repeat(4) + "\n";
    let command = format!("yes {} | head -c {length}; echo END", line.trim_end());
    let (world, _folder) = world(Script::new().lead("go", [bash(&command), saying("done")])).await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    let results = world.results();
    let [result] = &results[..] else { panic!("{results:?}") };
    let kept = result.kept_output().unwrap();
    assert_eq!((kept.bytes, kept.truncated), (length + 4, false));
    let whole = blob(&world, &kept);
    assert_eq!((whole.len() as u64, sha256_hex(&whole)), (kept.bytes, kept.sha256.clone()));
    assert!(whole.starts_with(line.as_bytes()) && whole.ends_with(b"END\n"));
    assert!(result.content.chars().count() <= TOOL_OUTPUT_CHARS_MAX);
    let mark = format!("all {} bytes are kept as {}, which read_file reads", kept.bytes, kept.path());
    assert!(result.content.contains(&mark) && result.content.ends_with("END\n"), "{:.9000}", result.content);
    // The model read the bounded text, once.
    assert_eq!((world.script.calls(), world.count("llm.tool.result")), (2, 1));
    check_blobs(&world, 1);
}

#[tokio::test]
async fn a_subagent_s_receipt_names_the_blob_of_its_output() {
    let command = "seq 1 20000";
    let script = Script::new()
        .lead("go", [delegating(&[("c1", "one")]), saying("done")])
        .sub("one", [bash(command), saying("it works")]);
    let (world, _folder) = world(script).await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    let expected: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    let results = subagent_results(&world);
    let kept = results[0].kept_output().unwrap();
    assert_eq!(String::from_utf8(blob(&world, &kept)).unwrap(), expected);
    let receipt = world.facts().into_iter().find_map(|fact| match fact.event {
        Event::Subagent(SubagentEvent::Receipt(receipt)) => Some(receipt),
        _ => None,
    });
    let receipt = receipt.unwrap();
    assert_eq!((receipt.output_sha256, receipt.output_bytes), (kept.sha256, kept.bytes));
    check_blobs(&world, 1);
}

// Chain facts §2.3: what was left out can be read by the path that the mark names, by whoever works on
// the thread, and by nobody else.
#[tokio::test]
async fn what_was_left_out_of_an_output_can_be_read_back() {
    let numbers: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    let path = format!("{KEPT_OUTPUTS_FOLDER}/{}", sha256_hex(numbers.as_bytes()));
    let part = json!({"path": path, "start_line": 9_000, "end_line": 9_002});
    let script = Script::new()
        .lead(
            "go",
            [
                bash("seq 1 20000"),
                calling(&[("r1", "read_file", part.clone())]),
                calling(&[(
                    "r2",
                    "read_file",
                    json!({"path": format!("{KEPT_OUTPUTS_FOLDER}/{}", "0".repeat(64))}),
                )]),
                saying("done"),
            ],
        )
        .lead("elsewhere", [calling(&[("r3", "read_file", part)]), saying("done")]);
    let (mut world, _folder) = world(script).await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    let results = world.results();
    assert!(
        results[0].content.contains(&path) && !results[0].content.contains("\n9001\n"),
        "{:.9000}",
        results[0].content
    );
    assert_eq!(results[1].content, "9000\n9001\n9002\n");
    assert!(results[2].content.starts_with("Error: "), "{}", results[2].content);
    let mine = world.thread.clone();
    world.thread = world.runtime.create_thread(crate::request::NewThread::default()).await.unwrap();
    assert_eq!(world.run("elsewhere").await, RunStatus::Success);
    let of_others: Vec<_> =
        world.results().into_iter().filter(|result| result.tool_call_id == "r3").collect();
    assert!(of_others[0].content.contains("there is no blob"), "{}", of_others[0].content);
    // With the thread they go.
    world.runtime.erase_thread(&mine).await.unwrap();
    assert!(world.log.open_blob(&mine, &sha256_hex(numbers.as_bytes()).parse().unwrap()).is_err());
}

#[tokio::test]
async fn outputs_are_kept_from_a_size_on() {
    let min = usize::try_from(KEPT_OUTPUT_BYTES_MIN).unwrap();
    for (length, is_kept) in [(min - 1, false), (min, true), (TOOL_OUTPUT_CHARS_MAX, true)] {
        let command = format!("head -c {length} /dev/zero | tr '\\0' x");
        let (world, _folder) = world(Script::new().lead("go", [bash(&command), saying("done")])).await;
        assert_eq!(world.run("go").await, RunStatus::Success);
        let result = &world.results()[0];
        assert_eq!(result.content, "x".repeat(length), "{length}");
        assert_eq!(result.kept_output().is_some(), is_kept, "{length}");
        check_blobs(&world, u64::from(is_kept));
    }
}

// Field report 102: what is masked in an event is masked in a blob.
#[tokio::test]
async fn a_secret_in_a_large_output_is_masked_in_its_blob() {
    let command = "seq 1 9000; echo password=hunter2hunter2; seq 1 9000";
    let (world, folder) = world(Script::new().lead("go", [bash(command), saying("done")])).await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    let kept = world.results()[0].kept_output().unwrap();
    let whole = String::from_utf8(blob(&world, &kept)).unwrap();
    assert!(whole.contains("9000\npassword=[redacted:password:sha256=") && !whole.contains("hunter2"));
    assert_eq!(sha256_hex(whole.as_bytes()), kept.sha256);
    // And with the thread it goes.
    world.runtime.erase_thread(&world.thread).await.unwrap();
    assert!(world.log.open_blob(&world.thread, &kept.sha256.parse().unwrap()).is_err());
    let left: Vec<_> = std::fs::read_dir(folder.path().join("blobs")).unwrap().collect();
    assert_eq!(left.len(), 1, "only the folder of staged ones: {left:?}");
}

#[tokio::test]
async fn files_that_are_read_are_kept_as_well() {
    let (world, _folder) = world(
        Script::new().lead("go", [calling(&[("r1", "read_file", json!({"path": "long"}))]), saying("done")]),
    )
    .await;
    let text: String = (0..9_000).map(|number| format!("line {number} 漢\n")).collect();
    let folders = crate::sandbox::ThreadFolders::create(world.data.path(), &world.thread).unwrap();
    std::fs::write(folders.workspace.join("long"), &text).unwrap();
    assert_eq!(world.run("go").await, RunStatus::Success);
    let kept = world.results()[0].kept_output().unwrap();
    assert_eq!(String::from_utf8(blob(&world, &kept)).unwrap(), text);
    check_blobs(&world, 1);
}

// Field report 93, and chain facts §12 line 82: seven reports of 40 000 characters leave the lead room.
#[tokio::test]
async fn very_long_reports_reach_the_lead_bounded_and_are_kept_whole() {
    let prompts = ["one", "two", "three", "four", "five", "six", "seven"];
    let report = |prompt: &str| format!("{prompt}: {}", "漢".repeat(40_000));
    let mut script = Script::new();
    let mut turns: Vec<_> =
        prompts.iter().map(|prompt| calling(&[(*prompt, "task", task(prompt))])).collect();
    turns.push(saying("done"));
    script = script.lead("go", turns);
    for prompt in prompts {
        script = script.sub(prompt, [saying(&report(prompt))]);
    }
    let folder = tempfile::tempdir().unwrap();
    let log = EventLog::open(folder.path(), Options::default()).unwrap();
    let setup = Setup::new(script).log(log).config(|config| config.subagents.max_total_per_run = 7);
    let world = setup.build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    let results = world.results();
    assert_eq!(results.len(), 7);
    for (result, prompt) in results.iter().zip(prompts) {
        assert!(result.content.chars().count() < 12_000, "{prompt}");
        assert!(result.content.starts_with(&format!("Task Succeeded. Result: {prompt}: 漢")));
        let kept = result.kept_output().unwrap();
        assert!(result.content.contains(&format!("are kept as {}, which read_file reads", kept.path())));
        let whole = String::from_utf8(blob(&world, &kept)).unwrap();
        assert!(whole.contains(&report(prompt)), "{prompt}");
        assert_eq!(result.additional_kwargs["subagent_status"], "completed");
    }
    check_blobs(&world, 7);
}

// Chain facts (f) line 84: the disk refuses in the middle of a run, after it had kept an output. The call
// has its result all the same, bounded, and says that the whole is not to be had.
#[tokio::test]
async fn line_84_an_output_that_the_disk_refuses_is_bounded_and_says_so() {
    let big: Turn = bash("seq 1 20000").into();
    let script =
        Script::new().lead("go", [big, Turn::Held("gate", bash("seq 2 20001")), saying("done").into()]);
    let (world, folder) = world(script).await;
    let run = world.start("go").await;
    world.until_recorded("llm.tool.result", 1).await;
    let blobs = folder.path().join("blobs");
    std::fs::rename(&blobs, folder.path().join("gone")).unwrap();
    std::fs::write(&blobs, "no folder").unwrap();
    world.script.open("gate");
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    let results = world.results();
    let [kept, lost] = &results[..] else { panic!("{results:?}") };
    assert!(kept.kept_output().is_some());
    assert_eq!((lost.kept_output(), lost.status), (None, kept.status));
    assert!(lost.content.chars().count() <= TOOL_OUTPUT_CHARS_MAX);
    assert!(lost.content.contains("the whole could not be kept"), "{:.9000}", lost.content);
    assert!(lost.content.starts_with("2\n3\n") && lost.content.contains("\n20001\n"), "{:.99}", lost.content);
}
