//! `remit keys`.

use clap::{Args, Subcommand};
use domain::ids::ThreadId;
use runtime::config::MasterKeySource;
use serde::Deserialize as _;
use serde_json::Value;

/// `remit keys`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  remit keys list --thread 0193a1b2\n  openssl rand -hex 32 > /etc/remit/new.key\n  \
                        remit keys rewrap --to file:/etc/remit/new.key\n\nKeys themselves are never shown."
)]
pub(crate) struct KeysArguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

/// What to do with the keys of threads and runs.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// List the keys: whose they are, as hashes, and whether they were destroyed
    List {
        /// Only those of this thread
        #[arg(long, value_name = "THREAD")]
        thread: Option<ThreadId>,
    },
    /// Wrap all keys with another master key, which log.master_key must name from then on
    Rewrap {
        /// Where the new master key is: file:PATH, or $NAME for an environment variable
        #[arg(long, value_name = "PLACE", value_parser = place)]
        to: MasterKeySource,
    },
}

/// A place as the configuration names it.
fn place(written: &str) -> Result<MasterKeySource, String> {
    MasterKeySource::deserialize(Value::from(written)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_written_as_in_the_configuration_and_a_key_is_not_repeated() {
        assert_eq!(place("file:/k"), Ok(MasterKeySource::File("/k".into())));
        assert_eq!(place("$KEY"), Ok(MasterKeySource::Env("KEY".to_owned())));
        let key = "ab".repeat(32);
        let refusal = place(&key).unwrap_err();
        assert!(refusal.contains("file:PATH") && !refusal.contains(&key), "{refusal}");
        assert!(place("").is_err());
    }
}
