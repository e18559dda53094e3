//! The offline model: it plays a scenario. It is NOT a language model.
//!
//! It understands nothing and makes nothing up: a YAML file says what each agent says and which
//! tools it calls, turn by turn, with templates over the task and what the tools returned. So the
//! whole of Remit can be tried, shown and tested with real tools, no network, no cost, and the same
//! result every time. Every reply names itself: its `model_name` is `offline-scenario`.
//!
//! The turn is the number of replies since the last request; notes that guards put between a tool
//! result and the next reply do not begin a new request. A conversation that was compacted forgets
//! turns, and the scenario repeats them.

use std::{path::Path, time::Duration};

use domain::{
    ids::SubagentType,
    message::{AssistantMessage, Message, ResponseMetadata, ToolArgs, ToolCall},
    usage::Usage,
};
use futures::future::BoxFuture;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{
    AgentTag, ChatModel, Delta, Deltas, ModelError, ModelErrorKind, ModelRequest, ModelSettings,
    SettingsError,
};
use scenario::{Agent, Call, Scenario, Turn, UsageRule};
use situation::Situation;
use template::{Templates, Variables};

mod listing;
mod scenario;
mod situation;
mod template;
#[cfg(test)]
mod tests;

pub use scenario::ScenarioError;

/// What a reply says of the model that made it.
pub const OFFLINE_MODEL_NAME: &str = "offline-scenario";

/// Calls that one `for_each` may make.
const CALLS_PER_EACH_MAX: usize = 32;
/// Characters that count as one token, in a formula that is fixed and no more than a formula.
const CHARS_PER_TOKEN: u64 = 4;
const DEFAULT_YAML: &str = include_str!("../../scenarios/default.yaml");
const DEMO_YAML: &str = include_str!("../../scenarios/demo.yaml");
/// Names a built-in scenario where a file could stand.
const BUILT_IN_PREFIX: &str = "builtin:";

/// A call that a turn makes, before it has an id.
struct Made {
    tool: String,
    args: Map<String, Value>,
}

/// A scenario player behind the face of a model.
#[derive(Debug)]
pub struct OfflineModel {
    name: String,
    scenario: Scenario,
    templates: Templates,
    has_pauses: bool,
    context_tokens: Option<u32>,
}

impl OfflineModel {
    /// A player of the scenario in this text. The model's name also stands for the file in errors.
    pub fn from_yaml(name: impl Into<String>, yaml: &str) -> Result<Self, ScenarioError> {
        let name = name.into();
        let scenario = Scenario::parse(&name, yaml)?;
        Self::playing(name, scenario)
    }

    /// A player of the scenario that tours a folder with three subagents at work.
    pub fn demo(name: impl Into<String>) -> Result<Self, ScenarioError> {
        Self::playing(name.into(), Scenario::parse("builtin:demo", DEMO_YAML)?)
    }

    /// The configured player. Reads the scenario file, if one is named.
    pub fn from_settings(settings: &ModelSettings) -> Result<Self, SettingsError> {
        load(settings.scenario.as_deref())
            .and_then(|scenario| Self::playing(settings.name.clone(), scenario))
            .map(|model| Self { context_tokens: settings.context_tokens, ..model })
            .map_err(|source| SettingsError::Scenario {
                model: settings.name.clone(),
                source: Box::new(source),
            })
    }

    /// The same player, but it does not make anybody wait.
    #[must_use]
    pub fn without_pauses(mut self) -> Self {
        self.has_pauses = false;
        self
    }

    fn playing(name: String, scenario: Scenario) -> Result<Self, ScenarioError> {
        let templates = Templates::new();
        scenario.check(&templates)?;
        Ok(Self { name, scenario, templates, has_pauses: true, context_tokens: None })
    }

    /// The reply of this turn, and how long to make it last.
    fn reply(&self, request: &ModelRequest) -> Result<(AssistantMessage, Duration), ModelError> {
        let situation = Situation::of(&request.messages);
        let found = self.scenario.agents.iter().find(|agent| agent.plays(&request.agent, &situation.task));
        let turn = found.and_then(|agent| agent.turn(situation.turn));
        let (Some(agent), Some(turn)) = (found, turn) else {
            if request.agent == AgentTag::Summary {
                return Ok((finished(summed_up(&situation), request), Duration::ZERO));
            }
            let text = self.nothing_left(&request.agent, &situation, found.is_some());
            return Ok((finished(text, request), Duration::ZERO));
        };
        let variables = self.variables(request, &situation, agent);
        let reply = self.play(turn, &variables, request)?;
        Ok((reply, Duration::from_millis(turn.pause_ms)))
    }

