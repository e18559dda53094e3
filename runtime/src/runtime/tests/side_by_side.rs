//! What is done on one thread does not hold up another, nor does reading a long history hold up the
//! worker that everybody shares.

use domain::ids::RunId;

use crate::{
    request::CancelError,
    testing::{Script, Setup, Turn, saying, slow_reads::SlowReads, world::request},
};

/// One worker: a read that blocked it would hold up everything.
#[tokio::test]
async fn runs_on_two_threads_start_side_by_side() {
    let (reads, log) = SlowReads::log();
    let script = Script::new().lead("go", [saying("done")]).lead("hang", [Turn::Hang]);
    let world = Setup::new(script).log(log).build().await;
    let ended = world.start("go").await;
    world.wait(&ended).await;
    let other = world.runtime.create_thread(crate::NewThread::default()).await.unwrap();
    reads.hold(&world.thread);
    let mut starting = Box::pin(world.runtime.start_run(&world.thread, request("go")));
    assert!(futures::poll!(starting.as_mut()).is_pending());
    world.until("the history is being read", |_| reads.waiting() == 1).await;

    let run = world.done(world.runtime.start_run(&other, request("go"))).await.unwrap();
    world.done(world.runtime.wait(&other, &run)).await.unwrap();
    // What became of a run is found without the thread's history.
    let cancelled = world.done(world.runtime.cancel_run(&world.thread, &ended)).await;
    assert!(matches!(cancelled, Err(CancelError::AlreadyEnded(_))), "{cancelled:?}");
    let nobody = RunId::new("nobody").unwrap();
    let cancelled = world.done(world.runtime.cancel_run(&world.thread, &nobody)).await;
    assert!(matches!(cancelled, Err(CancelError::UnknownRun(_))), "{cancelled:?}");
    let hanging = world.done(world.runtime.start_run(&other, request("hang"))).await.unwrap();
    world.done(world.runtime.cancel_run(&other, &hanging)).await.unwrap();
    world.done(world.runtime.wait(&other, &hanging)).await.unwrap();

    assert!(futures::poll!(starting.as_mut()).is_pending());
    reads.let_go();
    let run = world.done(starting).await.unwrap();
    world.wait(&run).await;
}

#[tokio::test]
async fn runs_on_one_thread_do_not_start_side_by_side() {
    let (reads, log) = SlowReads::log();
    let script = Script::new().lead("go", [saying("done")]).lead("hang", [Turn::Hang]);
    let world = Setup::new(script).log(log).build().await;
    world.wait(&world.start("go").await).await;
    reads.hold(&world.thread);
    let mut starting: Vec<_> =
        (0..3).map(|_| Box::pin(world.runtime.start_run(&world.thread, request("hang")))).collect();
    for one in &mut starting {
        assert!(futures::poll!(one.as_mut()).is_pending());
    }
    world.until("the history is being read", |_| reads.waiting() == 1).await;
    reads.let_go();
    let mut started = 0;
    for one in starting {
        started += usize::from(world.done(one).await.is_ok());
    }
    assert_eq!(started, 1);
}

#[tokio::test]
async fn a_shutdown_waits_for_a_start_and_no_run_is_left_behind() {
    let (reads, log) = SlowReads::log();
    let script = Script::new().lead("go", [saying("done")]);
    let world = Setup::new(script).log(log).build().await;
    world.wait(&world.start("go").await).await;
    reads.hold(&world.thread);
    let mut starting = Box::pin(world.runtime.start_run(&world.thread, request("go")));
    assert!(futures::poll!(starting.as_mut()).is_pending());
    world.until("the history is being read", |_| reads.waiting() == 1).await;
    let mut shutdown = Box::pin(world.runtime.shutdown());
    assert!(futures::poll!(shutdown.as_mut()).is_pending());
    reads.let_go();
    world.done(shutdown).await;
    drop(world.done(starting).await);
    let head = world.log.head();
    assert!(world.runtime.services.live_runs.active(&world.thread).is_none());
    assert!(world.runtime.start_run(&world.thread, request("go")).await.is_err());
    assert_eq!(world.log.head(), head, "nothing is recorded after a shutdown");
}
