//! What every command starts from: the global options, the configuration, and where words go.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use runtime::config::{Config, ConfigSources, Flag, Loaded};
use serde_json::Value;

use crate::{
    args::GlobalOptions,
    failure::{Exit, Failure},
    output::Output,
};

/// What every command starts from.
pub(crate) struct Context {
    /// What was written before or after the command.
    pub(crate) global: GlobalOptions,
    /// Where words go.
    pub(crate) output: Output,
}

impl Context {
    /// Looks at the streams.
    pub(crate) fn new(global: GlobalOptions) -> Self {
        let output = Output::new(global.json);
        Self { global, output }
    }

    /// The configuration, with `--data` and the command's own flags as its last layer.
    pub(crate) fn config(&self, more: Vec<Flag>) -> anyhow::Result<Loaded> {
        let mut flags = more;
        if let Some(data) = &self.global.data {
            flags.push(flag("log.path", "--data", data.to_string_lossy()));
        }
        let working_dir = std::env::current_dir().context("could not find the working folder")?;
        let sources = ConfigSources {
            explicit_file: self.global.config.clone(),
            working_dir,
            env: Box::new(std::env::vars_os()),
            flags,
        };
        Config::load(sources)
            .map_err(anyhow::Error::new)
            .context(Failure::new(Exit::Usage, "could not load the configuration"))
    }

    /// Refuses `--server` for a command that works on the data folder itself.
    pub(crate) fn here_only(&self, command: &str) -> anyhow::Result<()> {
        match &self.global.server {
            None => Ok(()),
            Some(_) => {
                let refusal =
                    Failure::usage(format!("`remit {command}` works on the data folder, not on a server"));
                Err(refusal.hint("leave out --server").into())
            }
        }
    }

    /// The options that say where answers come from, as suggested commands need them; empty where
    /// the defaults are meant.
    pub(crate) fn place_options(&self) -> String {
        let GlobalOptions { data, config, json: _, server } = &self.global;
        let mut options = String::new();
        for (name, path) in [("--data", data.as_deref()), ("--config", config.as_deref())] {
            options.extend(path.map(|path| format!(" {name} {}", quoted(path))));
        }
        options.extend(server.as_deref().map(|url| format!(" --server {}", quoted(Path::new(url)))));
        options
    }
}

/// A setting that an option of the command line makes.
pub(crate) fn flag(key: &str, name: &str, value: impl Into<String>) -> Flag {
    Flag { key: key.to_owned(), value: Value::String(value.into()), name: name.to_owned() }
}

/// The folder, which must be there already: reading never makes one.
pub(crate) fn existing_data_folder(config: &Config) -> anyhow::Result<PathBuf> {
    let folder = &config.log.path;
    // A part of it is looked for too, so that a mistyped path does not become a data folder. Where one
    // of them is lost, opening the folder says so.
    let is_there = folder.join("log").is_dir()
        || ["head", "keys/threads"].iter().any(|file| folder.join(file).is_file());
    if is_there {
        return Ok(folder.clone());
    }
    let shown = folder.display();
    let program = crate::output::program();
    let hint = format!("run `{program} demo` first, or name the folder with --data");
    Err(Failure::not_found(format!("no data folder at {shown}")).hint(hint).into())
}

/// A path that can be pasted into a shell.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = !text.is_empty()
        && text
            .chars()
            .all(|letter| letter.is_alphanumeric() || matches!(letter, '/' | '.' | '_' | '-' | '+' | ':'));
    if is_plain { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_can_be_pasted() {
        for (path, expected) in [
            ("./remit-data", "./remit-data"),
            ("/tmp/with space", "'/tmp/with space'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(Path::new(path)), expected);
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.log.path = folder.path().join("nothing");
        let error = existing_data_folder(&config).unwrap_err();
        assert_eq!(crate::failure::exit_of(&error), Exit::NotFound);
        assert!(!config.log.path.exists());
        config.log.path = folder.path().to_owned();
        assert!(existing_data_folder(&config).is_err(), "an empty folder is no data folder");
        std::fs::write(folder.path().join("head"), "of a log that is lost").unwrap();
        assert_eq!(existing_data_folder(&config).unwrap(), folder.path());
    }
}
