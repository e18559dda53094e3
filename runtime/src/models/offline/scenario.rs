//! The scenario file: what each agent says and does, turn by turn.

use std::path::Path;

use domain::limits::TOOL_CALLS_PER_REPLY_MAX;
use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::template::{Templates, typed};

/// A scenario file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Turns of one agent.
const TURNS_MAX: usize = 200;
/// The longest pause of a turn.
const PAUSE_MS_MAX: u64 = 60_000;

/// The agent that the caller talks to.
pub(super) const LEAD: &str = "lead";
/// Any subagent at all.
pub(super) const ANY_SUBAGENT: &str = "*";

/// What sums up the older part of a history.
pub(super) const SUMMARY: &str = "summary";

/// A scenario that cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("reading scenario {file}")]
    Read {
        /// The file.
        file: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The file is not a scenario: not YAML, an unknown key, a missing one.
    #[error("reading scenario {file}{}: {problem}", line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Malformed {
        /// The file.
        file: String,
        /// The line, from 1.
        line: Option<u64>,
        /// What is wrong there.
        problem: String,
    },
    /// A template, expression or pattern in it cannot be used, or a rule is broken.
    #[error("checking scenario {file}: {place}: {problem}")]
    Unusable {
        /// The file.
        file: String,
        /// The place, such as `agents[0].turns[2].say`.
        place: String,
        /// What is wrong there.
        problem: String,
    },
}

/// What each agent says and does.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    /// Where it came from, for errors and for the last word.
    #[serde(skip)]
    pub(super) file: String,
    /// What it is for; for readers.
    #[serde(default, rename = "about")]
    _about: String,
    /// Values that templates know as `vars`.
    #[serde(default)]
    pub(super) vars: Map<String, Value>,
    /// The parts; the first that fits is played.
    pub(super) agents: Vec<Agent>,
}

/// One part.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Agent {
    /// `lead`, a subagent type, `*` for any subagent, or `summary` for what sums histories up.
    pub(super) agent: String,
    /// A regular expression that the text of the task must match.
    #[serde(default)]
    task_matches: Option<String>,
    /// Values that templates know as `vars`, in place of the scenario's.
    #[serde(default)]
    pub(super) vars: Map<String, Value>,
    /// What is said and done, one reply each.
    pub(super) turns: Vec<Turn>,
    #[serde(skip)]
    pub(super) task_pattern: Option<Regex>,
}

/// One reply.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Turn {
    /// The visible text: a template.
    #[serde(default)]
    pub(super) say: String,
    /// The calls, in order. A reply without calls is an agent's last.
    #[serde(default)]
    pub(super) calls: Vec<Call>,
    /// What is reported of tokens; by default a fixed formula over the characters.
    #[serde(default)]
    pub(super) usage: Option<UsageRule>,
    /// How long the reply takes, for those who watch.
    #[serde(default)]
    pub(super) pause_ms: u64,
    /// Why the model stopped; by default `tool_calls` or `stop`.
    #[serde(default)]
    pub(super) finish_reason: Option<String>,
    /// The call of the model fails with this text: a template.
    #[serde(default)]
    pub(super) error: Option<String>,
    /// On the last turn: play it again and again.
    #[serde(default)]
    pub(super) repeat: Option<Repeat>,
    #[serde(skip)]
    place: String,
}

/// One tool call, or several.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    /// The tool's name.
    pub(super) tool: String,
    /// Its arguments, whose texts are templates.
    #[serde(default)]
    pub(super) args: Map<String, Value>,
    /// An expression: without a true value nothing is called.
    #[serde(default)]
    pub(super) when: Option<String>,
    /// An expression that gives a list: one call for each `item`, which also has an `index`.
    #[serde(default)]
    pub(super) for_each: Option<String>,
}

/// What a reply reports of tokens.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum UsageRule {
    /// Nothing, as some providers do.
    Absent,
    /// Exactly this.
    Tokens {
        /// Tokens that were sent.
        input: u64,
        /// Tokens that came back.
        output: u64,
    },
}

/// How long a last turn is played.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Repeat {
    /// Until somebody stops the agent.
    Forever,
}

