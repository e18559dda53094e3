//! `remit events`.

use contracts::wire::event::EventRecord;
use domain::limits::EVENTS_PAGE_RANGE;

use crate::{
    args::EventsArguments,
    context::Context,
    failure::Exit,
    output::Output,
    render, select,
    source::{EventsPage, Source},
};

/// Prints the events of a thread or run, page by page, so that a long history needs little memory.
pub(super) async fn events(context: &Context, arguments: EventsArguments) -> anyhow::Result<Exit> {
    let source = Source::open(context).await?;
    let selected = select::select(&source, &arguments.selection, &context.output).await?;
    let task = match &arguments.task_id {
        Some(task) => Some(select::task_within(&source, &selected, task.as_str()).await?),
        None => None,
    };
    let page = EventsPage {
        thread_id: selected.thread_id,
        run_id: selected.run_id,
        task,
        event_types: arguments.event_types,
        after_seq: arguments.after_seq,
        limit: 0,
    };
    print_all(&context.output, &source, page, arguments.limit.unwrap_or(usize::MAX)).await?;
    source.close().await;
    Ok(Exit::Done)
}

async fn print_all(
    output: &Output,
    source: &Source,
    mut page: EventsPage,
    mut left: usize,
) -> anyhow::Result<()> {
    let mut printer = Printer { output, printed: 0 };
    printer.begin()?;
    while left > 0 {
        page.limit = left.min(*EVENTS_PAGE_RANGE.end() as usize);
        let records = source.events(&page).await?;
        printer.print(&records)?;
        left -= records.len().min(left);
        match records.last() {
            Some(last) if records.len() == page.limit => page.after_seq = last.seq,
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
