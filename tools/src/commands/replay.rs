//! `remit replay`.

mod check;
mod walk;

use std::io;

use anyhow::Context as _;

use self::walk::Walk;
use crate::{
    args::ReplayArguments,
    context::Context,
    failure::{Exit, Failure},
    output::Output,
    render::{self, replay::Redraw},
    select,
    source::Source,
};

/// Folds what was recorded and shows it, or checks that it can be made again.
pub(super) async fn replay(context: &Context, arguments: &ReplayArguments) -> anyhow::Result<Exit> {
    let source = Source::open(context).await?;
    let outcome = if arguments.check {
        check::check(&source, &arguments.selection, &context.output).await
    } else {
        show(&source, arguments, &context.output).await.map(|()| Exit::Done)
    };
    source.close().await;
    outcome
}

async fn show(source: &Source, arguments: &ReplayArguments, output: &Output) -> anyhow::Result<()> {
    let selected = select::select(source, &arguments.selection, output).await?;
    let task = match &arguments.task_id {
        Some(task) => Some(select::task_within(source, &selected, task.as_str(), output).await?),
        None => None,
    };
    let mut walk = Walk::new(source, selected.thread_id, selected.run_id, task);
    if arguments.step && output.json {
        return all(&mut walk, arguments.seq, output).await;
    }
    if arguments.step {
        return step(&mut walk, arguments.seq.unwrap_or(1), output).await;
    }
    let last = walk.forward_to(arguments.seq.unwrap_or(u64::MAX)).await?;
    if let Some(seq) = arguments.seq
        && walk.tail().await? < seq
    {
        return Err(still_to_come(seq).into());
    }
    if last.is_none() {
        return Err(Failure::not_found("nothing was recorded of it up to there").into());
    }
    let state = walk.state();
    if output.json {
        output.value(&state)
    } else {
        output.text(&render::replay::state(output.screen, &state))
    }
}

fn still_to_come(seq: u64) -> Failure {
    let hint = "--seq takes the seq of an event; leave it out to fold everything";
    Failure::new(Exit::Refused, format!("the thread has not yet come to seq {seq}")).hint(hint)
}

/// Every state, one on each line.
async fn all(walk: &mut Walk<'_>, from: Option<u64>, output: &Output) -> anyhow::Result<()> {
    while let Some(record) = walk.next().await? {
        if record.seq >= from.unwrap_or(0) {
            output.value(&walk.state())?;
        }
    }
    Ok(())
}

/// One state after the other, as the person asks for them.
async fn step(walk: &mut Walk<'_>, first: u64, output: &Output) -> anyhow::Result<()> {
    let mut redraw = Redraw::default();
    let mut shown = walk.forward_to_at_least(first).await?;
    loop {
        let Some(record) = shown else {
            output.note("this was the last event");
            return Ok(());
        };
        let state = walk.state();
        let event = render::replay::event(output.screen, &record);
        let text = format!("{event}\n\n{}", render::replay::state(output.screen, &state));
        output.raw(&redraw.next(output.screen, &format!("seq {}", state.seq), &text))?;
        output.note("Enter: next, b: back, a number: to that seq, q: end");
        shown = match ask().await? {
            Wish::Next => walk.next().await?,
            Wish::Back => walk.back().await?,
            Wish::To(seq) => walk.to(seq).await?,
            Wish::End => return Ok(()),
        };
    }
}

/// What the person wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Next,
    Back,
    To(u64),
    End,
}

/// The end of the input is a wish to end.
async fn ask() -> anyhow::Result<Wish> {
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|bytes| (bytes > 0).then_some(line))
    });
    let line = read.await.context("reading the answer stopped by a defect")?;
    Ok(line.context("could not read the answer")?.map_or(Wish::End, |line| wish(&line)))
}

fn wish(line: &str) -> Wish {
    match line.trim() {
        "b" | "back" => Wish::Back,
        "q" | "quit" => Wish::End,
        other => other.parse().map_or(Wish::Next, Wish::To),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_wish() {
        for (line, expected) in [
            ("\n", Wish::Next),
            ("n\n", Wish::Next),
            ("b\n", Wish::Back),
            ("  17 \n", Wish::To(17)),
            ("q", Wish::End),
        ] {
            assert_eq!(wish(line), expected, "{line:?}");
        }
    }
}
