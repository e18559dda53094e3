//! `remit demo`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use contracts::wire::{delegation::Delegation, run::Run};
use domain::{ids::RunId, ids::ThreadId, message::HumanMessage};
use runtime::{RunRequest, config::Config, models::Models, sandbox::ThreadFolders};
use serde::Serialize;
use serde_json::json;

use super::run::{ended, print_answer};
use crate::{
    args::DemoArguments,
    context::{Context, quoted},
    failure::Exit,
    host::{self, Host},
    output::program,
    progress::{Progress, watch::watch},
    render::{
        self,
        tone::{Tone, bold, paint},
        units,
    },
    screen::Screen,
    source::{Folder, Source},
};

/// What the demo's lead is asked.
const PROMPT: &str = "Look at the files here, have three subagents work on them, and write a report.";
/// The subagent that would read for ever is stopped after so many turns: some seconds.
const READER_TURNS_MAX: u32 = 8;

/// What a program reads of a demo.
#[derive(Serialize)]
struct Outcome<'a> {
    #[serde(flatten)]
    run: &'a Run,
    ledger: &'a [Delegation],
    reports: &'a [PathBuf],
    events: u64,
    data: &'a Path,
}

/// Runs the demo on a folder, which it only reads.
pub(super) async fn demo(context: &Context, arguments: &DemoArguments) -> anyhow::Result<Exit> {
    context.here_only("demo")?;
    let dir = host::existing_folder(&arguments.dir)?;
    let config = config(&context.config(Vec::new())?.config)?;
    let host = Host::open(config, Models::of(host::demo_model()?)).await?;
    let outcome = demo_on(context, &host, &dir).await;
    host.close_after(outcome).await
}

/// The demo behaves the same whatever is configured, except for where its data and its shell are.
fn config(loaded: &Config) -> anyhow::Result<Config> {
    let mut config = Config { log: loaded.log.clone(), sandbox: loaded.sandbox, ..Config::default() };
    let turns = json!({"general-purpose": {"max_turns": READER_TURNS_MAX}});
    config.subagents.agents = serde_json::from_value(turns).context("could not limit the demo's turns")?;
    Ok(config)
}

async fn demo_on(context: &Context, host: &Host, dir: &Path) -> anyhow::Result<Exit> {
    if let Err(unavailable) = host.runtime.confinement() {
        context.output.warn(&format!("the shell task will be refused: {unavailable}"));
    }
    let thread_id = host.create_thread(Some(dir)).await?;
    let input = vec![HumanMessage { content: PROMPT.to_owned(), id: None, images: Vec::new() }];
    let mut watched = host.start(&thread_id, RunRequest::saying(input)).await?;
    let run_id = watched.run_id.clone();
    context.output.note(&format!("a scripted demo on {}, offline, with real tools", dir.display()));
    let progress = watch(&mut watched, Progress::new(run_id.clone()), &context.output).await?;
    let folder = Source::Folder(Box::new(Folder::of(host.log.clone(), host.views()?)));
    let ending = Ending::read(host, &folder, &thread_id, &run_id).await?;
    if context.output.json {
        context.output.value(&ending.outcome(&host.data))?;
    } else {
        print_answer(context, &progress)?;
        context.output.text(&ending.text(context))?;
    }
    Ok(ended(context, &progress))
}

/// What there is to see when the demo has ended.
struct Ending {
    run: Run,
    ledger: Vec<Delegation>,
    reports: Vec<PathBuf>,
    events: u64,
}

impl Ending {
    async fn read(
        host: &Host,
        source: &Source,
        thread_id: &ThreadId,
        run_id: &RunId,
    ) -> anyhow::Result<Self> {
        let run = source.run(thread_id.as_str(), run_id.as_str()).await?;
        let ledger = source.ledger(thread_id.as_str(), Some(run_id.as_str()), None).await?;
        let tail = host.log.stream_tail(&thread_id.clone().into()).context("could not count the events")?;
        let reports = outputs(&host.data, thread_id)?;
        Ok(Self { run, ledger, reports, events: tail.map_or(0, |seq| seq.get()) })
    }

    fn outcome<'a>(&'a self, data: &'a Path) -> Outcome<'a> {
        let Self { run, ledger, reports, events } = self;
        Outcome { run, ledger, reports, events: *events, data }
    }

    fn text(&self, context: &Context) -> String {
        let screen = context.output.screen;
        let mut parts = Vec::new();
        for report in &self.reports {
            parts.push(format!("{} {}", bold("Report:", screen.colours), report.display()));
        }
        if self.reports.is_empty() {
            parts.push(paint("no report was written", Tone::Warn, screen.colours));
        }
        parts.push(format!("\n{}", render::ledger::ledger(screen, &self.ledger)));
        parts.push(format!("{} recorded", units::counted(self.events, "event", "events")));
        parts.push(format!("\n{}\n{}", bold("Next:", screen.colours), self.next(context)));
        format!("\n{}", parts.join("\n"))
    }

    /// Commands to try, with the ids of this demo in them.
    fn next(&self, context: &Context) -> String {
        let (program, data) = (quoted(Path::new(program())), context.place_options());
        let mut commands = vec![
            (format!("{program} events{data}"), "what happened, in order"),
            (format!("{program} ledger{data}"), "what was delegated, and what came of it"),
        ];
        let capped = self.ledger.iter().find(|one| one.stop_reason.is_some());
        let why = match capped {
            Some(_) => "the delegation that was stopped early, step by step",
            None => "one delegation, step by step",
        };
        if let Some(task) = capped.or(self.ledger.first()) {
            commands.push((format!("{program} card{data} {}", quoted(Path::new(&task.task_id))), why));
        }
        commands.push((format!("{program} serve{data}"), "the same over HTTP, and then:"));
        let lines = explained(context.output.screen, &commands);
        let curl = format!("  curl http://127.0.0.1:8700/api/threads/{}/delegations", self.run.thread_id);
        lines.into_iter().chain([curl]).collect::<Vec<_>>().join("\n")
    }
}

/// Commands with what they are for: beside them, or above where the screen is too narrow for that.
fn explained(screen: Screen, commands: &[(String, &str)]) -> Vec<String> {
    let longest = |chars: fn(&(String, &str)) -> usize| commands.iter().map(chars).max().unwrap_or(0);
    let width = longest(|(command, _)| command.chars().count());
    let whole = width + longest(|(_, why)| why.chars().count()) + "    # ".len();
    let is_wide = screen.width.is_none_or(|width| whole <= usize::from(width));
    let line = |(command, why): &(String, &str)| {
        let why = paint(&format!("# {why}"), Tone::Dim, screen.colours);
        if is_wide { format!("  {command:<width$}  {why}") } else { format!("  {why}\n  {command}") }
    };
    commands.iter().map(line).collect()
}

/// The files that the demo's agents left for the person.
fn outputs(data: &Path, thread_id: &ThreadId) -> anyhow::Result<Vec<PathBuf>> {
    let folders = ThreadFolders::create(data, thread_id).context("could not open the thread's folders")?;
    let entries = std::fs::read_dir(&folders.outputs).context("could not list the thread's outputs")?;
    let mut files: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_explained_where_there_is_room() {
        let commands = [("remit events".to_owned(), "what happened"), ("remit serve".to_owned(), "the same")];
        let shown = |width| explained(Screen::plain(width), &commands).join("\n");
        assert_eq!(shown(Some(40)), "  remit events  # what happened\n  remit serve   # the same");
        assert_eq!(shown(Some(30)), "  # what happened\n  remit events\n  # the same\n  remit serve");
        assert_eq!(shown(None), shown(Some(40)));
    }
}
