//! `remit verify EXPORT`.

use std::path::Path;

use anyhow::Context as _;
use eventlog::{
    DamageKind, ExportedHead,
    export::{self, ExportDamage, PublicKey, VerifyExport},
};

use crate::{
    args::VerifyArguments,
    context::Context,
    failure::{Exit, Failure},
    render::{self, export::VerifiedExport},
    work_bar::WorkBar,
};

/// Proves an export without the log that it was made of.
pub(super) async fn verify_export(
    context: &Context,
    folder: &Path,
    against: Option<ExportedHead>,
    arguments: &VerifyArguments,
) -> anyhow::Result<Exit> {
    let bar = WorkBar::new("verifying", context.output.messages);
    let (checked, key) = (folder.to_owned(), arguments.key);
    let task = tokio::task::spawn_blocking(move || check(&checked, against, key, bar));
    let verified = task.await.context("the verification stopped by a defect")??;
    let output = &context.output;
    match (&verified.report.damage, arguments.head) {
        (None, true) => output.value(&verified.report.manifest.head())?,
        (Some(_) | None, _) if output.json => output.value(&verified.record())?,
        (None, false) => output.text(&render::export::verified(output.screen, &verified))?,
        (Some(_), _) => {}
    }
    match &verified.report.damage {
        None => Ok(Exit::Done),
        // A program has the whole answer on standard output.
        Some(_) if output.json => Ok(Exit::Integrity),
        Some(damage) => {
            let what = format!("the export {} is not what was written: {damage}", folder.display());
            Err(Failure::new(Exit::Integrity, what).hint(advice(damage)).into())
        }
    }
}

fn check(
    folder: &Path,
    against: Option<ExportedHead>,
    key: Option<PublicKey>,
    mut bar: WorkBar,
) -> anyhow::Result<VerifiedExport> {
    let mut progress = |progress| bar.show(progress);
    let request = VerifyExport { against, key, progress: Some(&mut progress) };
    let report = export::verify_export(folder, request)
        .with_context(|| format!("could not verify the export {}", folder.display()))?;
    Ok(VerifiedExport { report, is_key_known: key.is_some(), took: bar.elapsed() })
}

/// What to do about a damage.
fn advice(damage: &ExportDamage) -> &'static str {
    match damage {
        ExportDamage::Event(damage) => match damage.kind {
            DamageKind::TailRemoved { .. } | DamageKind::ExportDiffers => {
                "the earlier head is of a longer or another log: keep both, and find out who changed it"
            }
            DamageKind::Missing
            | DamageKind::Unreadable { .. }
            | DamageKind::Displaced { .. }
            | DamageKind::SeqGap { .. }
            | DamageKind::HashDiffers
            | DamageKind::CommitMissing
            | DamageKind::ChainDiffers
            | DamageKind::Uncommitted
            | DamageKind::Index { .. }
            | DamageKind::IndexTooLong { .. }
            | DamageKind::TailDiffers { .. }
            | DamageKind::KeyLost
            | DamageKind::Blob { .. }
            | DamageKind::HeadBehind { .. }
            | DamageKind::HeadDiffers
            | DamageKind::Segment { .. }
            | DamageKind::IndexUnusable { .. } => "get the export again from whoever made it",
        },
        ExportDamage::File { .. } | ExportDamage::FileMissing { .. } | ExportDamage::Manifest { .. } => {
            "get the export again from whoever made it"
        }
        ExportDamage::Signature { .. } | ExportDamage::OtherKey { .. } => {
            "do not trust it: somebody other than the holder of the key made or changed it"
        }
    }
}
