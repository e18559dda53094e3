//! Tools that count, tools that break, and one that is held.

use std::{
    fs,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use domain::tool_spec::{SideEffect, ToolSpec};
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::tools::{
    Tool, ToolContext, ToolOutcome, ToolOutput,
    capture::{Capture, Frame},
    file_call::on_blocking_thread,
};

/// The longest that a tool is held; a test has failed then.
const HELD_MAX: Duration = Duration::from_secs(60);

/// Counts how often it was run.
#[derive(Clone)]
pub(crate) struct Counting {
    pub(crate) name: &'static str,
    pub(crate) side_effect: SideEffect,
    pub(crate) behaviour: Behaviour,
    runs: Arc<AtomicU32>,
}

/// What it does beside counting.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Return,
    TimeOut,
    Panic,
}

impl Counting {
    pub(crate) fn new(name: &'static str, side_effect: SideEffect, behaviour: Behaviour) -> Self {
        Self { name, side_effect, behaviour, runs: Arc::default() }
    }

    pub(crate) fn runs(&self) -> u32 {
        self.runs.load(Ordering::SeqCst)
    }
}

impl Tool for Counting {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            description: "Counts.".to_owned(),
            parameters: json!({"type": "object", "properties": {}}),
        }
    }

    fn side_effect(&self, _args: &Map<String, Value>) -> SideEffect {
        self.side_effect
    }

    fn run<'a>(
        &'a self,
        _context: &'a ToolContext,
        _args: &'a Map<String, Value>,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            self.runs.fetch_add(1, Ordering::SeqCst);
            match self.behaviour {
                Behaviour::Return => Capture::of("counted").finish(ToolOutcome::Ok, Frame::default()),
                Behaviour::TimeOut => {
                    Capture::of("Error: request timed out").finish(ToolOutcome::Error, Frame::default())
                }
                Behaviour::Panic => panic!("the tool was told to break"),
            }
        })
    }
}

/// Writes a file as the file tools do, but only when it is let: nobody can stop it meanwhile.
#[derive(Clone, Default)]
pub(crate) struct Holding(Arc<(Mutex<Stage>, Condvar)>);

/// How far it has got.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    #[default]
    Called,
    Begun,
    Let,
    Ended,
}

impl Holding {
    pub(crate) const NAME: &'static str = "hold";
    /// What it writes among the thread's outputs.
    pub(crate) const FILE: &'static str = "late.txt";

    pub(crate) fn has_begun(&self) -> bool {
        self.stage() >= Stage::Begun
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.stage() == Stage::Ended
    }

    pub(crate) fn let_go(&self) {
        self.set(Stage::Let);
    }

    fn stage(&self) -> Stage {
        *self.0.0.lock().unwrap()
    }

    fn set(&self, stage: Stage) {
        *self.0.0.lock().unwrap() = stage;
        self.0.1.notify_all();
    }

    fn write(&self, context: &ToolContext) -> ToolOutput {
        self.set(Stage::Begun);
        let (stage, let_go) = &*self.0;
        drop(
            let_go.wait_timeout_while(stage.lock().unwrap(), HELD_MAX, |stage| *stage < Stage::Let).unwrap(),
        );
        let folder = &context.folders.outputs;
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(Self::FILE), "late").unwrap();
        self.set(Stage::Ended);
        Capture::of("written").finish(ToolOutcome::Ok, Frame::default())
    }
}

impl Tool for Holding {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: Self::NAME.to_owned(),
            description: "Waits, and writes.".to_owned(),
            parameters: json!({"type": "object", "properties": {}}),
        }
    }

    fn side_effect(&self, _args: &Map<String, Value>) -> SideEffect {
        SideEffect::Effectful
    }

    fn run<'a>(
        &'a self,
        context: &'a ToolContext,
        args: &'a Map<String, Value>,
    ) -> BoxFuture<'a, ToolOutput> {
        let holding = self.clone();
        let write = move |context: &ToolContext, _: Map<String, Value>| Ok(holding.write(context));
        Box::pin(on_blocking_thread(Self::NAME, context, args, write))
    }
}