    fn play(
        &self,
        turn: &Turn,
        variables: &Variables,
        request: &ModelRequest,
    ) -> Result<AssistantMessage, ModelError> {
        if let Some(failure) = &turn.error {
            let text = self.render(&turn.place("error"), failure, variables)?;
            return Err(ModelError::new(
                ModelErrorKind::Generic,
                format!("calling model {}: {text}", self.name),
            ));
        }
        let content = self.render(&turn.place("say"), &turn.say, variables)?.trim().to_owned();
        let mut made = Vec::new();
        for (position, call) in turn.calls.iter().enumerate() {
            let place = turn.place(&format!("calls[{position}]"));
            made.extend(self.calls(&place, call, variables)?);
        }
        let tool_calls: Vec<ToolCall> = made
            .into_iter()
            .enumerate()
            .map(|(position, made)| ToolCall {
                id: call_id(request, position),
                name: made.tool,
                args: ToolArgs::Object(made.args),
            })
            .collect();
        let mut reply = AssistantMessage { content, tool_calls, ..finished(String::new(), request) };
        let implied = if reply.tool_calls.is_empty() { "stop" } else { "tool_calls" };
        let finish_reason = turn.finish_reason.clone().unwrap_or_else(|| implied.to_owned());
        reply.response_metadata.finish_reason = Some(finish_reason);
        reply.usage = match &turn.usage {
            Some(UsageRule::Absent) => None,
            Some(UsageRule::Tokens { input, output }) => Some(Usage::new(*input, *output)),
            None => Some(counted(request, &reply)),
        };
        Ok(reply)
    }

    /// The calls that one entry makes: one, none, or one for each item.
    fn calls(&self, place: &str, call: &Call, variables: &Variables) -> Result<Vec<Made>, ModelError> {
        let evaluate = |key: &str, expression: &str| {
            self.templates
                .evaluate(expression, variables)
                .map_err(|error| self.failed(&format!("{place}.{key}"), error))
        };
        if let Some(condition) = &call.when
            && !evaluate("when", condition)?.is_true()
        {
            return Ok(Vec::new());
        }
        let Some(list) = &call.for_each else {
            return Ok(vec![Made {
                tool: call.tool.clone(),
                args: self.args(place, &call.args, variables)?,
            }]);
        };
        let items = evaluate("for_each", list)?;
        let items: Vec<minijinja::Value> =
            items.try_iter().map_err(|error| self.failed(&format!("{place}.for_each"), error))?.collect();
        if items.len() > CALLS_PER_EACH_MAX {
            let problem =
                format!("for_each has {} items; at most {CALLS_PER_EACH_MAX}, so use first(n)", items.len());
            return Err(self.broken(place, &problem));
        }
        let each = |(index, item)| {
            let variables = variables.with_item(index, item);
            Ok(Made { tool: call.tool.clone(), args: self.args(place, &call.args, &variables)? })
        };
        items.into_iter().enumerate().map(each).collect()
    }

    fn args(
        &self,
        place: &str,
        args: &Map<String, Value>,
        variables: &Variables,
    ) -> Result<Map<String, Value>, ModelError> {
        let fill = |(key, value): (&String, &Value)| {
            let filled = self.templates.fill(value, variables);
            filled
                .map(|value| (key.clone(), value))
                .map_err(|error| self.failed(&format!("{place}.args.{key}"), error))
        };
        args.iter().map(fill).collect()
    }

    fn render(&self, place: &str, source: &str, variables: &Variables) -> Result<String, ModelError> {
        self.templates.render(source, variables).map_err(|error| self.failed(place, error))
    }

    fn variables(&self, request: &ModelRequest, situation: &Situation, agent: &Agent) -> Variables {
        let tools: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        let vars = if agent.vars.is_empty() { &self.scenario.vars } else { &agent.vars };
        Variables::new(situation, &tools, vars)
    }

    fn failed(&self, place: &str, error: minijinja::Error) -> ModelError {
        self.broken(place, &format!("{error}")).caused_by(error)
    }

    fn broken(&self, place: &str, problem: &str) -> ModelError {
        let message =
            format!("playing scenario {} for model {}: {place}: {problem}", self.scenario.file, self.name);
        ModelError::new(ModelErrorKind::InvalidReply, message)
    }

    /// What is said when the scenario has no turn for this: the truth.
    fn nothing_left(&self, agent: &AgentTag, situation: &Situation, is_known: bool) -> String {
        let Scenario { file, .. } = &self.scenario;
        let (turn, caller) = (situation.turn + 1, agent.caller());
        let why = if is_known {
            format!("has no turn {turn} for {caller}")
        } else {
            format!("has no part for {caller}")
        };
        format!(
            "This is the offline scenario player, not a language model. The scenario {file} {why}, so it ends here."
        )
    }
}

