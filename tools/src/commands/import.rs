//! `remit import`.

use anyhow::Context as _;
use eventlog::export::{ExportError, Import};
use runtime::config::MasterKeySource;

use crate::{
    args::ImportArguments,
    context::Context,
    failure::{Exit, Failure},
    opening::options_of,
    output::program,
    render::{self, verify::Verified},
    work_bar::WorkBar,
};

/// Makes a data folder of an export.
pub(super) async fn import(context: &Context, arguments: ImportArguments) -> anyhow::Result<Exit> {
    context.here_only("import")?;
    let config = context.config(Vec::new())?.config;
    let (data, has_key) = (config.log.path.clone(), arguments.master_key.is_some());
    if has_key && config.log.master_key != MasterKeySource::Generated {
        let refusal = Failure::usage("the configuration says where the master key comes from");
        return Err(refusal.hint("leave out --master-key, or log.master_key in the configuration").into());
    }
    let options = options_of(&config)?;
    let mut bar = WorkBar::new("importing", context.output.messages);
    let ImportArguments { export, master_key } = arguments;
    let (from, to) = (export.clone(), data.clone());
    let task = tokio::task::spawn_blocking(move || {
        let progress = &mut |progress| bar.show(progress);
        let import = Import { export: &from, data: &to, master_key, options: &options, progress };
        eventlog::export::import(import).map(|report| Verified { report, took: bar.elapsed() })
    });
    let imported = task.await.context("the import stopped by a defect")?.map_err(|error| {
        let what = format!("could not import {} into {}", export.display(), data.display());
        if has_key || !matches!(error, ExportError::Keys(_)) {
            return anyhow::Error::new(error).context(what);
        }
        let hint = "--master-key FILE names the master key of the log that was exported: keys/master.key in its folder";
        anyhow::Error::new(error).context(Failure::new(Exit::Refused, what).hint(hint))
    })?;
    if context.output.json {
        context.output.value(&imported.record())?;
    } else {
        context.output.text(&render::verify::verified(context.output.screen, &imported.record()))?;
        context.output.note(&format!(
            "`{} threads --data {}` shows what is in it",
            program(),
            data.display()
        ));
    }
    Ok(Exit::Done)
}
