//! How models are called: one limit for the whole process, and a model that is left alone.

use domain::event::{Event, ModelEvent, ModelFailed, RunStatus};

use crate::{
    models::ModelErrorKind,
    testing::{Script, Setup, Turn, World, delegating, saying},
};

/// A lead with three subagents whose replies are held.
fn three_at_once() -> Script {
    let tasks = [("1", "first"), ("2", "second"), ("3", "third")];
    let held = |text| [Turn::Held("gate", saying(text))];
    Script::new()
        .lead("go", [delegating(&tasks), saying("done")])
        .sub("first", held("one"))
        .sub("second", held("two"))
        .sub("third", held("three"))
}

// Chain facts §2.8: the limit is the process's, and holds for all agents together.
#[tokio::test]
async fn calls_over_the_limit_wait_for_a_place() {
    for (limit, at_work) in [(0, 3), (2, 2), (1, 1)] {
        let setup = Setup::new(three_at_once());
        let world = setup.config(|config| config.llm_call.max_concurrent_calls = limit).build().await;
        let run = world.start("go").await;
        world.until_recorded("delegation.admitted", 3).await;
        world.until("calls at work", |world| world.script.at_work().0 == at_work).await;
        world.script.open("gate");
        assert_eq!(world.wait(&run).await, RunStatus::Success);
        assert_eq!((world.script.at_work().1, world.script.calls()), (at_work, 5), "limit {limit}");
    }
}

fn failures(world: &World) -> Vec<ModelFailed> {
    let failed = |fact: domain::event::Logged| match fact.event {
        Event::Model(ModelEvent::Failed(failed)) => Some(failed),
        _ => None,
    };
    world.facts().into_iter().filter_map(failed).collect()
}

// Chain facts (f) line 89.
#[tokio::test]
async fn line_89_a_model_that_failed_too_often_is_not_asked() {
    let script = Script::new().lead("go", [Turn::Fail(ModelErrorKind::Transient)]);
    let world = Setup::new(script).config(|config| config.circuit_breaker.threshold = 2).build().await;
    for asked in [3, 6, 6, 6] {
        assert_eq!(world.run("go").await, RunStatus::Error);
        assert_eq!(world.script.calls(), asked);
    }
    let failures = failures(&world);
    let seen: Vec<(&str, u32)> = failures.iter().map(|one| (one.reason.as_str(), one.attempts)).collect();
    assert_eq!(seen, [("transient", 3), ("transient", 3), ("circuit_open", 0), ("circuit_open", 0)]);
    assert!(
        failures[2].error.contains("its last 2 calls failed; it is tried again in"),
        "{}",
        failures[2].error
    );
}
