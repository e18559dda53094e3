//! What the configuration says about one model, checked.

use std::{collections::BTreeMap, fmt, io, ops::RangeInclusive, path::PathBuf};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

#[cfg(test)]
mod tests;

/// Seconds that any time limit of a model call may have.
const TIMEOUT_SECONDS_RANGE: RangeInclusive<u64> = 1..=3_600;
/// Tokens that a context may hold.
const CONTEXT_TOKENS_RANGE: RangeInclusive<u32> = 1_024..=10_000_000;
/// Tokens that a reply may be allowed.
const MAX_TOKENS_RANGE: RangeInclusive<u32> = 1..=1_000_000;
/// Sampling temperatures.
const TEMPERATURE_RANGE: RangeInclusive<f64> = 0.0..=2.0;
/// What a body says of the conversation, which is nobody else's to say.
const RESERVED_FIELDS: &[&str] =
    &["model", "messages", "contents", "system", "systemInstruction", "tools", "stream"];
/// A configured name.
const NAME_CHARS_MAX: usize = 64;

/// Whose wire format a model speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Chat Completions, as OpenAI and most local servers speak it.
    Openai,
    /// Messages, as Anthropic and some gateways speak it.
    Anthropic,
    /// Generate Content, as Google speaks it.
    Gemini,
    /// The built-in scenario player, which is not a language model.
    Offline,
}

impl Provider {
    /// The name in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Offline => "offline",
        }
    }
}

/// One entry of `models`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// The name by which agents ask for it; shown as `model_name`.
    pub name: String,
    /// Whose wire format it speaks.
    pub provider: Provider,
    /// Where the API is, such as `http://127.0.0.1:8080/v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The provider's id of the model; the name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The key, or where it is: `$VARIABLE` or `file:PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Secret>,
    /// Headers that every request has, beside or in place of the provider's own: values as for keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Secret>,
    /// What else every request's body has, such as how much the model may think: an object that is
    /// laid over the body, key by key.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
    /// Tokens that one request may hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u32>,
    /// Tokens that one reply may have; when absent the provider's own limit, or 16,384 for Anthropic,
    /// which has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The sampling temperature; the provider's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Whether it reads images; those of a request are left out for a model that does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub supports_vision: bool,
    /// The longest that a whole call may take.
    #[serde(default = "default_request_timeout")]
    pub request_timeout_seconds: u64,
    /// The longest that connecting may take.
    #[serde(default = "default_connect_timeout")]
    pub connect_timeout_seconds: u64,
    /// The longest until the first byte of the answer.
    #[serde(default = "default_wait_timeout")]
    pub first_byte_timeout_seconds: u64,
    /// The longest between two pieces of the answer.
    #[serde(default = "default_wait_timeout")]
    pub chunk_timeout_seconds: u64,
    /// The scenario file of an offline model; the built-in one when absent. `builtin:default` and
    /// `builtin:demo` name the built-in ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<PathBuf>,
}

const fn default_request_timeout() -> u64 {
    120
}

const fn default_connect_timeout() -> u64 {
    10
}

const fn default_wait_timeout() -> u64 {
    60
}

/// A key, or where to find it. Neither `Debug` nor the serialised form ever shows it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

const HIDDEN: &str = "[secret]";

impl Secret {
    /// Hides the text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The key itself, for the one header that carries it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN)
    }
}

/// A configured model that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A number outside its range.
    #[error("{key} is {given}, but must be from {min} to {max}")]
    OutOfRange {
        /// The key, with the model's name in it.
        key: String,
        /// What was given.
        given: String,
        /// The least that is accepted.
        min: String,
        /// The most that is accepted.
        max: String,
    },
    /// A value that is missing or malformed.
    #[error("{key} {problem}")]
    Invalid {
        /// The key, with the model's name in it.
        key: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// The file of a secret cannot be read.
    #[error("{key}: cannot read the file {}", .path.display())]
    SecretFile {
        /// The key, with the model's name in it.
        key: String,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A default that is not configured.
    #[error("default_model: {0}")]
    UnknownDefault(super::UnknownModel),
    /// A scenario that cannot be used.
    #[error("models.{model}.scenario cannot be used")]
    Scenario {
        /// The model's name.
        model: String,
        /// What is wrong with it.
        #[source]
        source: Box<super::offline::ScenarioError>,
    },
    /// The HTTP client could not be made.
    #[error("models.{model}: cannot make an HTTP client")]
    Client {
        /// The model's name.
        model: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
}

impl ModelSettings {
    /// An offline model with the built-in scenario.
    pub fn offline(name: impl Into<String>) -> Self {
        Self::new(name, Provider::Offline)
    }

    /// A model with nothing but its name and provider set.
    pub fn new(name: impl Into<String>, provider: Provider) -> Self {
        Self {
            name: name.into(),
            provider,
            base_url: None,
            model: None,
            api_key: None,
            headers: BTreeMap::new(),
            extra_body: Map::new(),
            context_tokens: None,
            max_tokens: None,
            temperature: None,
            supports_vision: false,
            request_timeout_seconds: default_request_timeout(),
            connect_timeout_seconds: default_connect_timeout(),
            first_byte_timeout_seconds: default_wait_timeout(),
            chunk_timeout_seconds: default_wait_timeout(),
            scenario: None,
        }
    }

    /// Checks every value against its range. Does not look at the environment or at files.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let length = self.name.chars().count();
        if length == 0 || length > NAME_CHARS_MAX || self.name.chars().any(char::is_control) {
            return Err(SettingsError::Invalid {
                key: "models.name".into(),
                problem: format!("must be 1 to {NAME_CHARS_MAX} printable characters"),
            });
        }
        self.in_range("context_tokens", self.context_tokens.as_ref(), &CONTEXT_TOKENS_RANGE)?;
        self.in_range("max_tokens", self.max_tokens.as_ref(), &MAX_TOKENS_RANGE)?;
        self.in_range("temperature", self.temperature.as_ref(), &TEMPERATURE_RANGE)?;
        for (key, seconds) in [
            ("request_timeout_seconds", self.request_timeout_seconds),
            ("connect_timeout_seconds", self.connect_timeout_seconds),
            ("first_byte_timeout_seconds", self.first_byte_timeout_seconds),
            ("chunk_timeout_seconds", self.chunk_timeout_seconds),
        ] {
            self.in_range(key, Some(&seconds), &TIMEOUT_SECONDS_RANGE)?;
        }
        match self.extra_body.keys().find(|field| RESERVED_FIELDS.contains(&field.as_str())) {
            Some(field) => {
                Err(self.invalid(&format!("extra_body.{field}"), "is what Remit itself sends; take it out"))
            }
            None => Ok(()),
        }
    }

    fn in_range<T: PartialOrd + fmt::Display>(
        &self,
        key: &str,
        given: Option<&T>,
        range: &RangeInclusive<T>,
    ) -> Result<(), SettingsError> {
        match given {
            Some(given) if !range.contains(given) => Err(SettingsError::OutOfRange {
                key: self.key(key),
                given: given.to_string(),
                min: range.start().to_string(),
                max: range.end().to_string(),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// A key of this model as errors name it.
    pub(crate) fn key(&self, key: &str) -> String {
        format!("models.{}.{key}", self.name)
    }

    pub(crate) fn invalid(&self, key: &str, problem: impl Into<String>) -> SettingsError {
        SettingsError::Invalid { key: self.key(key), problem: problem.into() }
    }
}
