//! Limits that hold (field reports, group A).

use domain::{
    event::{CapAxis, EndStatus, Event, RunEvent, RunStatus, RunStopReason, SubagentEvent},
    message::AssistantMessage,
    status_contract::StopReason,
};
use serde_json::json;

use crate::testing::{Script, Setup, Turn, World, calling, delegating, saying, task};

/// A script whose tasks all answer at once.
fn answering(script: Script, tasks: &[&str]) -> Script {
    tasks.iter().fold(script, |script, task| script.sub(task, [saying(&format!("did {task}"))]))
}

const TASKS: [&str; 9] =
    ["task-a", "task-b", "task-c", "task-d", "task-e", "task-f", "task-g", "task-h", "task-i"];

fn three(at: usize) -> AssistantMessage {
    let ids = ["1", "2", "3"];
    let tasks: Vec<_> = ids.iter().zip(&TASKS[at * 3..]).map(|(id, task)| (*id, *task)).collect();
    delegating(&tasks)
}

// Field report 2: three tasks a turn, for five turns, under a cap of six.
#[tokio::test]
async fn the_cap_of_a_run_holds_over_its_turns() {
    let turns = [three(0), three(1), three(2), three(2), three(2)];
    let world = Setup::new(answering(Script::new().lead("go", turns), &TASKS)).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    assert_eq!((world.count("subagent.start"), world.count("delegation.refused")), (6, 3));
    assert_eq!((world.count("run.cap"), world.script.calls_for("go")), (1, 3));
    let statuses: Vec<_> = world.ledger().iter().map(|entry| entry.status.as_str()).collect();
    assert_eq!(statuses, [["completed"; 6].as_slice(), ["refused"; 3].as_slice()].concat());
    let status = world.last_status();
    assert_eq!(status.stop_reason, Some(RunStopReason::SubagentLimitCapped));
    let last_words = world.facts().into_iter().find_map(|fact| match fact.event {
        Event::Run(RunEvent::Ended(ended)) => Some(ended.result),
        _ => None,
    });
    assert!(last_words.unwrap().contains("subagent delegation limit"));
    world.check_ended_once();
}

// Facts §12 lines 22 and 23: what is over the limit per response is dropped from the end, noted,
// and the model is told.
#[tokio::test]
async fn what_is_over_the_limit_per_response_is_refused_and_told() {
    let five = [("1", "task-a"), ("2", "task-b"), ("3", "task-c"), ("4", "task-d"), ("5", "task-e")];
    let script = Script::new().lead("go", [delegating(&five), saying("done")]);
    let world = Setup::new(answering(script, &TASKS)).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    assert_eq!(
        (world.count("subagent.start"), world.count("delegation.refused"), world.count("run.cap")),
        (3, 2, 0)
    );
    let requests = world.script.requests();
    let told = requests.last().unwrap().messages[0].content().to_owned();
    assert!(told.contains("2 `task` calls of your last reply were not carried out"), "{told}");
    assert_eq!(world.last_status().stop_reason, None);
}

// A model gone mad: more dropped calls than one append holds.
#[tokio::test]
async fn thousands_of_calls_in_one_reply_are_all_accounted_for() {
    let calls: Vec<_> = (0..1_200).map(|_| ("", "task", task("task-a"))).collect();
    let script = Script::new().lead("go", [calling(&calls), saying("done")]);
    let world = Setup::new(answering(script, &TASKS)).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    assert_eq!((world.count("subagent.start"), world.count("delegation.refused")), (3, 1_197));
    let requests = world.script.requests();
    assert!(requests.last().unwrap().messages[0].content().len() < 20_000);
}

// Field report 5: finished subagents hold no slot, without anybody closing them.
#[tokio::test]
async fn finished_subagents_make_room() {
    let turns = [
        delegating(&[("1", "task-a"), ("2", "task-b"), ("3", "task-c")]),
        delegating(&[("4", "task-d")]),
        saying("done"),
    ];
    let world = Setup::new(answering(Script::new().lead("go", turns), &TASKS)).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    assert_eq!((world.count("subagent.end"), world.count("delegation.queued")), (4, 0));
    world.until_idle().await;
}

