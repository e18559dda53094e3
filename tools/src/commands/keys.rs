//! `remit keys`.

use std::path::Path;

use anyhow::Context as _;
use eventlog::{KeyState, ListedKey, MasterKey, Rewrapped, list_keys, rewrap_keys, thread_hash};
use runtime::config::MasterKeySource;
use serde::Serialize;

use crate::{
    args::{KeysArguments, KeysCommand},
    context::{Context, existing_data_folder},
    failure::Exit,
    opening::{master_key_of, options_of},
    render::{self, units},
};

/// One key, as it is shown.
#[derive(Debug, Serialize)]
pub(crate) struct KeyRow {
    /// Its place in the key file.
    pub(crate) slot: u32,
    /// The hash of its thread; none if it is damaged.
    pub(crate) thread_hash: Option<String>,
    /// The hash of its run, as erasures show it; none for what belongs to no run.
    pub(crate) run_hash: Option<String>,
    /// `live`, `destroyed` or `damaged`.
    pub(crate) state: &'static str,
}

/// What a program reads of a change of the master key.
#[derive(Serialize)]
struct Outcome<'a> {
    data: &'a Path,
    /// False if the keys were wrapped with it already.
    changed: bool,
    live: u64,
    destroyed: u64,
    damaged: u64,
}

/// Lists keys, or wraps them with another master key.
pub(super) async fn keys(context: &Context, arguments: KeysArguments) -> anyhow::Result<Exit> {
    context.here_only("keys")?;
    let config = context.config(Vec::new())?.config;
    let (data, options) = (existing_data_folder(&config)?, options_of(&config)?);
    match arguments.command {
        KeysCommand::List { thread } => {
            let thread = thread.as_ref().map(thread_hash);
            let wanted = |key: &ListedKey| thread.is_none() || key.thread_hash == thread;
            let keys = list_keys(&data, &options).context("could not list the keys")?;
            let rows: Vec<KeyRow> = keys.into_iter().filter(wanted).map(row).collect();
            match context.output.json {
                true => context.output.value(&rows)?,
                false => context.output.text(&render::keys::keys(context.output.screen, &rows))?,
            }
        }
        KeysCommand::Rewrap { to } => {
            let master: MasterKey = master_key_of(&to)?;
            let done = rewrap_keys(&data, &options, &master).context("could not change the master key")?;
            tell(context, &data, &to, done)?;
        }
    }
    Ok(Exit::Done)
}

fn row(ListedKey { slot, thread_hash, run_hash, state }: ListedKey) -> KeyRow {
    let state = match state {
        KeyState::Live => "live",
        KeyState::Destroyed => "destroyed",
        KeyState::Damaged => "damaged",
    };
    KeyRow { slot, thread_hash, run_hash, state }
}

fn tell(context: &Context, data: &Path, to: &MasterKeySource, done: Option<Rewrapped>) -> anyhow::Result<()> {
    let Rewrapped { live, destroyed, damaged } = done.unwrap_or_default();
    if context.output.json {
        context.output.value(&Outcome { data, changed: done.is_some(), live, destroyed, damaged })?;
    } else {
        let text = match done {
            Some(_) => {
                format!("{} wrapped with the new master key", units::counted(live, "key is", "keys are"))
            }
            None => "the keys were wrapped with this master key already".to_owned(),
        };
        context.output.text(&text)?;
    }
    if damaged > 0 {
        let slots = units::counted(damaged, "slot is", "slots are");
        context.output.warn(&format!("{slots} damaged and stay as they are: `remit keys list` names them"));
    }
    let place = match to {
        MasterKeySource::File(path) => format!("file:{}", path.display()),
        MasterKeySource::Env(name) => format!("${name}"),
        MasterKeySource::Generated => return Ok(()),
    };
    context.output.note(&format!(
        "set log.master_key to {place}: nothing opens the folder with the old one any more. Backups made until now \
         still need the old one"
    ));
    Ok(())
}
