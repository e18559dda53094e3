//! Fifty children at once.

use std::collections::BTreeSet;

use tests::{
    invariants::{assert_whole, grouped},
    plain_fold::assert_ledger,
    record::{last_seq, of_type, text},
    server::{Setup, TestServer},
    stub_model::{Asked, Call, Gate, Reply, StubModel},
};

const CHILDREN: usize = 50;

// Field report 38 (and facts §12 line 103): 50 that start together lose nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_children_start_at_once_and_none_is_missing() {
    let gate = Gate::closed();
    let held = gate.clone();
    let script = move |asked: &Asked| match (asked.is_lead(), asked.turn) {
        (true, 0) => {
            let task = |number: usize| {
                Call::task("general-purpose", &format!("child {number}")).id(&format!("c{number}"))
            };
            Reply::calls((1..=CHILDREN).map(task)).into()
        }
        (true, _) => Reply::says(asked.results().len().to_string()).into(),
        (false, _) => Reply::says("report").held_by(&held),
    };
    let stub = StubModel::start(script).await;
    let setup = Setup::with_stub(&stub).configured(|config| {
        config.subagent_runtime.max_running = 50;
        config.subagents.max_total_per_run = 50;
    });
    let server = TestServer::start(setup).await;
    let thread_id = server.client.create_thread().await;
    let run_id = server.client.start_run(&thread_id, "delegate").await;
    stub.wait_for("all children ask at once", |requests| requests.len() == 1 + CHILDREN).await;
    let capacity = server.client.get("/api/capacity").await.ok();
    assert_eq!((&capacity["running"], &capacity["queued"]), (&CHILDREN.into(), &0.into()));
    gate.open();
    let run = server.client.ended(&thread_id, &run_id).await;
    assert_eq!((text(&run, "status"), text(&run, "result")), ("success", "50"), "{run}");

    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    assert_eq!(of_type(&events, "subagent.start").len(), CHILDREN);
    for (id, of_child) in grouped(&events, "delegation_id") {
        assert_eq!(text(of_child[0], "event_type"), "delegation.requested", "{id}");
        let own: Vec<_> = of_child.iter().filter(|event| event["category"] == "subagent").collect();
        assert_eq!(text(own[0], "event_type"), "subagent.start", "{id}");
    }
    let tasks: BTreeSet<_> =
        of_type(&events, "subagent.start").iter().map(|event| text(event, "task_id").to_owned()).collect();
    assert_eq!(tasks.len(), CHILDREN);
    assert_ledger(&server.client.ledger(&thread_id, last_seq(&events)).await, &events);
}

// Field report 35, through the whole server: many runs at once, each thread's seqs without a gap.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_runs_at_once_keep_their_events_apart() {
    let script = |asked: &Asked| match (asked.is_lead(), asked.turn) {
        (true, 0) => Reply::calls([Call::task("general-purpose", &asked.task).id("call_1")]).into(),
        (true, _) => Reply::says("done").into(),
        (false, _) => Reply::says(format!("report on {}", asked.task)).into(),
    };
    let stub = StubModel::start(script).await;
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start(Setup::with_stub(&stub).in_folder(folder.path())).await;
    let runs = (0..20).map(|number| {
        let client = server.client.clone();
        async move { (number, client.run_to_end(&format!("matter {number}.")).await) }
    });
    for (number, (thread_id, run)) in futures::future::join_all(runs).await {
        assert_eq!(text(&run, "status"), "success", "{run}");
        let events = server.client.thread_events(&thread_id).await;
        assert_whole(&events);
        let end = of_type(&events, "subagent.end")[0];
        assert!(text(&end["content"], "result").contains(&format!("matter {number}.")), "{end}");
    }
    server.stop().await;
}
