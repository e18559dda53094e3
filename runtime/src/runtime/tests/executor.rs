//! What becomes of one subagent (facts §12, "Executor").

use domain::{
    event::{CancelReason, EndStatus, Event, RunStatus},
    ids::{DelegationId, ToolCallId},
    message::AssistantMessage,
    status_contract::NO_RESPONSE,
};
use serde_json::json;

use crate::{
    models::ModelErrorKind,
    request::{CancelError, NewThread, TaskRef},
    testing::{Script, Setup, Turn, World, calling, delegating, saying, world::request},
};

fn one_task() -> Script {
    Script::new().lead("go", [delegating(&[("call_1", "one")]), saying("done")])
}

/// A task of the world's run.
pub(super) fn named(task_id: &str) -> TaskRef {
    TaskRef::TaskId(ToolCallId::new(task_id).unwrap())
}

struct Row {
    script: Script,
    status: EndStatus,
    result: Option<&'static str>,
    error: Option<&'static str>,
}

async fn check(row: Row) {
    let world = Setup::new(row.script).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    let ends = world.ends();
    let [end] = ends.as_slice() else { panic!("{ends:?}") };
    assert_eq!((end.status, end.result.as_deref()), (row.status, row.result));
    match (end.error.as_deref(), row.error) {
        (Some(error), Some(part)) => assert!(error.contains(part), "{error}"),
        (error, part) => assert_eq!(error, part),
    }
    // Facts §12 line 47: whatever the end, nothing is left of it.
    world.check_ended_once();
    world.until_idle().await;
}

#[tokio::test]
async fn an_end_is_judged_by_the_last_reply() {
    let completed =
        |script, result| Row { script, status: EndStatus::Completed, result: Some(result), error: None };
    let failed = |script, error| Row { script, status: EndStatus::Failed, result: None, error: Some(error) };
    // Facts §12 line 28.
    check(completed(one_task().sub("one", [saying("done")]), "done")).await;
    // Facts §12 line 29, differently on purpose: no text is no answer.
    check(failed(one_task().sub("one", [saying("")]), NO_RESPONSE)).await;
    // Facts §12 line 35.
    let fails = one_task().sub("one", [Turn::Fail(ModelErrorKind::Generic)]);
    check(failed(fails, "HTTP 500: the script says so")).await;
    // Field report 9: the call gets an error, and the subagent answers.
    let unknown = calling(&[("x", "no_such_tool", json!({}))]);
    check(completed(one_task().sub("one", [unknown, saying("without it")]), "without it")).await;
}

// Facts §12 lines 42, 47 and 68.
#[tokio::test]
async fn a_cancel_in_the_middle_of_a_call_ends_it_as_cancelled() {
    let world = Setup::new(one_task().sub("one", [Turn::Hang])).build().await;
    let run = world.start("go").await;
    world.until("a call", |world| world.script.calls_for("one") == 1).await;
    world.runtime.cancel_delegation(&world.thread, &run, &named("call_1")).await.unwrap();
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    let ends = world.ends();
    assert_eq!((ends.len(), ends[0].status), (1, EndStatus::Cancelled));
    assert_eq!(ends[0].error.as_deref(), Some("Cancelled by user"));
    assert_eq!(ends[0].cancel_reason, Some(CancelReason::CancelledByUser));
    let result = &world.results()[0];
    assert!(result.content.starts_with("Task cancelled by user. Error: Cancelled by user"), "{result:?}");
    assert_eq!(result.additional_kwargs["subagent_status"], "cancelled");
    world.check_ended_once();
    world.until_idle().await;
}

