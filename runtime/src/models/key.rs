//! Where a secret of a model's settings is: in the configuration, in the environment or in a file.

use std::{fs, path::Path};

use super::{ModelSettings, Secret, SettingsError, configured::Environment};

/// Where a secret is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretSource<'a> {
    /// It stands in the configuration itself.
    Configuration,
    /// In the environment variable of this name.
    Environment(&'a str),
    /// In this file, without the white space around it.
    File(&'a Path),
}

/// Begins the name of a file.
const FILE_FORM: &str = "file:";

impl Secret {
    /// Where the secret is. `$NAME` means a variable and `file:PATH` a file; anything else is the
    /// secret itself.
    pub fn source(&self) -> SecretSource<'_> {
        let text = self.reveal();
        let is_name = |name: &&str| {
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        };
        if let Some(name) = text.strip_prefix('$').filter(is_name) {
            return SecretSource::Environment(name);
        }
        match text.strip_prefix(FILE_FORM).filter(|path| !path.is_empty()) {
            Some(path) => SecretSource::File(Path::new(path)),
            None => SecretSource::Configuration,
        }
    }

    /// What may be shown of the secret: where it is, if that is not here.
    pub fn shown(&self) -> Option<&str> {
        match self.source() {
            SecretSource::Configuration => None,
            SecretSource::Environment(_) | SecretSource::File(_) => Some(self.reveal()),
        }
    }
}

impl ModelSettings {
    /// The key itself, if the model has one.
    pub fn resolved_key(&self, environment: Environment<'_>) -> Result<Option<Secret>, SettingsError> {
        self.api_key.as_ref().map(|key| self.resolved("api_key", key, environment)).transpose()
    }

    /// A secret of this model's settings, read from where it is.
    pub(crate) fn resolved(
        &self,
        key: &str,
        secret: &Secret,
        environment: Environment<'_>,
    ) -> Result<Secret, SettingsError> {
        let (found, place) = match secret.source() {
            SecretSource::Configuration => return Ok(secret.clone()),
            SecretSource::Environment(name) => {
                let found = environment(name);
                let unset =
                    || self.invalid(key, format!("names the environment variable {name}, which is not set"));
                (found.ok_or_else(unset)?, format!("the environment variable {name}"))
            }
            SecretSource::File(path) => {
                let read = fs::read_to_string(path);
                let unread =
                    |source| SettingsError::SecretFile { key: self.key(key), path: path.to_owned(), source };
                (read.map_err(unread)?, format!("the file {}", path.display()))
            }
        };
        match found.trim() {
            "" => Err(self.invalid(key, format!("names {place}, which is empty"))),
            found => Ok(Secret::new(found)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Provider;

    #[test]
    fn a_dollar_and_a_name_mean_a_variable_and_file_a_file() {
        let variable = |name| SecretSource::Environment(name);
        for (text, expected) in [
            ("$KEY_1", variable("KEY_1")),
            ("KEY", SecretSource::Configuration),
            ("$", SecretSource::Configuration),
            ("$1A", SecretSource::Configuration),
            ("$a-b", SecretSource::Configuration),
            ("", SecretSource::Configuration),
            ("file:", SecretSource::Configuration),
            ("file:/run/key", SecretSource::File(Path::new("/run/key"))),
        ] {
            assert_eq!(Secret::new(text).source(), expected, "{text}");
        }
    }

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let settings =
            ModelSettings { api_key: Some(Secret::new(text)), ..ModelSettings::new("a", Provider::Openai) };
        let environment = |name: &str| match name {
            "KEY" => Some(" sk-1\n".to_owned()),
            "BLANK" => Some(" ".to_owned()),
            _ => None,
        };
        let found = settings.resolved_key(&environment).map(|key| key.unwrap().reveal().to_owned());
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected),
            (found, expected) => panic!("{found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn a_key_is_read_from_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let file = format!("file:{}", path.display());
        check("sk-literal", Ok("sk-literal"));
        check("$KEY", Ok("sk-1"));
        check("$OTHER", Err("models.a.api_key names the environment variable OTHER, which is not set"));
        check("$BLANK", Err("models.a.api_key names the environment variable BLANK, which is empty"));
        check(&file, Err(&format!("models.a.api_key: cannot read the file {}", path.display())));
        fs::write(&path, "sk-2\n").unwrap();
        check(&file, Ok("sk-2"));
        fs::write(&path, "\n").unwrap();
        check(&file, Err(&format!("models.a.api_key names the file {}, which is empty", path.display())));
    }
}