impl Scenario {
    pub(super) fn read(path: &Path) -> Result<Self, ScenarioError> {
        let file = path.display().to_string();
        let failed = |source| ScenarioError::Read { file: file.clone(), source };
        let length = std::fs::metadata(path).map_err(failed)?.len();
        if length > FILE_BYTES_MAX {
            let problem = format!("the file has {length} bytes, but at most {FILE_BYTES_MAX} are read");
            return Err(ScenarioError::Malformed { file, line: None, problem });
        }
        Self::parse(&file, &std::fs::read_to_string(path).map_err(failed)?)
    }

    pub(super) fn parse(file: &str, yaml: &str) -> Result<Self, ScenarioError> {
        let mut scenario: Self = serde_saphyr::from_str(yaml).map_err(|error| ScenarioError::Malformed {
            file: file.to_owned(),
            line: error.location().map(|location| location.line()).filter(|&line| line > 0),
            problem: first_line(&error.without_snippet().to_string()),
        })?;
        file.clone_into(&mut scenario.file);
        for (position, agent) in scenario.agents.iter_mut().enumerate() {
            for (number, turn) in agent.turns.iter_mut().enumerate() {
                turn.place = format!("agents[{position}].turns[{number}]");
            }
            if let Some(pattern) = &agent.task_matches {
                let compiled = Regex::new(pattern).map_err(|error| ScenarioError::Unusable {
                    file: file.to_owned(),
                    place: format!("agents[{position}].task_matches"),
                    problem: error.to_string(),
                })?;
                agent.task_pattern = Some(compiled);
            }
        }
        Ok(scenario)
    }

    /// Finds what would only fail when it is played.
    pub(super) fn check(&self, templates: &Templates) -> Result<(), ScenarioError> {
        for (position, agent) in self.agents.iter().enumerate() {
            let count = agent.turns.len();
            if !(1..=TURNS_MAX).contains(&count) {
                let place = format!("agents[{position}].turns");
                return self.unusable(place, format!("must be 1 to {TURNS_MAX} turns, is {count}"));
            }
            for (number, turn) in agent.turns.iter().enumerate() {
                if turn.repeat.is_some() && number + 1 < count {
                    return self.unusable(turn.place("repeat"), "only the last turn can be repeated".into());
                }
                self.check_turn(turn, templates)?;
            }
        }
        Ok(())
    }

    fn check_turn(&self, turn: &Turn, templates: &Templates) -> Result<(), ScenarioError> {
        if turn.pause_ms > PAUSE_MS_MAX {
            return self.unusable(turn.place("pause_ms"), format!("must be at most {PAUSE_MS_MAX}"));
        }
        if turn.calls.len() > TOOL_CALLS_PER_REPLY_MAX {
            return self.unusable(turn.place("calls"), format!("must be at most {TOOL_CALLS_PER_REPLY_MAX}"));
        }
        let error = turn.error.as_deref().unwrap_or_default();
        self.usable(turn.place("say"), templates.check(&turn.say))?;
        self.usable(turn.place("error"), templates.check(error))?;
        for (position, call) in turn.calls.iter().enumerate() {
            let place = |key: &str| turn.place(&format!("calls[{position}].{key}"));
            for (key, source) in [("when", &call.when), ("for_each", &call.for_each)] {
                let source = source.as_deref().unwrap_or("true");
                self.usable(place(key), templates.check_expression(source))?;
            }
            for (key, value) in &call.args {
                self.usable(place(&format!("args.{key}")), check_value(value, templates))?;
            }
        }
        Ok(())
    }

    fn usable(&self, place: String, checked: Result<(), minijinja::Error>) -> Result<(), ScenarioError> {
        checked.or_else(|error| self.unusable(place, error.to_string()))
    }

    fn unusable(&self, place: String, problem: String) -> Result<(), ScenarioError> {
        Err(ScenarioError::Unusable { file: self.file.clone(), place, problem })
    }
}

impl Turn {
    /// A key of this turn as errors name it.
    pub(super) fn place(&self, key: &str) -> String {
        format!("{}.{key}", self.place)
    }
}

fn check_value(value: &Value, templates: &Templates) -> Result<(), minijinja::Error> {
    match value {
        Value::String(source) => templates.check(source),
        Value::Array(items) => items.iter().try_for_each(|item| check_value(item, templates)),
        Value::Object(fields) => match typed(value) {
            Some(source) => templates.check_expression(source),
            None => fields.values().try_for_each(|field| check_value(field, templates)),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
