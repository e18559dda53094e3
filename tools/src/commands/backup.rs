//! `remit backup`.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use contracts::wire::upkeep::CreateBackup;
use eventlog::backup::{BackupRequest, Manifest, MasterKeyPlace, THREADS_FOLDER};
use jiff::Timestamp;

use crate::{
    args::BackupArguments,
    context::{Context, existing_data_folder},
    failure::{Exit, Failure},
    render,
    source::{Server, open_log},
    work_bar::WorkBar,
};

/// Copies the log, its keys and the files of threads into a new folder.
pub(super) async fn backup(context: &Context, arguments: BackupArguments) -> anyhow::Result<Exit> {
    let (folder, manifest) = match &context.global.server {
        Some(url) => on_server(context, &Server::new(url)?, &arguments).await?,
        None => here(context, &arguments).await?,
    };
    if context.output.json {
        context.output.value(&manifest)?;
    } else {
        context.output.text(&render::backup::backup(context.output.screen, &folder, &manifest))?;
    }
    warn(context, &manifest);
    Ok(Exit::Done)
}

fn warn(context: &Context, manifest: &Manifest) {
    if manifest.master_key == MasterKeyPlace::Included {
        context
            .output
            .warn("the master key is in the backup: whoever can read the backup can read what is in it");
    }
    let left_out = manifest.threads.as_ref().map_or(0, |threads| threads.left_out);
    if left_out > 0 {
        let what = "of what is in the folders of threads is not in the backup: sockets, devices, or what may not be read";
        context.output.warn(&format!("{left_out} {what}"));
    }
}

/// Opens the data folder, which nobody else may have open.
async fn here(context: &Context, arguments: &BackupArguments) -> anyhow::Result<(PathBuf, Manifest)> {
    let config = context.config(Vec::new())?.config;
    let data = existing_data_folder(&config)?;
    let log = open_log(&config).await?;
    let mut bar = WorkBar::new("backing up", context.output.messages);
    let (copied, out) = (log.clone(), arguments.out.clone());
    let threads = (!arguments.without_files).then(|| data.join(THREADS_FOLDER));
    let task = tokio::task::spawn_blocking(move || {
        let mut progress = |progress| {
            bar.show(progress);
            ControlFlow::Continue(())
        };
        let (taken_at, threads) = (Timestamp::now(), threads.as_deref());
        copied.back_up(&out, BackupRequest { taken_at, threads, progress: &mut progress })
    });
    let manifest = task
        .await
        .context("the backup stopped by a defect")?
        .with_context(|| format!("could not back up {} to {}", data.display(), arguments.out.display()))?;
    log.close().await;
    Ok((arguments.out.clone(), manifest))
}

/// Has a server do it, in its own folder for backups.
async fn on_server(
    context: &Context,
    server: &Server,
    arguments: &BackupArguments,
) -> anyhow::Result<(PathBuf, Manifest)> {
    let name = plain_name(&arguments.out, "a backup")?;
    let order = CreateBackup { name: Some(name), threads: Some(!arguments.without_files) };
    let mut bar = WorkBar::new("backing up", context.output.messages);
    let done = server.back_up(&order, &mut |progress| bar.show(progress)).await?;
    let manifest = done.manifest.context("the server does not say what is in the backup")?;
    let manifest = serde_json::from_value(manifest)
        .context("the server made a backup that this version of remit does not understand")?;
    Ok((PathBuf::from(done.path), manifest))
}

/// A server puts backups into a folder that its owner chose, so that nobody can have it write
/// elsewhere.
pub(super) fn plain_name(out: &Path, what: &str) -> anyhow::Result<String> {
    let name = out.to_str().filter(|name| !name.contains('/'));
    let refusal = || {
        let shown = out.display();
        let refusal = Failure::usage(format!("with --server, --out names {what}, and {shown} is a path"));
        refusal.hint("the server puts it into the folder that its configuration names: server.backups")
    };
    Ok(name.ok_or_else(refusal)?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::exit_of;

    #[test]
    fn a_server_is_told_names_and_no_paths() {
        assert_eq!(plain_name(Path::new("monday"), "a backup").unwrap(), "monday");
        for path in ["/backups/monday", "./monday", "a/b"] {
            assert_eq!(exit_of(&plain_name(Path::new(path), "a backup").unwrap_err()), Exit::Usage, "{path}");
        }
    }
}
