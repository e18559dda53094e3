//! `remit messages`.

use contracts::wire::event::EventRecord;

use crate::{
    args::MessagesArguments,
    context::Context,
    failure::Exit,
    render,
    select::{self, Selected},
    source::{
        Source,
        lists::{Feed, LIST_PAGE, MessagesPage},
    },
};

/// Prints what was said on a thread or in a run.
pub(super) async fn messages(context: &Context, arguments: &MessagesArguments) -> anyhow::Result<Exit> {
    let source = Source::open(context).await?;
    let selected = select::select(&source, &arguments.selection, &context.output).await?;
    let messages = read(&source, selected, arguments).await?;
    if context.output.json {
        context.output.value(&messages)?;
    } else {
        context.output.text(&render::messages::messages(context.output.screen, &messages))?;
    }
    source.close().await;
    Ok(Exit::Done)
}

/// Reads from the end backward, as far as is asked for.
async fn read(
    source: &Source,
    selected: Selected,
    arguments: &MessagesArguments,
) -> anyhow::Result<Vec<EventRecord>> {
    let limit = arguments.limit.unwrap_or(usize::MAX);
    // With a cursor the first ones after it are wanted, and how many there are is not known before.
    let is_forward = arguments.after_seq > 0;
    let enough = if is_forward { usize::MAX } else { limit };
    let feed = match (selected.run_id, arguments.all) {
        (Some(run_id), _) => Feed::OfRun(run_id),
        (None, true) => Feed::Whole,
        (None, false) => Feed::Visible,
    };
    let mut page =
        MessagesPage { thread_id: selected.thread_id, feed, before: None, as_of: arguments.as_of, limit: 0 };
    let mut messages: Vec<EventRecord> = Vec::new();
    while messages.len() < enough {
        page.limit = (enough - messages.len()).min(LIST_PAGE);
        let (mut earlier, has_more) = source.messages(&page).await?;
        page.before = earlier.first().map(|first| first.seq);
        earlier.retain(|message| message.seq > arguments.after_seq);
        // Newest first while there is more to come.
        messages.extend(earlier.into_iter().rev());
        if !has_more || page.before.is_none_or(|seq| seq <= arguments.after_seq) {
            break;
        }
    }
    messages.reverse();
    messages.truncate(limit);
    Ok(messages)
}
