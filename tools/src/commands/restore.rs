//! `remit restore`.

use anyhow::Context as _;
use eventlog::backup;

use crate::{
    args::RestoreArguments,
    context::Context,
    failure::Exit,
    opening::options_of,
    render::{self, verify::Verified},
    work_bar::WorkBar,
};

/// Makes a new data folder of a backup.
pub(super) async fn restore(context: &Context, arguments: RestoreArguments) -> anyhow::Result<Exit> {
    context.here_only("restore")?;
    let config = context.config(Vec::new())?.config;
    let (data, options) = (config.log.path.clone(), options_of(&config)?);
    let mut bar = WorkBar::new("restoring", context.output.messages);
    let (from, to) = (arguments.backup.clone(), data.clone());
    let task = tokio::task::spawn_blocking(move || {
        let report = backup::restore(&from, &to, &options, &mut |progress| bar.show(progress))?;
        Ok::<_, backup::BackupError>(Verified { report, took: bar.elapsed() })
    });
    let restored = task
        .await
        .context("restoring stopped by a defect")?
        .with_context(|| format!("could not restore {} to {}", arguments.backup.display(), data.display()))?;
    if context.output.json {
        context.output.value(&restored.record())?;
    } else {
        context.output.text(&render::verify::verified(context.output.screen, &restored.record()))?;
    }
    context.output.note(&format!("restored to {}", data.display()));
    Ok(Exit::Done)
}