// Facts §12 lines 47 and 48: what has ended or never was is not cancelled, and nothing breaks.
#[tokio::test]
async fn only_what_is_at_work_can_be_cancelled() {
    let lead = delegating(&[("call_1", "one"), ("call_2", "two")]);
    let script = Script::new()
        .lead("go", [lead, saying("done")])
        .sub("one", [saying("first")])
        .sub("two", [Turn::Held("two", saying("second"))]);
    let world = Setup::new(script).build().await;
    let run = world.start("go").await;
    world.until_recorded("subagent.end", 1).await;
    world.until("one task at work", |world| world.runtime.capacity().running == 1).await;
    let cancel = async |task: TaskRef| world.runtime.cancel_delegation(&world.thread, &run, &task).await;
    assert!(matches!(cancel(named("call_1")).await, Err(CancelError::DelegationEnded)));
    let id = world.scope_of("call_1").delegation_id.unwrap();
    assert!(matches!(cancel(TaskRef::DelegationId(id)).await, Err(CancelError::DelegationEnded)));
    assert!(matches!(cancel(named("call_9")).await, Err(CancelError::UnknownDelegation(_))));
    let nobody = DelegationId::from_uuid(uuid::Uuid::nil());
    assert!(matches!(cancel(TaskRef::DelegationId(nobody)).await, Err(CancelError::UnknownDelegation(_))));
    world.script.open("two");
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    assert!(matches!(cancel(named("call_1")).await, Err(CancelError::AlreadyEnded(RunStatus::Success))));
    assert!(world.ends().iter().all(|end| end.status == EndStatus::Completed));
}

// Facts §12 line 46, and field report 48: the same provider id in two runs is two delegations.
#[tokio::test]
async fn the_same_call_id_in_two_runs_is_two_delegations() {
    let script = Script::new()
        .lead("first", [delegating(&[("call_1", "one")]), saying("done")])
        .lead("second", [delegating(&[("call_1", "two")]), saying("done")])
        .sub("one", [Turn::Hang])
        .sub("two", [Turn::Held("two", saying("kept"))]);
    let world = Setup::new(script).build().await;
    let other = world.runtime.create_thread(NewThread::default()).await.unwrap();
    let first = world.start("first").await;
    world.until("the first at work", |world| world.script.at_work().0 == 1).await;
    let second = world.runtime.start_run(&other, request("second")).await.unwrap();
    world.until("both at work", |world| world.script.at_work().0 == 2).await;
    world.runtime.cancel_delegation(&world.thread, &first, &named("call_1")).await.unwrap();
    world.wait(&first).await;
    assert_eq!(world.runtime.capacity().running, 1);
    world.script.open("two");
    assert_eq!(world.done(world.runtime.wait(&other, &second)).await.unwrap(), RunStatus::Success);
    let ledger = world.ledger();
    let seen: Vec<_> = ledger.iter().map(|entry| (entry.task_id.as_str(), entry.status.as_str())).collect();
    assert_eq!(seen, [("call_1", "cancelled"), ("call_1", "completed")]);
    assert_ne!(ledger[0].delegation_id, ledger[1].delegation_id);
    world.check_ended_once();
}

// Facts §12 line 52: what a subagent says is not in the lead's conversation, except for its result.
#[tokio::test]
async fn a_subagent_s_messages_stay_out_of_the_conversation() {
    let step = AssistantMessage {
        content: "only for itself".into(),
        ..calling(&[("x", "ls", json!({"path": "."}))])
    };
    let world = Setup::new(one_task().sub("one", [step, saying("the result")])).build().await;
    world.run("go").await;
    let facts = world.facts();
    let feed: Vec<_> = facts.iter().filter(|fact| fact.event.category() == "message").collect();
    assert!(feed.iter().all(|fact| fact.scope.delegation_id.is_none()));
    let text = |facts: &[&domain::event::Logged]| {
        facts.iter().map(|fact| fact.event.content().unwrap().to_string()).collect::<String>()
    };
    assert!(!text(&feed).contains("only for itself"));
    assert!(text(&feed).contains("the result"));
    let steps: Vec<_> = facts.iter().filter(|fact| matches!(fact.event, Event::Subagent(_))).collect();
    assert!(text(&steps).contains("only for itself"));
    assert!(steps.iter().all(|fact| fact.event.category() == "subagent"));
    check_request_of_lead(&world);
}

fn check_request_of_lead(world: &World) {
    let requests = world.script.requests();
    let last = requests.last().unwrap();
    assert!(last.messages.iter().all(|message| !message.content().contains("only for itself")));
    assert!(last.messages.iter().any(|message| message.content().contains("Result: the result")));
}
