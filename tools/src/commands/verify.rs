//! `remit verify`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use contracts::wire::upkeep::{CreateVerification, DamageFound, VerificationReport};
use eventlog::{DamageKind, ExportedHead, Options, Report, VerifyRequest, backup, export, verify_folder};
use serde_json::json;

use crate::{
    args::VerifyArguments,
    context::{Context, existing_data_folder},
    failure::{Exit, Failure},
    opening::options_of,
    output::program,
    render::{self, verify::Verified},
    source::Server,
    work_bar::WorkBar,
};

/// What is verified.
enum Subject {
    /// A data folder that nobody has open.
    Data(PathBuf, Box<Options>),
    /// A backup.
    Backup(PathBuf),
}

/// Proves that a log is what was recorded, or names the first bad position.
pub(super) async fn verify(context: &Context, arguments: VerifyArguments) -> anyhow::Result<Exit> {
    let exported = arguments.against.as_deref().map(read_head).transpose()?;
    if let Some(url) = &context.global.server {
        return on_server(context, &Server::new(url)?, exported, &arguments).await;
    }
    if let Some(folder) = arguments.backup.as_ref().filter(|folder| export::is_export(folder)) {
        return super::verify_export::verify_export(context, folder, exported, &arguments).await;
    }
    let subject = match arguments.backup {
        Some(folder) => Subject::Backup(folder),
        None => {
            let config = context.config(Vec::new())?.config;
            Subject::Data(existing_data_folder(&config)?, Box::new(options_of(&config)?))
        }
    };
    let bar = WorkBar::new("verifying", context.output.messages);
    let task = tokio::task::spawn_blocking(move || subject.verify(exported, bar));
    let (subject, verified) = task.await.context("the verification stopped by a defect")??;
    print(context, &verified.record(), arguments.head)?;
    match &verified.report.damage {
        None => Ok(Exit::Done),
        // A program has the whole answer on standard output.
        Some(_) if context.output.json => Ok(Exit::Integrity),
        Some(damage) => {
            let what = format!("{} is damaged: {damage}", subject.shown());
            Err(Failure::new(Exit::Integrity, what).hint(subject.advice(&damage.kind)).into())
        }
    }
}

/// Has a server prove its own log, which it has open.
async fn on_server(
    context: &Context,
    server: &Server,
    exported: Option<ExportedHead>,
    arguments: &VerifyArguments,
) -> anyhow::Result<Exit> {
    if let Some(folder) = &arguments.backup {
        let refusal = Failure::usage(format!("{} is verified here, not by a server", folder.display()));
        return Err(refusal.hint("leave out --server").into());
    }
    let against =
        exported.map(serde_json::to_value).transpose().context("could not write the head as JSON")?;
    let mut bar = WorkBar::new("verifying", context.output.messages);
    let done = server.verify(&CreateVerification { against }, &mut |progress| bar.show(progress)).await?;
    let report = done.report.context("the server does not say what it found")?;
    print(context, &report, arguments.head)?;
    match &report.damage {
        None => Ok(Exit::Done),
        Some(_) if context.output.json => Ok(Exit::Integrity),
        Some(DamageFound { position, problem }) => {
            let what = format!("the log of {} is damaged: position {position}: {problem}", server.address());
            let hint = "keep its data folder as it is, stop it, and run `verify` on the folder, which says what to do";
            Err(Failure::new(Exit::Integrity, what).hint(hint).into())
        }
    }
}

fn print(context: &Context, report: &VerificationReport, is_head_only: bool) -> anyhow::Result<()> {
    let output = &context.output;
    match (&report.damage, is_head_only) {
        (None, true) => output.value(&json!({"position": report.position, "chain": report.chain})),
        (Some(_) | None, _) if output.json => output.value(report),
        (None, false) => output.text(&render::verify::verified(output.screen, report)),
        (Some(_), _) => Ok(()),
    }
}

impl Subject {
    fn verify(self, exported: Option<ExportedHead>, mut bar: WorkBar) -> anyhow::Result<(Self, Verified)> {
        let mut progress = |progress| bar.show(progress);
        let request = VerifyRequest { exported, progress: Some(&mut progress) };
        let report: Report = match &self {
            Self::Data(folder, options) => verify_folder(folder, options, request)
                .with_context(|| format!("could not verify the data folder {}", folder.display()))?,
            Self::Backup(folder) => backup::verify_backup(folder, request)
                .with_context(|| format!("could not verify the backup {}", folder.display()))?,
        };
        Ok((self, Verified { report, took: bar.elapsed() }))
    }

    fn shown(&self) -> String {
        match self {
            Self::Data(folder, _) => format!("the log in {}", folder.display()),
            Self::Backup(folder) => format!("the backup {}", folder.display()),
        }
    }

    /// What to do about a damage.
    fn advice(&self, kind: &DamageKind) -> String {
        let program = program();
        match (self, kind) {
            (_, DamageKind::TailRemoved { .. } | DamageKind::ExportDiffers) => {
                "the head was exported from a longer or another log: keep what is here, and find out who changed it"
                    .to_owned()
            }
            (Self::Backup(_), _) => "use another backup".to_owned(),
            (
                Self::Data(..),
                DamageKind::Index { .. }
                | DamageKind::IndexTooLong { .. }
                | DamageKind::IndexUnusable { .. }
                | DamageKind::TailDiffers { .. },
            ) => format!("the events themselves are whole: `{program} doctor --repair` makes the index anew"),
            (Self::Data(..), DamageKind::KeyLost) => {
                "keep the folder as it is, and restore a backup into a new folder: older keys put in the place of newer ones would \
                 lose threads made since, and bring back erased ones".to_owned()
            }
            (
                Self::Data(..),
                DamageKind::Missing
                | DamageKind::Unreadable { .. }
                | DamageKind::Displaced { .. }
                | DamageKind::SeqGap { .. }
                | DamageKind::HashDiffers
                | DamageKind::CommitMissing
                | DamageKind::ChainDiffers
                | DamageKind::Uncommitted
                | DamageKind::Blob { .. }
                | DamageKind::HeadBehind { .. }
                | DamageKind::HeadDiffers
                | DamageKind::Segment { .. },
            ) => {
                format!("keep the folder as it is, and `{program} restore BACKUP --data NEW` from a backup")
            }
        }
    }
}

/// Reads a head that `--head` wrote, or that is in what `--json` wrote, or in an export or a backup.
fn read_head(path: &Path) -> anyhow::Result<ExportedHead> {
    let shown = path.display();
    let manifest = path.join("manifest.json");
    let text = std::fs::read(if path.is_dir() { &manifest } else { path }).map_err(|error| {
        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
        let exit = if is_missing { Exit::NotFound } else { Exit::Failed };
        anyhow::Error::new(error).context(Failure::new(exit, format!("could not read the head in {shown}")))
    })?;
    serde_json::from_slice(&text).map_err(|error| {
        let failure = Failure::usage(format!("{shown} holds no head"));
        anyhow::Error::new(error).context(failure.hint(format!("`{} verify --head` prints one", program())))
    })
}
