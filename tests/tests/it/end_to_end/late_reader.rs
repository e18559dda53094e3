//! A run that ended long ago, on a server that has been restarted: its readers get its history and
//! its end, and do not wait.

use std::time::Duration;

use tests::{
    record::text,
    server::{Setup, TestServer},
    sse::records,
    stub_model::{Reply, StubModel},
};

// Field report 58.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_and_end_come_at_once_after_a_restart() {
    let stub = StubModel::start(|_| Reply::says("done").into()).await;
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start(Setup::with_stub(&stub).in_folder(folder.path())).await;
    let (thread_id, run) = server.client.run_to_end("x").await;
    let run_id = text(&run, "run_id").to_owned();
    let before = server.client.follow(&thread_id, &run_id, None).await.rest().await;
    server.stop().await;

    let server = TestServer::start(Setup::with_stub(&stub).in_folder(folder.path())).await;
    let limit = Duration::from_secs(5);
    let whole = server.client.follow(&thread_id, &run_id, None).await.rest_within(limit).await;
    assert_eq!(whole, before);
    let cursor = before[2].id.as_deref();
    let rest = server.client.follow(&thread_id, &run_id, cursor).await.rest_within(limit).await;
    assert_eq!(records(&rest), records(&before[3..]));
    assert_eq!(rest.last().unwrap().event, "end");
    // Whoever has all of it gets its end once more.
    let last = records(&before).last().unwrap()["position"].to_string();
    let nothing = server.client.follow(&thread_id, &run_id, Some(&last)).await.rest_within(limit).await;
    assert_eq!(nothing.iter().map(|frame| frame.event.as_str()).collect::<Vec<_>>(), ["metadata", "end"]);
    // Field report 17: what the views say is what the log said.
    assert_eq!(server.client.run(&thread_id, &run_id).await, run);
    server.stop().await;
}
