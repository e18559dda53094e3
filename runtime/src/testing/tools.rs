//! Tools that count, and tools that break.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use domain::tool_spec::{SideEffect, ToolSpec};
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::tools::{
    Tool, ToolContext, ToolOutcome, ToolOutput,
    capture::{Capture, Frame},
};

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
                Behaviour::Panic => panic!("the tool was told to break"),
            }
        })
    }
}
