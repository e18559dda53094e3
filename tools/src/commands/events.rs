//! `remit events`.

use contracts::wire::event::EventRecord;
use domain::limits::EVENTS_PAGE_RANGE;
use runtime::config::nearest;

use crate::{
    args::EventsArguments,
    context::Context,
    failure::Exit,
    output::Output,
    render::{self, printable},
    select,
    source::{EventsPage, Source},
};

/// Prints the events of a thread or run, page by page, so that a long history needs little memory.
pub(super) async fn events(context: &Context, arguments: EventsArguments) -> anyhow::Result<Exit> {
    let source = Source::open(context).await?;
    let selected = select::select(&source, &arguments.selection, &context.output).await?;
    let task = match &arguments.task_id {
        Some(task) => Some(select::task_within(&source, &selected, task.as_str(), &context.output).await?),
        None => None,
    };
    for unknown in unknown_types(&source, &selected.thread_id, arguments.event_types.as_deref()).await? {
        context.output.warn(&unknown);
    }
    let page = EventsPage {
        thread_id: selected.thread_id,
        run_id: selected.run_id,
        task,
        event_types: arguments.event_types,
        after_seq: arguments.after_seq,
        limit: 0,
    };
    let until = arguments.as_of.unwrap_or(u64::MAX);
    print_all(&context.output, &source, page, arguments.limit.unwrap_or(usize::MAX), until).await?;
    source.close().await;
    Ok(Exit::Done)
}

/// What a person is told about types that neither this version nor this thread knows. An extension
/// may record types of its own, so they are no mistake by themselves.
async fn unknown_types(
    source: &Source,
    thread_id: &str,
    wanted: Option<&[String]>,
) -> anyhow::Result<Vec<String>> {
    let contract = contracts::run_event_stream();
    let known: Vec<&str> = contract.types().map(|(name, _)| name).collect();
    let mut hints = Vec::new();
    for name in wanted.unwrap_or_default().iter().filter(|name| !known.contains(&name.as_str())) {
        let page = EventsPage {
            thread_id: thread_id.to_owned(),
            run_id: None,
            task: None,
            event_types: Some(vec![name.clone()]),
            after_seq: 0,
            limit: 1,
        };
        if source.events(&page).await?.is_empty() {
            hints.push(unknown_type(name, &known, &source.suggested("events")));
        }
    }
    Ok(hints)
}

fn unknown_type(name: &str, known: &[&str], all_events: &str) -> String {
    let name = printable::line(name);
    let hint = match nearest(&name, known) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("{all_events} shows the types that are there"),
    };
    format!("no event type {name:?} is known, here or to this version; {hint}")
}

async fn print_all(
    output: &Output,
    source: &Source,
    mut page: EventsPage,
    mut left: usize,
    until: u64,
) -> anyhow::Result<()> {
    let mut printer = Printer { output, printed: 0 };
    printer.begin()?;
    while left > 0 {
        page.limit = left.min(*EVENTS_PAGE_RANGE.end() as usize);
        let records = source.events(&page).await?;
        // What an event says never changes, so that an earlier moment is the same list cut short.
        let wanted = records.get(..records.partition_point(|record| record.seq <= until)).unwrap_or_default();
        printer.print(wanted)?;
        left -= wanted.len().min(left);
        match wanted.last() {
            Some(last) if wanted.len() == page.limit => page.after_seq = last.seq,
            Some(_) | None => break,
        }
    }
    printer.end()
}

/// Prints pages as one table, or as one JSON array.
struct Printer<'a> {
    output: &'a Output,
    printed: usize,
}

impl Printer<'_> {
    fn begin(&self) -> anyhow::Result<()> {
        if self.output.json { self.output.raw("[") } else { Ok(()) }
    }

    fn print(&mut self, records: &[EventRecord]) -> anyhow::Result<()> {
        if self.output.json {
            let mut text = String::new();
            for record in records {
                if self.printed > 0 || !text.is_empty() {
                    text.push(',');
                }
                text.push_str(&serde_json::to_string(record)?);
            }
            self.output.raw(&text)?;
        } else if !records.is_empty() {
            self.output.text(&render::events::page(self.output.screen, records, self.printed == 0))?;
        }
        self.printed += records.len();
        Ok(())
    }

    fn end(&self) -> anyhow::Result<()> {
        if self.output.json {
            return self.output.raw("]\n");
        }
        if self.printed == 0 {
            self.output.note("no such events");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_type_names_what_was_meant() {
        let contract = contracts::run_event_stream();
        let known: Vec<&str> = contract.types().map(|(name, _)| name).collect();
        for (name, expected) in [
            ("subagent.stat", "did you mean subagent.start?"),
            ("runend", "did you mean run.end?"),
            ("nope", "`remit events` shows the types that are there"),
        ] {
            let text = unknown_type(name, &known, "`remit events`");
            assert!(text.starts_with(&format!("no event type {name:?} is known")), "{text}");
            assert!(text.ends_with(expected), "{text}");
        }
    }
}
