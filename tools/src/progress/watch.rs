//! Watches a run to its end: shows what it does, and cancels it when the person asks.

use std::time::Duration;

use anyhow::Context as _;
use domain::event::Logged;
use jiff::Timestamp;
use tokio::time::{MissedTickBehavior, interval};

use super::{Progress, screen_lines::ScreenLines};
use crate::{
    failure::{Exit, Failure},
    interrupt::Interrupts,
    output::Output,
};

/// How often running times are brought up to date: often enough for a tenth of a second to move.
const TICK: Duration = Duration::from_millis(100);

/// What is seen of a run.
pub(crate) enum Seen {
    /// An event of its thread.
    Event(Box<Logged>),
    /// Something about the watching itself that the person should know.
    Notice(String),
}

/// A run that somebody watches.
pub(crate) trait Watched {
    /// What is seen next; none when there will be no more. A call that is cancelled loses nothing.
    async fn next(&mut self) -> anyhow::Result<Option<Seen>>;

    /// Asks for the run's end. It still comes as an event.
    async fn cancel(&mut self) -> anyhow::Result<()>;
}

/// Watches until the run has ended. The first interrupt cancels the run, the second gives up.
pub(crate) async fn watch(
    watched: &mut impl Watched,
    mut progress: Progress,
    output: &Output,
) -> anyhow::Result<Progress> {
    let mut lines = ScreenLines::new(output.messages);
    let mut interrupts = Interrupts::new().context("could not listen for Ctrl-C")?;
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_cancelled = false;
    while progress.ending().is_none() {
        tokio::select! {
            seen = watched.next() => {
                let event = match seen {
                    Ok(Some(Seen::Event(event))) => event,
                    Ok(Some(Seen::Notice(notice))) => {
                        lines.message(&notice);
                        continue;
                    }
                    Ok(None) => {
                        lines.finish();
                        let stopped = "the events stopped before the run had ended";
                        return Err(Failure::new(Exit::Failed, stopped).into());
                    }
                    Err(error) => {
                        lines.finish();
                        return Err(error);
                    }
                };
                let changed = progress.take(&event);
                if let Some(line) = lines.show(&progress, changed, Timestamp::now()) {
                    output.message(&line);
                }
            }
            _ = ticks.tick() => lines.tick(&progress, Timestamp::now()),
            () = interrupts.next() => {
                if is_cancelled {
                    lines.finish();
                    return Err(Failure::new(Exit::Failed, "gave up on the run before it had ended").into());
                }
                is_cancelled = true;
                lines.message("cancelling the run; press Ctrl-C again to quit at once");
                watched.cancel().await?;
            }
        }
    }
    lines.finish();
    Ok(progress)
}

#[cfg(test)]
mod tests {
    use domain::{event::RunStatus, ids::RunId};

    use super::*;
    use crate::{failure::exit_of, progress::tests::status, screen::Screen};

    /// Events that come one after the other, and then no more.
    struct Listed(Vec<Logged>);

    impl Watched for Listed {
        async fn next(&mut self) -> anyhow::Result<Option<Seen>> {
            Ok(self.0.pop().map(|event| Seen::Event(Box::new(event))))
        }

        async fn cancel(&mut self) -> anyhow::Result<()> {
            Ok(())
        }
    }

    async fn watched(mut events: Vec<Logged>) -> anyhow::Result<Progress> {
        events.reverse();
        let screen = Screen::plain(None);
        let output = Output { json: true, screen, messages: screen };
        watch(&mut Listed(events), Progress::new(RunId::new("r").unwrap()), &output).await
    }

    #[tokio::test]
    async fn watching_ends_with_the_run() {
        let events =
            vec![status(1, RunStatus::Running), status(2, RunStatus::Error), status(3, RunStatus::Success)];
        let progress = watched(events).await.unwrap();
        assert_eq!(progress.ending().map(|ending| ending.status), Some(RunStatus::Error));
    }

    #[tokio::test]
    async fn events_that_stop_too_early_are_a_failure() {
        let error = watched(vec![status(1, RunStatus::Running)]).await.unwrap_err();
        assert_eq!(exit_of(&error), Exit::Failed);
        assert_eq!(error.to_string(), "the events stopped before the run had ended");
    }
}
