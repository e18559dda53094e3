//! Tools that are at work when their run is erased: nothing is written after the end.

use domain::ids::RunId;
use serde_json::json;

use crate::{
    erasure::ErasureState,
    request::EraseError,
    runtime::{Erase, Erasing},
    sandbox::ThreadFolders,
    testing::{Script, Setup, World, calling, saying, tools::Holding, world::request},
};

async fn world(tool: &Holding) -> World {
    let hold = calling(&[("c1", Holding::NAME, json!({}))]);
    let script = Script::new().lead("hold", [hold, saying("done")]).lead("go", [saying("done")]);
    Setup::new(script).tool(tool.clone()).build().await
}

/// A run whose tool is held, and the erasure that was asked for then.
async fn held(world: &World, tool: &Holding, what: impl FnOnce(&RunId) -> Erase) -> (RunId, Erasing) {
    let run = world.start("hold").await;
    world.until("the tool", |_| tool.has_begun()).await;
    let erasing = world.runtime.begin_erasing(what(&run)).await.unwrap().pop().unwrap();
    world.until("the wait for the tool", |world| world.runtime.services.tool_work.waiting() == 1).await;
    assert!(world.log.is_run_erased(&world.thread, &run), "nothing can be read any more");
    (run, erasing)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn folders_are_removed_after_the_last_tool() {
    let tool = Holding::default();
    let world = world(&tool).await;
    let (_, erasing) = held(&world, &tool, |_| Erase::Thread(world.thread.clone())).await;
    let erasure_id = erasing.erasure_id;
    let mut done = Box::pin(erasing.done());
    // Another thread is not kept waiting.
    let other = world.runtime.create_thread(crate::NewThread::default()).await.unwrap();
    world.done(world.runtime.erase_thread(&other)).await.unwrap();
    assert!(futures::poll!(done.as_mut()).is_pending());
    assert_eq!(world.runtime.erasure(erasure_id).unwrap().unwrap().state, ErasureState::Erasing);
    // Asking again joins it, and nothing more runs on the thread.
    let again =
        world.runtime.begin_erasing(Erase::Thread(world.thread.clone())).await.unwrap().pop().unwrap();
    assert_eq!(again.erasure_id, erasure_id);
    assert!(world.runtime.start_run(&world.thread, request("go")).await.is_err());
    tool.let_go();
    assert_eq!(world.done(done).await.unwrap(), erasure_id);
    assert_eq!(world.done(again.done()).await.unwrap(), erasure_id);
    assert!(tool.has_ended());
    assert!(!ThreadFolders::root(world.data.path(), &world.thread).exists(), "written before, and removed");
    assert_eq!(world.count("thread.erased"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erased_run_waits_for_its_own_tools_alone() {
    let tool = Holding::default();
    let world = world(&tool).await;
    let first = world.start("go").await;
    world.wait(&first).await;
    let (run, erasing) = held(&world, &tool, |run| Erase::Run(world.thread.clone(), run.clone())).await;
    let mut done = Box::pin(erasing.done());
    // The thread goes on meanwhile: another run works, and an earlier one is erased.
    let next = world.start("go").await;
    world.wait(&next).await;
    world.done(world.runtime.erase_run(&world.thread, &first)).await.unwrap();
    assert!(futures::poll!(done.as_mut()).is_pending());
    tool.let_go();
    world.done(done).await.unwrap();
    assert!(tool.has_ended() && world.log.is_run_erased(&world.thread, &run));
    let outputs = ThreadFolders::root(world.data.path(), &world.thread).join("user-data/outputs");
    assert!(outputs.join(Holding::FILE).exists(), "files are the thread's");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_does_not_wait_for_an_erasure_that_waits() {
    let tool = Holding::default();
    let world = world(&tool).await;
    let (_, erasing) = held(&world, &tool, |_| Erase::Thread(world.thread.clone())).await;
    world.done(world.runtime.shutdown()).await;
    let cut_off = world.done(erasing.done()).await;
    assert!(matches!(cut_off, Err(EraseError::ShuttingDown)), "{cut_off:?}");
    assert_eq!(world.runtime.erasures().unwrap()[0].state, ErasureState::Erasing);
    tool.let_go();
}
