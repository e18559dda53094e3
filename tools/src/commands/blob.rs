//! `remit blob`.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde::Serialize;

use crate::{
    args::{BlobArguments, Selection},
    context::Context,
    failure::{Exit, Failure},
    output::program,
    render::units,
    select,
    source::{Blob, Source},
};

/// What a program reads.
#[derive(Serialize)]
struct Written<'a> {
    sha256: String,
    bytes: u64,
    out: &'a Path,
}

/// Writes a blob into a file, or to standard output as it is.
pub(super) async fn blob(context: &Context, arguments: BlobArguments) -> anyhow::Result<Exit> {
    let output = &context.output;
    let BlobArguments { sha256, thread, out } = arguments;
    if out.is_none() && (output.json || output.screen.is_terminal) {
        let hint = format!("name a file with --out, or pipe it: `{} blob {sha256} | less`", program());
        let what = "a blob is bytes as somebody's tool printed them, which must not reach a terminal or JSON as they are";
        return Err(Failure::usage(what).hint(hint).into());
    }
    let source = Source::open(context).await?;
    let selection = Selection { thread, run: None };
    let thread_id = select::select(&source, &selection, output).await?.thread_id;
    let mut blob = source.blob(&thread_id, &sha256).await?;
    match &out {
        Some(out) => {
            let bytes = save(&mut blob, out).await?;
            if output.json {
                output.value(&Written { sha256: sha256.to_string(), bytes, out })?;
            } else {
                output.text(&format!("{} written to {}", units::bytes(bytes), out.display()))?;
            }
        }
        None => print(&mut blob).await?,
    }
    source.close().await;
    Ok(Exit::Done)
}

async fn print(blob: &mut Blob) -> anyhow::Result<()> {
    let unprinted = |error: io::Error| {
        let failure = Failure::unprinted(&error);
        anyhow::Error::new(error).context(failure)
    };
    while let Some(piece) = blob.next_piece().await? {
        io::stdout().lock().write_all(&piece).map_err(unprinted)?;
    }
    io::stdout().lock().flush().map_err(unprinted)
}

/// Writes it beside its place, and moves it there when all of it has come: a file of that name is
/// whole.
async fn save(blob: &mut Blob, out: &Path) -> anyhow::Result<u64> {
    let mut part = out.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let saved = save_as(blob, &part).await;
    let moved = saved.and_then(|bytes| {
        fs::rename(&part, out).with_context(|| format!("could not write {}", out.display()))?;
        Ok(bytes)
    });
    if moved.is_err() {
        // The error says more than one of the removal.
        drop(fs::remove_file(&part));
    }
    moved
}

async fn save_as(blob: &mut Blob, part: &Path) -> anyhow::Result<u64> {
    let unwritable = || format!("could not write {}", part.display());
    let mut options = OpenOptions::new();
    // The text of a thread is for whoever may read its data folder.
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut file: File = options.open(part).with_context(unwritable)?;
    let mut bytes = 0;
    while let Some(piece) = blob.next_piece().await? {
        file.write_all(&piece).with_context(unwritable)?;
        bytes += piece.len() as u64;
    }
    file.sync_all().with_context(unwritable)?;
    Ok(bytes)
}
