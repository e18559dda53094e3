//! How a log is opened: one place for the server and every command, so that none of them forgets the
//! key or the masking of secrets.

#[cfg(debug_assertions)]
mod crash_point;

use std::{ffi::OsString, sync::Arc};

use anyhow::Context as _;
use domain::redaction::Redactor;
use eventlog::{MasterKey, Options, SecretKey};
use runtime::config::{Config, MasterKeySource};

use crate::{failure::Failure, migration};

/// What the configuration says about the log, for whoever opens it.
pub(crate) fn options_of(config: &Config) -> anyhow::Result<Options> {
    let master_key = master_key_of(&config.log.master_key)?;
    let redactor = Redactor::new(&config.redaction).context("could not use the redaction settings")?;
    let on_migrating = Some(migration::told(config.log.path.clone()));
    let options =
        Options { master_key, redactor: Some(Arc::new(redactor)), on_migrating, ..Options::default() };
    #[cfg(debug_assertions)]
    let options = crash_point::armed(options);
    Ok(options)
}

/// The master key from a place that a configuration could name.
pub(crate) fn master_key_of(source: &MasterKeySource) -> anyhow::Result<MasterKey> {
    master_key(source, |name| std::env::var_os(name))
}

/// A file is read by the log itself, each time that it is opened.
fn master_key(
    source: &MasterKeySource,
    environment: impl Fn(&str) -> Option<OsString>,
) -> anyhow::Result<MasterKey> {
    let name = match source {
        MasterKeySource::Generated => return Ok(MasterKey::Generated),
        MasterKeySource::File(path) => return Ok(MasterKey::File(path.clone())),
        MasterKeySource::Env(name) => name,
    };
    let place = format!("the environment variable {name}");
    let hint = "log.master_key names it; it must hold the 64 hexadecimal digits of the key that was used, or, for a new \
                data folder, of a new one, for example from `openssl rand -hex 32`";
    let Some(value) = environment(name).filter(|value| !value.is_empty()) else {
        let failure = Failure::usage(format!("the master key is to come from {place}, which is not set"));
        return Err(failure.hint(hint).into());
    };
    let key = SecretKey::parse(value.as_encoded_bytes()).map_err(|error| {
        let failure = Failure::usage(format!("{place} holds no master key"));
        anyhow::Error::new(error).context(failure.hint(hint))
    })?;
    Ok(MasterKey::given(key, place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Exit, exit_of, explain};

    #[test]
    fn a_key_comes_from_where_the_configuration_says() {
        let environment = |name: &str| (name == "KEY").then(|| OsString::from("ab".repeat(32)));
        let found = |source: MasterKeySource| master_key(&source, environment).unwrap();
        assert!(matches!(found(MasterKeySource::Generated), MasterKey::Generated));
        assert!(
            matches!(found(MasterKeySource::File("k".into())), MasterKey::File(path) if path.ends_with("k"))
        );
        let MasterKey::Given { key, from } = found(MasterKeySource::Env("KEY".into())) else { panic!() };
        assert_eq!((key, from.as_str()), (SecretKey::new([0xab; 32]), "the environment variable KEY"));
    }

    #[test]
    fn a_variable_without_a_key_is_named_and_its_value_is_not_shown() {
        for (value, expected) in [
            (None, "which is not set"),
            (Some(""), "which is not set"),
            (Some("secret-but-no-key"), "the environment variable KEY holds no master key"),
        ] {
            let environment = |_: &str| value.map(OsString::from);
            let error = master_key(&MasterKeySource::Env("KEY".into()), environment).unwrap_err();
            let text = explain(&error);
            assert_eq!(exit_of(&error), Exit::Usage);
            assert!(text.contains(expected) && text.contains("log.master_key"), "{text}");
            assert!(!text.contains("secret-but-no-key"), "{text}");
        }
    }
}
