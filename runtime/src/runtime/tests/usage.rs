//! Tokens (facts §12, "Usage", and lines 63 to 65).

use domain::{
    event::{Event, ModelEvent, RunEvent, SubagentEvent},
    usage::Usage,
};
use serde_json::json;

use crate::{
    models::ModelErrorKind,
    testing::{Script, Setup, Turn, World, calling, delegating, saying, script::Using},
};

fn look() -> domain::message::AssistantMessage {
    calling(&[("x", "ls", json!({"path": "."}))])
}

fn of_run(world: &World) -> Option<Usage> {
    let ended = |fact: domain::event::Logged| match fact.event {
        Event::Run(RunEvent::Ended(ended)) => Some(ended.usage),
        _ => None,
    };
    world.facts().into_iter().find_map(ended).unwrap()
}

// Facts §12 lines 63 and 80: every call counts once, and the run is the sum of its agents.
#[tokio::test]
async fn tokens_add_up_to_the_end_and_to_the_run() {
    let script = Script::new()
        .lead("go", [delegating(&[("call_1", "one")]).using(10, 1), saying("done").using(20, 2)])
        .sub("one", [look().using(100, 50), saying("ok").using(200, 80)]);
    let world = Setup::new(script).build().await;
    world.run("go").await;
    assert_eq!(world.ends()[0].usage, Some(Usage::new(300, 130)));
    assert_eq!(of_run(&world), Some(Usage::new(330, 133)));
    let told = &world.results()[0].additional_kwargs["subagent_token_usage"];
    assert_eq!(told, &json!({"input_tokens": 300, "output_tokens": 130, "total_tokens": 430}));
}

// Facts §12 lines 64 and 82, and field report 87: what was not reported is unknown, not zero.
#[tokio::test]
async fn no_report_is_no_usage() {
    let script = Script::new()
        .lead("go", [delegating(&[("call_1", "one")]), saying("done")])
        .sub("one", [saying("ok")]);
    let world = Setup::new(script).build().await;
    world.run("go").await;
    assert_eq!((world.ends()[0].usage, of_run(&world)), (None, None));
    assert!(!world.results()[0].additional_kwargs.contains_key("subagent_token_usage"));
}

// Facts §12 lines 80 and 83: a call that failed and was asked again counts once.
#[tokio::test]
async fn a_retried_call_counts_once() {
    let script = Script::new()
        .lead("go", [delegating(&[("call_1", "one")]), saying("done")])
        .sub("one", [Turn::Flaky(ModelErrorKind::Transient, 2, saying("ok").using(20, 10))]);
    let world = Setup::new(script).build().await;
    world.run("go").await;
    assert_eq!(world.ends()[0].usage, Some(Usage::new(20, 10)));
    assert_eq!((world.script.calls_for("one"), world.count("llm.retry")), (3, 2));
}

// Field report 88: tokens are found under the model and the agent that used them.
#[tokio::test]
async fn every_count_is_under_its_model_and_caller() {
    let quick = Script::named("quick").sub("one", [saying("ok").using(7, 3)]);
    let script = Script::named("slow")
        .lead("go", [delegating(&[("call_1", "one")]).using(1, 1), saying("done").using(2, 2)]);
    let setup = Setup::new(script).model(&quick).config(|config| {
        config.subagents.agents =
            serde_json::from_value(json!({"general-purpose": {"model": "quick"}})).unwrap();
    });
    let world = setup.build().await;
    world.run("go").await;
    let (mut lead, mut subagents) = (None, None);
    for fact in world.facts() {
        match fact.event {
            Event::Model(ModelEvent::AiResponse(message)) => {
                Usage::add_to(&mut lead, message.as_assistant().unwrap().usage);
            }
            Event::Subagent(SubagentEvent::Message(captured)) => {
                let reply = captured.message.as_assistant();
                Usage::add_to(&mut subagents, reply.and_then(|reply| reply.usage));
            }
            _ => {}
        }
    }
    assert_eq!((lead, subagents), (Some(Usage::new(3, 3)), Some(Usage::new(7, 3))));
    assert_eq!(of_run(&world), Some(Usage::new(10, 6)));
    assert_eq!(world.ends()[0].model_name.as_deref(), Some("quick"));
    assert_eq!(world.results()[0].additional_kwargs["subagent_model_name"], "quick");
    assert_eq!((quick.calls(), world.script.calls()), (1, 2));
}