impl ChatModel for OfflineModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn context_tokens(&self) -> Option<u32> {
        self.context_tokens
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: Deltas<'a>,
    ) -> BoxFuture<'a, Result<AssistantMessage, ModelError>> {
        Box::pin(async move {
            let (reply, pause) = self.reply(request)?;
            if self.has_pauses && !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            for line in reply.content.split_inclusive('\n') {
                deltas(Delta::Text(line.to_owned()));
            }
            for call in &reply.tool_calls {
                deltas(Delta::ToolCallStarted(call.name.clone()));
            }
            Ok(reply)
        })
    }
}

fn load(path: Option<&Path>) -> Result<Scenario, ScenarioError> {
    let Some(path) = path else { return Scenario::parse("builtin:default", DEFAULT_YAML) };
    match path.to_str().and_then(|path| path.strip_prefix(BUILT_IN_PREFIX)) {
        Some("default") => Scenario::parse("builtin:default", DEFAULT_YAML),
        Some("demo") => Scenario::parse("builtin:demo", DEMO_YAML),
        Some(_) | None => Scenario::read(path),
    }
}

impl Agent {
    fn plays(&self, tag: &AgentTag, task: &str) -> bool {
        let is_named = match tag {
            AgentTag::Lead => self.agent == scenario::LEAD,
            AgentTag::Subagent(name) => self.is_subagent(name),
            AgentTag::Summary => self.agent == scenario::SUMMARY,
        };
        is_named && self.task_pattern.as_ref().is_none_or(|pattern| pattern.is_match(task))
    }

    fn is_subagent(&self, name: &SubagentType) -> bool {
        self.agent == scenario::ANY_SUBAGENT || self.agent == name.as_str()
    }

    fn turn(&self, turn: usize) -> Option<&Turn> {
        self.turns.get(turn).or_else(|| self.turns.last().filter(|last| last.repeat.is_some()))
    }
}

/// A final text, with its usage.
fn finished(content: String, request: &ModelRequest) -> AssistantMessage {
    let response_metadata = ResponseMetadata {
        finish_reason: Some("stop".to_owned()),
        model_name: Some(OFFLINE_MODEL_NAME.to_owned()),
    };
    let mut reply = AssistantMessage { content, response_metadata, ..AssistantMessage::default() };
    reply.usage = Some(counted(request, &reply));
    reply
}

/// What is said where a scenario has no part for summaries: what is known without understanding.
fn summed_up(situation: &Situation) -> String {
    let chars = chars(&situation.task);
    format!(
        "Summed up by the offline scenario player, which understands nothing: {chars} characters of history."
    )
}

/// Tokens by a fixed formula, a quarter of the characters rounded up, so that the counting of tokens
/// can be tried. They cost nothing and measure nothing.
fn counted(request: &ModelRequest, reply: &AssistantMessage) -> Usage {
    let sent = request.messages.iter().map(|message| match message {
        Message::Assistant(reply) => spoken_chars(reply),
        Message::System(_) | Message::Human(_) | Message::Tool(_) => chars(message.content()),
    });
    let tokens = |chars: u64| chars.div_ceil(CHARS_PER_TOKEN);
    Usage::new(tokens(sent.sum()), tokens(spoken_chars(reply)))
}

fn spoken_chars(reply: &AssistantMessage) -> u64 {
    let call_chars = |call: &ToolCall| match &call.args {
        ToolArgs::Object(map) => chars(&call.name) + chars(&Value::Object(map.clone()).to_string()),
        ToolArgs::Invalid(text) => chars(&call.name) + chars(text),
    };
    chars(&reply.content) + reply.tool_calls.iter().map(call_chars).sum::<u64>()
}

fn chars(text: &str) -> u64 {
    u64::try_from(text.chars().count()).unwrap_or(u64::MAX)
}

/// An id that is the same whenever the same is asked, and another for every turn and position.
fn call_id(request: &ModelRequest, position: usize) -> String {
    let mut hash = Sha256::new();
    hash.update(request.agent.caller());
    for message in &request.messages {
        hash.update([0]);
        hash.update(message.content());
        if let Message::Tool(result) = message {
            hash.update(&result.tool_call_id);
        }
    }
    let digest = hex::encode(hash.finalize());
    let short: String = digest.chars().take(16).collect();
    format!("call_{short}_{}", position + 1)
}
