//! `remit rebuild`.

use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use api::records;
use contracts::wire::health::{LastRebuild, Rebuild};
use eventlog::{Position, Progress};
use projections::{Projections, RebuildError, RebuildRequest};

use crate::{
    args::RebuildArguments,
    context::{Context, existing_data_folder},
    failure::{Exit, Failure},
    render::{self, rebuild::Rebuilt},
    source::{Server, open_log},
    work_bar::WorkBar,
};

/// Between two looks at a rebuild of a server.
const LOOK_PAUSE: Duration = Duration::from_millis(200);

/// Makes views again, or compares them with what the log says.
pub(super) async fn rebuild(context: &Context, arguments: RebuildArguments) -> anyhow::Result<Exit> {
    let bar = WorkBar::new("rebuilding", context.output.messages);
    let request = RebuildRequest { view: arguments.name, check: arguments.check };
    let rebuilt = match &context.global.server {
        Some(url) => on_server(&Server::new(url)?, request, bar).await?,
        None => here(context, request, bar).await?,
    };
    tell(context, &rebuilt)
}

/// In the data folder, which nobody else has open meanwhile.
async fn here(context: &Context, request: RebuildRequest, mut bar: WorkBar) -> anyhow::Result<Rebuilt> {
    let config = context.config(Vec::new())?.config;
    let data = existing_data_folder(&config)?;
    let log = open_log(&config).await?;
    let projections =
        Projections::open(&data.join("views"), log.clone()).context("could not open the views")?;
    let made = tokio::task::spawn_blocking(move || -> anyhow::Result<Rebuilt> {
        let turn = projections.begin_rebuild(&request).map_err(refused)?;
        let views = turn.progress().views.clone();
        let started = Instant::now();
        let done = projections.finish_rebuild(turn, &mut |progress| {
            bar.show(Progress { position: progress.position, head: progress.head });
            ControlFlow::Continue(())
        });
        done.map_err(refused)?;
        let health = projections.health().context("could not read how the views are")?;
        let last = health.iter().find(|view| views.contains(&view.name));
        let last = last.and_then(|view| view.last_rebuild.as_ref()).map(records::last_rebuild);
        let ended = last.context("the rebuild left no note of its end")?;
        let views = views.into_iter().map(str::to_owned).collect();
        Ok(Rebuilt { views, ended, took: started.elapsed() })
    });
    let made = made.await.context("the rebuild stopped by a defect")?;
    log.close().await;
    made
}

fn refused(error: RebuildError) -> anyhow::Error {
    let exit = match &error {
        RebuildError::UnknownView { .. } => Exit::NotFound,
        RebuildError::Busy { .. } => Exit::Refused,
        RebuildError::CatchUp(_) | RebuildError::Rows(_) => Exit::Failed,
    };
    let failure = Failure::new(exit, "could not make the views again");
    anyhow::Error::new(error).context(failure)
}

/// Begins it on the server, and looks at it until it has ended.
async fn on_server(server: &Server, request: RebuildRequest, mut bar: WorkBar) -> anyhow::Result<Rebuilt> {
    let begun = server.rebuild(request.view.as_deref(), request.check).await?;
    let started = Instant::now();
    loop {
        match look(server, &begun).await? {
            Look::Running(now) => {
                bar.show(Progress { position: Position::new(now.position), head: Position::new(now.head) });
            }
            Look::Ended(ended) => return Ok(Rebuilt { views: begun.views, ended, took: started.elapsed() }),
            Look::Gone => {
                let failure = Failure::new(Exit::Failed, "the server was started anew meanwhile");
                return Err(failure.hint("what was made so far is kept: ask again").into());
            }
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}

enum Look {
    Running(Rebuild),
    Ended(LastRebuild),
    Gone,
}

async fn look(server: &Server, begun: &Rebuild) -> anyhow::Result<Look> {
    let views = server.views().await?;
    let Some(view) = views.into_iter().find(|view| begun.views.contains(&view.name)) else {
        return Ok(Look::Gone);
    };
    Ok(match (view.rebuild, view.last_rebuild) {
        (Some(now), _) if now.number == begun.number => Look::Running(now),
        (_, Some(ended)) if ended.number == begun.number => Look::Ended(ended),
        _ => Look::Gone,
    })
}

fn tell(context: &Context, rebuilt: &Rebuilt) -> anyhow::Result<Exit> {
    let output = &context.output;
    if output.json {
        output.value(&rebuilt.record())?;
    } else {
        output.text(&render::rebuild::rebuilt(output.screen, rebuilt))?;
    }
    Ok(match rebuilt.ended.outcome.as_str() {
        "replaced" | "same" => Exit::Done,
        "different" => Exit::Integrity,
        _ => Exit::Failed,
    })
}
