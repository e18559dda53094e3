//! `remit models check NAME`.

use std::time::Duration;

use anyhow::Context as _;
use runtime::{
    config::Config,
    models::{
        ModelError, ModelSettings, Models, Provider,
        probe::{FailedAt, Probe, ProbeAnswer, probe},
    },
};
use serde::Serialize;

use super::models::{configured, environment};
use crate::{
    context::Context,
    failure::{Exit, Failure},
    render,
};

/// What came of trying a model.
#[derive(Debug, Serialize)]
pub(crate) struct CheckReport {
    /// The model's name.
    pub(crate) name: String,
    /// Whether it can be used.
    pub(crate) usable: bool,
    /// Each thing that was looked at, in order.
    pub(crate) checks: Vec<Finding>,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    /// `reachable`, `authorised`, `answers`, `streams`, `reports_usage` or `calls_tools`.
    pub(crate) check: &'static str,
    /// What came of it.
    pub(crate) outcome: Outcome,
    /// What was seen.
    pub(crate) detail: String,
    /// What to do about it.
    pub(crate) advice: Option<String>,
}

/// What came of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// As it should be.
    Ok,
    /// It can be used without.
    Warning,
    /// It cannot be used so.
    Failed,
    /// Not looked at, because of what failed before.
    Skipped,
}

/// Tries the model and says what is wrong with it.
pub(super) async fn check(context: &Context, config: &Config, name: &str) -> anyhow::Result<Exit> {
    let models = configured(config);
    let Some(settings) = models.iter().find(|model| model.name == name) else {
        let known: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
        let failure = Failure::not_found(format!("no model {name:?} is configured"));
        return Err(failure.hint(format!("the configured models are {}", known.join(", "))).into());
    };
    let model = Models::only(settings, &environment)
        .map_err(anyhow::Error::new)
        .with_context(|| Failure::usage(format!("could not set up the model {name:?}")))?;
    let (report, exit) = match settings.provider {
        Provider::Offline => (offline(name), Exit::Done),
        Provider::Openai | Provider::Anthropic | Provider::Gemini => judged(settings, &probe(&*model).await),
    };
    if context.output.json {
        context.output.value(&report)?;
    } else {
        context.output.text(&render::models::check(context.output.screen, &report))?;
    }
    Ok(exit)
}

/// The scenario player is built in: whatever could be wrong with it was found when it was set up.
fn offline(name: &str) -> CheckReport {
    let detail = "built in: plays a scenario, and needs neither network nor key";
    CheckReport { name: name.to_owned(), usable: true, checks: vec![ok("answers", detail)] }
}

/// What the probe says, with advice; and the exit code.
fn judged(settings: &ModelSettings, probe: &Probe) -> (CheckReport, Exit) {
    let mut checks = Vec::new();
    let exit = match &probe.answer {
        Ok(answer) => {
            checks.extend(of_answer(answer));
            let finding = of_tool_call(settings, probe.tool_call.as_ref());
            let exit = if finding.outcome == Outcome::Ok { Exit::Done } else { Exit::Failed };
            checks.push(finding);
            exit
        }
        Err(error) => {
            checks.extend(of_failure(settings, error));
            match FailedAt::of(error) {
                FailedAt::Authorising | FailedAt::Paying => Exit::Refused,
                FailedAt::Reaching | FailedAt::Finding | FailedAt::Answering | FailedAt::Waiting => {
                    Exit::Failed
                }
            }
        }
    };
    (CheckReport { name: settings.name.clone(), usable: exit == Exit::Done, checks }, exit)
}

fn ok(check: &'static str, detail: impl Into<String>) -> Finding {
    Finding { check, outcome: Outcome::Ok, detail: detail.into(), advice: None }
}

fn found(
    check: &'static str,
    outcome: Outcome,
    detail: impl Into<String>,
    advice: impl Into<String>,
) -> Finding {
    Finding { check, outcome, detail: detail.into(), advice: Some(advice.into()) }
}

