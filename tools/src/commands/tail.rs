//! `remit tail`.

use anyhow::Context as _;
use contracts::wire::event::EventRecord;
use domain::ids::DelegationId;
use eventlog::{EventLog, Position, RecordedEvent};
use futures::future::BoxFuture;
use reqwest::Response;

use crate::{
    args::{Selection, TailArguments},
    context::Context,
    failure::{Exit, Failure},
    interrupt::Interrupts,
    output::Output,
    render, select,
    source::{Server, Source, record},
    sse_client::{self, Heard, SseClient, field},
};

/// Events that are read at once from a folder.
const PAGE: usize = 256;

/// Prints events as they are recorded, until Ctrl-C.
pub(super) async fn tail(context: &Context, arguments: TailArguments) -> anyhow::Result<Exit> {
    let source = Source::open(context).await?;
    let wanted = Wanted::new(&source, arguments, &context.output).await?;
    let mut printer = Printer { output: &context.output, printed: 0 };
    match source {
        Source::Server(server) => follow(server, &wanted, &mut printer).await?,
        Source::Folder(folder) => {
            print_all(folder.log(), &wanted, &mut printer)?;
            let note = "this is all: nothing is recorded while this command has the folder; --server follows a server";
            context.output.note(note);
            Source::Folder(folder).close().await;
        }
    }
    Ok(Exit::Done)
}

/// Which events are wanted, by whole ids.
struct Wanted {
    thread_id: Option<String>,
    run_id: Option<String>,
    task_id: Option<String>,
    event_types: Option<Vec<String>>,
    after_position: Option<u64>,
}

impl Wanted {
    async fn new(source: &Source, arguments: TailArguments, output: &Output) -> anyhow::Result<Self> {
        let TailArguments { thread, run, task_id, event_types, after_position } = arguments;
        let (thread_id, run_id) = match (&thread, &run) {
            (None, None) => (None, None),
            (Some(_) | None, Some(_) | None) => {
                let selected = select::select(source, &Selection { thread, run }, output).await?;
                (Some(selected.thread_id), selected.run_id)
            }
        };
        let task_id = task_id.map(|task_id| task_id.to_string());
        Ok(Self { thread_id, run_id, task_id, event_types, after_position })
    }

    fn query(&self) -> Vec<(&'static str, String)> {
        let after = self.after_position.map_or_else(|| "head".to_owned(), |position| position.to_string());
        let mut query = vec![("after_position", after)];
        query.extend(self.thread_id.clone().map(|id| ("thread_id", id)));
        query.extend(self.run_id.clone().map(|id| ("run_id", id)));
        query.extend(self.task_id.clone().map(|id| ("task_id", id)));
        query.extend(self.event_types.as_ref().map(|types| ("event_types", types.join(","))));
        query
    }

    /// The same filter as the server's.
    fn admits(&self, event: &RecordedEvent) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let scope = &event.scope;
        let ours = scope.delegation_id.as_ref().map(DelegationId::to_string);
        !event.is_erased()
            && is(&self.thread_id, event.stream.thread_id().map(|id| id.as_str()))
            && is(&self.run_id, scope.run_id.as_ref().map(|id| id.as_str()))
            && (is(&self.task_id, scope.task_id.as_ref().map(|id| id.as_str()))
                || is(&self.task_id, ours.as_deref()))
            && self.event_types.as_ref().is_none_or(|types| types.contains(&event.event_type))
    }
}

fn print_all(log: &EventLog, wanted: &Wanted, printer: &mut Printer<'_>) -> anyhow::Result<()> {
    let mut after = Position::new(wanted.after_position.unwrap_or(0));
    loop {
        let page = log.read_all(after, PAGE).context("could not read the log")?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.position;
        for event in page.iter().filter(|event| wanted.admits(event)) {
            printer.print(&record(event)?)?;
        }
    }
}

async fn follow(server: Server, wanted: &Wanted, printer: &mut Printer<'_>) -> anyhow::Result<()> {
    let mut interrupts = Interrupts::new().context("could not listen for Ctrl-C")?;
    let (address, query) = (server.address().to_owned(), wanted.query());
    let connect = move |last_id: Option<String>| -> BoxFuture<'static, anyhow::Result<Response>> {
        let (server, query) = (server.clone(), query.clone());
        Box::pin(async move { server.follow(&["events"], &query, last_id.as_deref()).await })
    };
    let mut client = SseClient::new(&address, None, Box::new(connect));
    loop {
        let heard = tokio::select! {
            biased;
            () = interrupts.next() => return Ok(()),
            heard = client.next() => heard?,
        };
        match heard {
            Heard::Notice(notice) => printer.output.note(&notice),
            Heard::Frame(frame) => printer.print_frame(&frame)?,
            Heard::GaveUp => return Err(Failure::new(Exit::Failed, "lost the server").into()),
        }
    }
}

struct Printer<'a> {
    output: &'a Output,
    printed: usize,
}

impl Printer<'_> {
    fn print_frame(&mut self, frame: &str) -> anyhow::Result<()> {
        let (name, data) = (field(frame, "event:"), field(frame, "data:"));
        match (name, data) {
            (Some("metadata"), _) => {
                let position = field(frame, "id:").unwrap_or_default();
                if self.printed == 0 {
                    self.output.note(&format!("following from position {position} on; Ctrl-C ends"));
                }
                Ok(())
            }
            (Some("error"), Some(data)) => {
                let refusal = sse_client::refusal(data);
                // Damage is there the next time, too.
                if refusal.exit == Exit::Integrity {
                    return Err(refusal.into());
                }
                self.output.warn(&refusal.to_string());
                Ok(())
            }
            (Some(_), Some(data)) => {
                let record: EventRecord = serde_json::from_str(data)
                    .context("the server sent an event that this version of remit does not understand")?;
                self.print(&record)
            }
            // A heartbeat.
            (Some(_) | None, _) => Ok(()),
        }
    }

    fn print(&mut self, record: &EventRecord) -> anyhow::Result<()> {
        let is_first = self.printed == 0;
        self.printed += 1;
        if self.output.json {
            return self.output.value(record);
        }
        self.output.text(&render::tail::line(self.output.screen, record, is_first))
    }
}
