//! `remit card --replay`.

use anyhow::Context as _;
use api::records;
use contracts::wire::card::Card;
use domain::ids::{RunId, ThreadId};
use eventlog::{EventLog, Position};
use futures::future::BoxFuture;
use projections::{CardReplay, Pace, TaskRef};
use reqwest::Response;
use tokio::time::Instant;

use crate::{
    context::Context,
    failure::{Exit, Failure},
    interrupt::Interrupts,
    output::Output,
    render::{self, replay::Redraw},
    select::SelectedTask,
    source::{Server, Source},
    sse_client::{self, Heard, SseClient, field},
};

/// Shows the states of a card as they happened, until its end or Ctrl-C.
pub(super) async fn replay(
    context: &Context,
    source: Source,
    task: &SelectedTask,
    pace: Pace,
) -> anyhow::Result<Exit> {
    let mut screen = Shown { output: &context.output, redraw: Redraw::default() };
    let mut interrupts = Interrupts::new().context("could not listen for Ctrl-C")?;
    let shown = async {
        match &source {
            Source::Folder(folder) => recorded(folder.log(), task, pace, &mut screen).await,
            Source::Server(server) => remote(server, task, pace, &mut screen).await,
        }
    };
    tokio::select! {
        biased;
        () = interrupts.next() => {}
        shown = shown => shown?,
    }
    source.close().await;
    Ok(Exit::Done)
}

/// What a folder has: nobody records while this process holds it.
async fn recorded(
    log: &EventLog,
    task: &SelectedTask,
    pace: Pace,
    screen: &mut Shown<'_>,
) -> anyhow::Result<()> {
    let (thread_id, run_id): (ThreadId, RunId) = (task.thread_id.parse()?, task.run_id.parse()?);
    let wanted = TaskRef::DelegationId(task.delegation_id.parse()?);
    let replay = CardReplay::open(log, thread_id, run_id, &wanted, Position::ZERO);
    let replay = replay.context("could not read the card")?;
    let mut replay =
        replay.ok_or_else(|| Failure::not_found(format!("no delegation {}", task.delegation_id)))?;
    let mut began = None;
    while let Some(state) = replay.next_recorded().context("could not read the card")? {
        let (start, from) = *began.get_or_insert((Instant::now(), state.at));
        tokio::time::sleep_until(start + pace.between(from, state.at)).await;
        screen.show(&records::card(state.card))?;
    }
    Ok(())
}

async fn remote(
    server: &Server,
    task: &SelectedTask,
    pace: Pace,
    screen: &mut Shown<'_>,
) -> anyhow::Result<()> {
    let (followed, task) = (server.clone(), task.clone());
    let speed = match pace {
        Pace::AtOnce => "max".to_owned(),
        Pace::Times(speed) => speed.to_string(),
    };
    let connect = move |last_id: Option<String>| -> BoxFuture<'static, anyhow::Result<Response>> {
        let (server, task, speed) = (followed.clone(), task.clone(), speed.clone());
        Box::pin(async move {
            let SelectedTask { thread_id, run_id, delegation_id } = &task;
            let path = ["threads", thread_id, "runs", run_id, "tasks", delegation_id, "card", "replay"];
            server.follow(&path, &[("speed", speed)], last_id.as_deref()).await
        })
    };
    let mut client = SseClient::new(server.address(), None, Box::new(connect));
    loop {
        match client.next().await? {
            Heard::Notice(notice) => screen.output.note(&notice),
            Heard::GaveUp => return Err(Failure::new(Exit::Failed, "lost the server").into()),
            Heard::Frame(frame) => match (field(&frame, "event:"), field(&frame, "data:")) {
                (Some("card"), Some(data)) => {
                    let card: Card = serde_json::from_str(data)
                        .context("the server sent a card that this version of remit does not understand")?;
                    screen.show(&card)?;
                }
                (Some("end"), _) => return Ok(()),
                (Some("error"), Some(data)) => return Err(sse_client::refusal(data).into()),
                (Some(_) | None, _) => {}
            },
        }
    }
}

struct Shown<'a> {
    output: &'a Output,
    redraw: Redraw,
}

impl Shown<'_> {
    fn show(&mut self, card: &Card) -> anyhow::Result<()> {
        if self.output.json {
            return self.output.value(card);
        }
        let text = render::card::card(self.output.screen, card);
        self.output.raw(&self.redraw.next(self.output.screen, &format!("seq {}", card.seq), &text))
    }
}
