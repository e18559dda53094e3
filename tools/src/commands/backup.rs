//! `remit backup`.

use anyhow::Context as _;
use eventlog::backup::{Manifest, MasterKeyPlace};
use jiff::Timestamp;

use crate::{
    args::BackupArguments,
    context::{Context, existing_data_folder},
    failure::Exit,
    render,
    source::open_log,
    work_bar::WorkBar,
};

/// Copies the log and its keys into a new folder.
pub(super) async fn backup(context: &Context, arguments: BackupArguments) -> anyhow::Result<Exit> {
    context.here_only("backup")?;
    let config = context.config(Vec::new())?.config;
    let data = existing_data_folder(&config)?;
    let log = open_log(&config).await?;
    let mut bar = WorkBar::new("backing up", context.output.messages);
    let (copied, out) = (log.clone(), arguments.out.clone());
    let task = tokio::task::spawn_blocking(move || {
        copied.back_up(&out, Timestamp::now(), &mut |progress| bar.show(progress))
    });
    let manifest: Manifest = task
        .await
        .context("the backup stopped by a defect")?
        .with_context(|| format!("could not back up {} to {}", data.display(), arguments.out.display()))?;
    log.close().await;
    if context.output.json {
        context.output.value(&manifest)?;
    } else {
        context.output.text(&render::backup::backup(context.output.screen, &arguments.out, &manifest))?;
    }
    if manifest.master_key == MasterKeyPlace::Included {
        context
            .output
            .warn("the master key is in the backup: whoever can read the backup can read what is in it");
    }
    Ok(Exit::Done)
}
