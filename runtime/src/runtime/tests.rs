#![expect(clippy::wildcard_enum_match_arm, reason = "tests look for one kind of event among all")]

mod admission;
mod cancel;
mod compacting;
mod erasing;
mod erasing_runs;
mod executor;
mod failures;
mod frozen;
mod guards;
mod held_tools;
mod limits;
mod load;
mod model_calls;
mod old_keys;
mod outputs;
mod parent_and_child;
mod races;
mod recovery;
mod restart;
mod retry_ceiling;
mod side_by_side;
mod start;
mod task_tool;
mod time_limit;
mod tool_progress;
mod usage;

use std::sync::Arc;

use domain::{event::RunStatus, message::HumanMessage};
use eventlog::{EventLog, Options, Position};

use super::*;
use crate::{
    clock::SystemClock,
    id_source::SystemIds,
    models::offline::OfflineModel,
    request::{NewThread, RunRequest},
};

fn runtime(log: &EventLog, data: &std::path::Path, models: Models) -> Runtime {
    Runtime::new(RuntimeParts {
        log: log.clone(),
        config: Config::default(),
        models,
        data_folder: data.to_owned(),
        clock: Arc::new(SystemClock),
        ids: Arc::new(SystemIds),
    })
    .unwrap()
}

fn saying(text: &str) -> RunRequest {
    RunRequest::saying(vec![HumanMessage { content: text.into(), id: None, images: Vec::new() }])
}

// Chain facts (f) line 15, and facts §10: a limit out of its range is an error where a runtime is made,
// whoever made the configuration.
#[test]
fn a_runtime_is_made_of_limits_within_their_ranges() {
    let data = tempfile::tempdir().unwrap();
    let made = |change: fn(&mut Config)| {
        let mut config = Config::default();
        change(&mut config);
        Runtime::new(RuntimeParts {
            log: EventLog::in_memory(Options::default()),
            config,
            models: Models::of(OfflineModel::demo("offline").unwrap()),
            data_folder: data.path().to_owned(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
        })
    };
    let refused = |change| made(change).err().map(|refusal| refusal.to_string());
    for (change, words) in [
        (
            (|config| config.subagents.max_total_per_run = 0) as fn(&mut Config),
            "subagents.max_total_per_run is 0: it must be from 1 to 50",
        ),
        (|config| config.subagents.max_total_per_run = 51, "is 51: it must be from 1 to 50"),
        (
            |config| config.subagent_runtime.max_running = 0,
            "subagent_runtime.max_running is 0: it must be from 1 to 64",
        ),
        (|config| config.subagent_runtime.max_running = 65, "is 65: it must be from 1 to 64"),
    ] {
        let refusal = refused(change).unwrap();
        assert!(refusal.contains(words), "{refusal}");
    }
    for change in [(|config| config.subagents.max_total_per_run = 50) as fn(&mut Config), |config| {
        config.subagent_runtime.max_running = 64
    }] {
        assert_eq!(refused(change), None);
    }
}

#[tokio::test]
async fn the_demo_scenario_delegates_and_reports() {
    let data = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    std::fs::write(files.path().join("a b.txt"), "hello\nworld\n").unwrap();
    let log = EventLog::in_memory(Options::default());
    let runtime =
        runtime(&log, data.path(), Models::of(OfflineModel::demo("offline").unwrap().without_pauses()));
    let new = NewThread { workspace: Some(files.path().to_owned()), ..NewThread::default() };
    let thread = runtime.create_thread(new).await.unwrap();
    let run = runtime.start_run(&thread, saying("look at the files")).await.unwrap();
    assert_eq!(runtime.wait(&thread, &run).await.unwrap(), RunStatus::Success);
    let events = log.read_all(Position::ZERO, 10_000).unwrap();
    let count = |event_type: &str| events.iter().filter(|event| event.event_type == event_type).count();
    assert_eq!(
        (count("delegation.requested"), count("subagent.end"), count("delegation.delivered")),
        (3, 3, 3)
    );
    assert_eq!((count("subagent.cap"), count("run.end")), (1, 1));
    let report = data.path().join("threads").join(thread.as_str()).join("user-data/outputs/report.md");
    assert!(std::fs::read_to_string(report).unwrap().contains("a b.txt"));
}

#[tokio::test]
async fn agents_do_not_work_on_the_data_folder() {
    let data = tempfile::tempdir().unwrap();
    let inside = data.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    let log = EventLog::in_memory(Options::default());
    let runtime = runtime(&log, data.path(), Models::of(OfflineModel::demo("offline").unwrap()));
    for folder in [data.path(), &inside] {
        let new = NewThread { workspace: Some(folder.to_owned()), ..NewThread::default() };
        let Err(refusal @ crate::request::CreateThreadError::Workspace { .. }) =
            runtime.create_thread(new).await
        else {
            panic!("{} was taken", folder.display())
        };
        assert!(domain::causes::with_causes(&refusal).contains("data folder"), "{refusal:?}");
    }
    let around = NewThread { workspace: data.path().parent().map(Into::into), ..NewThread::default() };
    assert!(runtime.create_thread(around).await.is_ok());
}