fn of_answer(answer: &ProbeAnswer) -> Vec<Finding> {
    let seconds = |duration: Duration| format!("{:.1} s", duration.as_secs_f64());
    let by = answer.model_name.as_deref().map(|name| format!(" by {name}")).unwrap_or_default();
    let answers = match answer.text.is_empty() {
        false => ok("answers", format!("in {}{by}", seconds(answer.took))),
        true => found(
            "answers",
            Outcome::Warning,
            format!("without a word, in {}{by}", seconds(answer.took)),
            "if it thinks long, give it a larger max_tokens",
        ),
    };
    let streams = match (answer.pieces, answer.first_piece_after) {
        (0 | 1, _) | (_, None) => found(
            "streams",
            Outcome::Warning,
            "the text came in one piece",
            "live views show replies only when they are whole; set chunk_timeout_seconds and \
             first_byte_timeout_seconds to the time of a whole reply",
        ),
        (pieces, Some(first)) => {
            ok("streams", format!("{pieces} pieces, the first after {}", seconds(first)))
        }
    };
    let usage = match answer.usage {
        Some(usage) => {
            ok("reports_usage", format!("{} tokens in, {} out", usage.input_tokens, usage.output_tokens))
        }
        None => found(
            "reports_usage",
            Outcome::Warning,
            "no token counts",
            "token budgets cannot hold and costs stay unknown; turn usage on at the server if it can report it",
        ),
    };
    vec![ok("reachable", ""), ok("authorised", ""), answers, streams, usage]
}

fn of_tool_call(settings: &ModelSettings, call: Option<&Result<bool, ModelError>>) -> Finding {
    match call {
        Some(Ok(true)) => ok("calls_tools", "called the tool that it was asked to call"),
        Some(Ok(false)) => found(
            "calls_tools",
            Outcome::Failed,
            "answered without calling the tool",
            "agents work by tools: take a model that is made for them, or turn tool calls on at the server \
             (llama.cpp: --jinja; vLLM: --enable-auto-tool-choice)",
        ),
        Some(Err(error)) => found("calls_tools", Outcome::Failed, told(error), advice(settings, error)),
        None => {
            Finding { check: "calls_tools", outcome: Outcome::Skipped, detail: String::new(), advice: None }
        }
    }
}

/// The check that failed, those before it, and those that it kept from being made.
fn of_failure(settings: &ModelSettings, error: &ModelError) -> Vec<Finding> {
    const CHECKS: [&str; 6] =
        ["reachable", "authorised", "answers", "streams", "reports_usage", "calls_tools"];
    let failed = match FailedAt::of(error) {
        FailedAt::Reaching => "reachable",
        FailedAt::Authorising => "authorised",
        FailedAt::Paying | FailedAt::Finding | FailedAt::Answering | FailedAt::Waiting => "answers",
    };
    let at = CHECKS.iter().position(|check| *check == failed).unwrap_or_default();
    let finding = |(place, &check): (usize, &&'static str)| match place {
        _ if place == at => found(check, Outcome::Failed, told(error), advice(settings, error)),
        // A provider may look at the address before it looks at the key.
        _ if place < at && check == "reachable" => ok(check, ""),
        _ => Finding { check, outcome: Outcome::Skipped, detail: String::new(), advice: None },
    };
    CHECKS.iter().enumerate().map(finding).collect()
}

/// The error with what is below it.
fn told(error: &ModelError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(below) = cause {
        text.push_str(&format!(": {below}"));
        cause = below.source();
    }
    text
}