// Field report 7: a subagent that delegates gets an error that names the depth, each time.
#[tokio::test]
async fn a_subagent_cannot_delegate() {
    let tries: Vec<_> = (0..5).map(|_| ("x", "task", task("task-a"))).collect();
    let script = Script::new()
        .lead("go", [delegating(&[("1", "mad one"), ("2", "mad two")]), saying("done")])
        .sub("mad one", [calling(&tries), saying("alone then")])
        .sub("mad two", [calling(&tries), saying("alone then")]);
    let world = Setup::new(script).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    assert_eq!((world.count("delegation.requested"), world.count("delegation.refused")), (2, 10));
    assert_eq!((world.count("subagent.start"), world.script.calls()), (2, 6));
    let told = world
        .script
        .requests()
        .iter()
        .flat_map(|request| request.messages.clone())
        .filter(|message| message.content().contains("delegation goes 1 level deep"))
        .count();
    assert_eq!(told, 10);
    assert!(world.ends().iter().all(|end| end.status == EndStatus::Completed && end.receipts == 5));
    world.runtime.shutdown().await;
    assert_eq!(world.script.calls(), 6);
}

fn turns_used(world: &World) -> Vec<(CapAxis, u64, u64)> {
    let cap = |fact: domain::event::Logged| match fact.event {
        Event::Subagent(SubagentEvent::Capped(capped)) => {
            Some((capped.cap.axis, capped.cap.used, capped.cap.budget))
        }
        _ => None,
    };
    world.facts().into_iter().filter_map(cap).collect()
}

// Field report 26, and facts §12 lines 36, 37 and 69: the cap is in the event, the end and the
// lead's result.
#[tokio::test]
async fn a_turn_cap_is_seen_everywhere() {
    let look = |text: &str, path: &str| AssistantMessage {
        content: text.into(),
        ..calling(&[("x", "ls", json!({"path": path}))])
    };
    let script = Script::new()
        .lead("go", [delegating(&[("1", "busy"), ("2", "mute")]), saying("done")])
        .sub("busy", [look("a", "."), look("b", "./"), look(" so far ", "././")])
        .sub("mute", [look("", "."), look("", "./"), look("", "././")]);
    let world = Setup::new(script).config(|config| config.subagents.max_turns = Some(3)).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    assert_eq!(turns_used(&world), [(CapAxis::Turns, 3, 3), (CapAxis::Turns, 3, 3)]);
    let mut ends = world.ends();
    ends.sort_by_key(|end| end.task_id.clone());
    assert!(ends.iter().all(|end| end.stop_reason == Some(StopReason::TurnCapped) && end.turns == 3));
    assert_eq!((ends[0].status, ends[0].result.as_deref()), (EndStatus::Completed, Some("so far")));
    assert_eq!((ends[1].status, ends[1].error.as_deref()), (EndStatus::Failed, Some("Reached max_turns=3")));
    let results = world.results();
    assert!(results[0].content.starts_with("Task Succeeded (capped: turn budget). Result: so far"));
    assert_eq!(results[0].additional_kwargs["subagent_stop_reason"], "turn_capped");
    assert!(world.ledger().iter().all(|entry| entry.stop_reason == Some(StopReason::TurnCapped)));
    world.check_ended_once();
}

// Field report 4: what the prompt says is what is enforced.
#[tokio::test]
async fn peak_concurrency_is_the_number_that_was_resolved() {
    let held = |script: Script, task: &'static str| script.sub(task, [Turn::Held("all", saying("ok"))]);
    let six: Vec<_> = ["1", "2", "3", "4", "5", "6"].into_iter().zip(TASKS).collect();
    let script = Script::new().lead("go", [delegating(&six), saying("done")]);
    let script = TASKS.into_iter().fold(script, held);
    let world = Setup::new(script).config(|config| config.subagent_runtime.max_running = 2).build().await;
    let run = world.start("go").await;
    world.until("two at work", |world| world.script.at_work().0 == 2).await;
    world.script.open("all");
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    assert_eq!((world.script.at_work().1, world.count("subagent.start")), (2, 2));
    let settings = world.facts().into_iter().find_map(|fact| match fact.event {
        Event::Run(RunEvent::Started(settings)) => Some(settings),
        _ => None,
    });
    assert_eq!(settings.unwrap().max_concurrent_subagents, 2);
}
