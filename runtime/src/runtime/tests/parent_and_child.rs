//! What crosses from a lead to its subagents, and what does not (facts §3.3 and §3.5).

use domain::{
    event::RunStatus,
    ids::{ThreadId, UserId},
    message::Message,
};
use serde_json::json;

use crate::{
    request::NewThread,
    testing::{Script, Setup, calling, delegating, saying, world::request},
};

// Facts §12 lines 49 and 51, in our words: whose the work is and which trace it belongs to cross; of the
// conversation nothing does but the prompt.
#[tokio::test]
async fn identity_and_trace_cross_and_nothing_that_was_said() {
    let look = calling(&[("0", "ls", json!({"path": "/mnt/user-data/workspace"}))]);
    let script = Script::new()
        .lead(
            "the lead's own secret",
            [look, delegating(&[("1", "task-a"), ("2", "task-b")]), saying("done")],
        )
        .sub("task-a", [saying("a is done")])
        .sub("task-b", [saying("b is done")]);
    let world = Setup::new(script).build().await;
    let alice = UserId::new("alice").unwrap();
    let thread = ThreadId::new("of-alice").unwrap();
    let new = NewThread { thread_id: Some(thread.clone()), owner: alice.clone(), ..NewThread::default() };
    world.runtime.create_thread(new).await.unwrap();
    let run = world.runtime.start_run(&thread, request("the lead's own secret")).await.unwrap();
    let status = world.done(world.runtime.wait(&thread, &run)).await.unwrap();
    assert_eq!(status, RunStatus::Success);

    let events = world.log.read_all(eventlog::Position::ZERO, 10_000).unwrap();
    let of_children: Vec<_> = events.iter().filter(|event| event.scope.delegation_id.is_some()).collect();
    assert!(of_children.len() > 10, "{}", of_children.len());
    for event in &of_children {
        assert_eq!((&event.owner, event.scope.run_id.as_ref()), (&alice, Some(&run)), "{event:?}");
        assert_eq!(event.correlation_id.as_deref(), Some(run.as_str()), "{event:?}");
    }
    let requests = world.script.requests();
    let of_children: Vec<_> =
        requests.iter().filter(|request| request.agent != crate::models::AgentTag::Lead).collect();
    assert_eq!(of_children.len(), 2);
    for request in of_children {
        let [Message::System(system), Message::Human(task)] = request.messages.as_slice() else {
            panic!("not one system message and one task: {:?}", request.messages)
        };
        let said = format!("{}{}", system.content, task.content);
        assert!(!said.contains("the lead's own secret"), "{said}");
        assert!(!said.contains("You are the lead agent"), "{said}");
        assert_eq!(["task-a", "task-b"].iter().filter(|prompt| said.contains(**prompt)).count(), 1, "{said}");
    }
}

// A child has no tool that its lead lacks, and `task` never; what its definition allows is more.
#[tokio::test]
async fn a_child_has_no_more_tools_than_its_lead() {
    let script = Script::new()
        .lead("go", [delegating(&[("1", "task-a")]), saying("done")])
        .sub("task-a", [saying("a is done")]);
    let world = Setup::new(script).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    let requests = world.script.requests();
    let names =
        |at: usize| -> Vec<String> { requests[at].tools.iter().map(|tool| tool.name.clone()).collect() };
    let (lead, child) = (names(0), names(1));
    assert!(!child.is_empty() && child.iter().all(|name| lead.contains(name)), "{child:?} of {lead:?}");
    assert!(lead.contains(&"task".to_owned()) && !child.contains(&"task".to_owned()));
}
