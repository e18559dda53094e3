//! `remit restore`.

use anyhow::Context as _;
use eventlog::{Options, backup};

use crate::{
    args::RestoreArguments,
    context::Context,
    failure::Exit,
    render::{self, verify::Verified},
    work_bar::WorkBar,
};

/// Makes a new data folder of a backup.
pub(super) async fn restore(context: &Context, arguments: RestoreArguments) -> anyhow::Result<Exit> {
    context.here_only("restore")?;
    let data = context.config(Vec::new())?.config.log.path;
    let mut bar = WorkBar::new("restoring", context.output.messages);
    let (from, to) = (arguments.backup.clone(), data.clone());
    let task = tokio::task::spawn_blocking(move || {
        let report = backup::restore(&from, &to, &Options::default(), &mut |progress| bar.show(progress))?;
        Ok::<_, backup::BackupError>(Verified { report, took: bar.elapsed() })
    });
    let restored = task
        .await
        .context("restoring stopped by a defect")?
        .with_context(|| format!("could not restore {} to {}", arguments.backup.display(), data.display()))?;
    if context.output.json {
        context.output.value(&restored.record())?;
    } else {
        context.output.text(&render::verify::verified(context.output.screen, &restored))?;
    }
    context.output.note(&format!("restored to {}", data.display()));
    Ok(Exit::Done)
}