fn advice(settings: &ModelSettings, error: &ModelError) -> String {
    let address = settings.address().unwrap_or_default();
    match FailedAt::of(error) {
        FailedAt::Reaching => format!("is a server running at {address}? Look at base_url, and at the proxy if there is one"),
        FailedAt::Authorising => match &settings.api_key {
            None => "the provider wants a key: set api_key to $VARIABLE or file:PATH".to_owned(),
            Some(key) => match key.shown() {
                Some(place) => format!("look at the key in {place}, and at what the provider allows it"),
                None => "look at api_key, and at what the provider allows the key".to_owned(),
            },
        },
        FailedAt::Paying => "the account has nothing left: look at its plan and billing at the provider".to_owned(),
        FailedAt::Finding => format!("look at model, which is the provider's id, and at base_url: {address}"),
        FailedAt::Answering => {
            "the provider did not understand the request, or is another than `provider` says: look at provider, \
             base_url, model and extra_body"
                .to_owned()
        }
        FailedAt::Waiting => match error.retry_after {
            Some(wait) => format!("try again in {} seconds", wait.as_secs().max(1)),
            None => "try again later; if it is only slow, raise first_byte_timeout_seconds, \
                     chunk_timeout_seconds and request_timeout_seconds"
                .to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use domain::usage::Usage;
    use runtime::models::ModelErrorKind;

    use super::*;

    fn settings() -> ModelSettings {
        ModelSettings {
            base_url: Some("http://127.0.0.1:1/v1".into()),
            ..ModelSettings::new("local", Provider::Openai)
        }
    }

    fn answer() -> ProbeAnswer {
        ProbeAnswer {
            model_name: Some("qwen".into()),
            text: "one two".into(),
            pieces: 7,
            first_piece_after: Some(Duration::from_millis(210)),
            took: Duration::from_millis(1_400),
            usage: Some(Usage::new(30, 12)),
        }
    }

    /// The exit code, and each check with the first letter of what came of it.
    #[track_caller]
    fn check(probe: &Probe, exit: Exit, expected: &str) -> CheckReport {
        let (report, found) = judged(&settings(), probe);
        let outcomes: String = report
            .checks
            .iter()
            .map(|finding| match finding.outcome {
                Outcome::Ok => 'o',
                Outcome::Warning => 'w',
                Outcome::Failed => 'F',
                Outcome::Skipped => '-',
            })
            .collect();
        assert_eq!((found, outcomes.as_str()), (exit, expected), "{report:?}");
        assert_eq!(report.usable, exit == Exit::Done);
        let is_advised = |finding: &Finding| matches!(finding.outcome, Outcome::Failed | Outcome::Warning);
        assert!(report.checks.iter().all(|finding| is_advised(finding) == finding.advice.is_some()));
        report
    }

    #[test]
    fn what_works_and_what_is_missing_is_told_apart() {
        check(&Probe { answer: Ok(answer()), tool_call: Some(Ok(true)) }, Exit::Done, "oooooo");
        check(&Probe { answer: Ok(answer()), tool_call: Some(Ok(false)) }, Exit::Failed, "oooooF");
        let bare = ProbeAnswer { pieces: 1, usage: None, ..answer() };
        check(&Probe { answer: Ok(bare), tool_call: Some(Ok(true)) }, Exit::Done, "ooowwo");
        let silent = ProbeAnswer { pieces: 0, first_piece_after: None, text: String::new(), ..answer() };
        check(&Probe { answer: Ok(silent), tool_call: Some(Ok(true)) }, Exit::Done, "oowwoo");
    }

    #[test]
    fn every_failure_has_its_place_and_its_advice() {
        for (kind, status, exit, expected, advised) in [
            (ModelErrorKind::Auth, Some(401), Exit::Refused, "oF----", "the provider wants a key"),
            (ModelErrorKind::Quota, Some(402), Exit::Refused, "o-F---", "nothing left"),
            (ModelErrorKind::Generic, Some(404), Exit::Failed, "o-F---", "look at model"),
            (ModelErrorKind::InvalidReply, None, Exit::Failed, "o-F---", "look at provider"),
            (ModelErrorKind::Busy, Some(529), Exit::Failed, "o-F---", "try again later"),
        ] {
            let error = ModelError { status, ..ModelError::new(kind, "it failed") };
            let report = check(&Probe { answer: Err(error), tool_call: None }, exit, expected);
            let failed = report.checks.iter().find(|finding| finding.outcome == Outcome::Failed).unwrap();
            assert!(failed.advice.as_deref().unwrap().contains(advised), "{failed:?}");
        }
    }
}
