//! The models that a server has, by their configured names.

use std::{collections::BTreeMap, sync::Arc};

use reqwest::Url;
use tokio::sync::Semaphore;

use super::{
    ChatModel, ModelSettings, OfflineModel, Provider, Secret, SettingsError,
    anthropic::Anthropic,
    call_gate::GatedModel,
    dialect::Dialect,
    gemini::Gemini,
    http::{HttpModel, Secrets},
    openai::OpenAi,
    settings::SettingsError::UnknownDefault,
};

/// The name of the model that answers when none is configured.
pub const OFFLINE_NAME: &str = "offline";

/// Looks a variable up in the environment.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Every configured model, and the one that is used when none is named.
#[derive(Clone)]
pub struct Models {
    default_name: String,
    by_name: BTreeMap<String, Arc<dyn ChatModel>>,
}

/// A name that no configured model has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown model {name:?}: the configured models are {}", .known.join(", "))]
pub struct UnknownModel {
    /// The name that was asked for.
    pub name: String,
    /// The names that exist, in order.
    pub known: Vec<String>,
}

impl Models {
    /// Builds every configured model. The default is the named one, else the first; with nothing
    /// configured it is the offline model. `$VARIABLE` keys are looked up in `environment`, and
    /// files of keys and scenarios are read.
    pub fn from_settings(
        settings: &[ModelSettings],
        default: Option<&str>,
        environment: Environment<'_>,
    ) -> Result<Self, SettingsError> {
        let mut models = match settings.first() {
            Some(first) => Self { default_name: first.name.clone(), by_name: BTreeMap::new() },
            None => Self::of(OfflineModel::from_settings(&ModelSettings::offline(OFFLINE_NAME))?),
        };
        for settings in settings {
            settings.validate()?;
            let model = build(settings, environment)?;
            if models.by_name.insert(settings.name.clone(), model).is_some() {
                return Err(settings.invalid("name", "is used twice; give each model its own name"));
            }
        }
        if let Some(default) = default {
            models.get(default).map_err(UnknownDefault)?;
            models.default_name = default.to_owned();
        }
        Ok(models)
    }

    /// The one model of these settings, whatever else is configured.
    pub fn only(
        settings: &ModelSettings,
        environment: Environment<'_>,
    ) -> Result<Arc<dyn ChatModel>, SettingsError> {
        settings.validate()?;
        build(settings, environment)
    }

    /// One model, which is the default.
    pub fn of(model: impl ChatModel + 'static) -> Self {
        let default_name = model.name().to_owned();
        let model: Arc<dyn ChatModel> = Arc::new(model);
        Self { by_name: BTreeMap::from([(default_name.clone(), model)]), default_name }
    }

    /// Adds a model, or replaces the one of its name.
    #[must_use]
    pub fn with(mut self, model: impl ChatModel + 'static) -> Self {
        self.by_name.insert(model.name().to_owned(), Arc::new(model));
        self
    }

    /// The same models, of which so many calls are at work at once, together; 0 sets no limit.
    #[must_use]
    pub(crate) fn gated(mut self, calls_max: u32) -> Self {
        if calls_max > 0 {
            let places =
                Arc::new(Semaphore::new(usize::try_from(calls_max).unwrap_or(Semaphore::MAX_PERMITS)));
            for model in self.by_name.values_mut() {
                *model = Arc::new(GatedModel::new(Arc::clone(model), &places));
            }
        }
        self
    }

    /// The model of this name.
    pub fn get(&self, name: &str) -> Result<Arc<dyn ChatModel>, UnknownModel> {
        let unknown = || UnknownModel { name: name.to_owned(), known: self.names() };
        self.by_name.get(name).cloned().ok_or_else(unknown)
    }

    /// The name of the model that is used when none is named.
    pub fn default_name(&self) -> &str {
        &self.default_name
    }

    /// What each model can hold, where the configuration says so.
    pub(crate) fn context_tokens(&self) -> BTreeMap<String, u32> {
        let known =
            self.by_name.iter().filter_map(|(name, model)| Some((name.clone(), model.context_tokens()?)));
        known.collect()
    }

    /// Every name, in order.
    pub fn names(&self) -> Vec<String> {
        self.by_name.keys().cloned().collect()
    }
}

impl ModelSettings {
    /// Where the model's API is: as configured, or as the provider has it. Without what may be secret
    /// in an address. `None` for a model that has none, and for one whose address is missing.
    pub fn address(&self) -> Option<String> {
        let address = self.base_url.as_deref().or(dialect_of(self.provider)?.default_base_url())?;
        let Ok(mut url) = Url::parse(address.trim()) else { return Some(address.to_owned()) };
        // Only addresses that have no host refuse these.
        let _ = (url.set_username(""), url.set_password(None));
        url.set_query(None);
        Some(url.as_str().trim_end_matches('/').to_owned())
    }
}

fn dialect_of(provider: Provider) -> Option<&'static dyn Dialect> {
    match provider {
        Provider::Openai => Some(&OpenAi),
        Provider::Anthropic => Some(&Anthropic),
        Provider::Gemini => Some(&Gemini),
        Provider::Offline => None,
    }
}

fn build(
    settings: &ModelSettings,
    environment: Environment<'_>,
) -> Result<Arc<dyn ChatModel>, SettingsError> {
    match dialect_of(settings.provider) {
        Some(dialect) => Ok(Arc::new(HttpModel::new(dialect, settings, secrets(settings, environment)?)?)),
        None => Ok(Arc::new(OfflineModel::from_settings(settings)?)),
    }
}

fn secrets(settings: &ModelSettings, environment: Environment<'_>) -> Result<Secrets, SettingsError> {
    let header = |(name, value): (&String, &Secret)| {
        let value = settings.resolved(&format!("headers.{name}"), value, environment)?;
        Ok((name.clone(), value))
    };
    let headers = settings.headers.iter().map(header).collect::<Result<_, SettingsError>>()?;
    Ok(Secrets { key: settings.resolved_key(environment)?, headers })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openai(name: &str) -> ModelSettings {
        ModelSettings {
            base_url: Some("http://127.0.0.1:1/v1".into()),
            ..ModelSettings::new(name, Provider::Openai)
        }
    }

    fn build_all(settings: &[ModelSettings], default: Option<&str>) -> Result<Models, SettingsError> {
        Models::from_settings(settings, default, &|name| (name == "KEY").then(|| "k".to_owned()))
    }

    #[track_caller]
    fn check_refused(settings: &[ModelSettings], default: Option<&str>, expected: &str) {
        let error = build_all(settings, default).err().map(|error| error.to_string()).unwrap();
        assert!(error.starts_with(expected), "{error}");
    }

    // Whose API it is says where it is; Chat Completions are spoken by many.
    #[test]
    fn every_provider_can_be_built() {
        let of = |provider| ModelSettings::new("a", provider);
        build_all(&[of(Provider::Anthropic)], None).unwrap();
        build_all(&[of(Provider::Gemini)], None).unwrap();
        build_all(&[of(Provider::Offline)], None).unwrap();
        build_all(&[openai("a")], None).unwrap();
    }

    #[test]
    fn an_address_is_shown_without_secrets() {
        let at = |base: &str| ModelSettings { base_url: Some(base.into()), ..openai("a") }.address();
        assert_eq!(at("http://me:pw@host:8080/v1/?key=sk-1").as_deref(), Some("http://host:8080/v1"));
        let of = |provider| ModelSettings::new("a", provider).address();
        assert_eq!(of(Provider::Anthropic).as_deref(), Some("https://api.anthropic.com"));
        assert_eq!(of(Provider::Gemini).as_deref(), Some("https://generativelanguage.googleapis.com"));
        assert_eq!((of(Provider::Openai), of(Provider::Offline)), (None, None));
    }

    #[test]
    fn nothing_configured_is_the_offline_model() {
        let models = build_all(&[], None).unwrap();
        assert_eq!((models.default_name(), models.names()), ("offline", vec!["offline".to_owned()]));
    }

    #[test]
    fn the_default_is_the_named_model_or_the_first() {
        let settings = [openai("b"), ModelSettings::offline("a")];
        assert_eq!(build_all(&settings, None).unwrap().default_name(), "b");
        let models = build_all(&settings, Some("a")).unwrap();
        assert_eq!(models.default_name(), "a");
        assert_eq!(models.get("b").unwrap().name(), "b");
        assert_eq!(
            models.get("c").err().unwrap().to_string(),
            "unknown model \"c\": the configured models are a, b"
        );
    }

    #[test]
    fn keys_come_from_the_environment() {
        let keyed = |key: &str| ModelSettings { api_key: Some(Secret::new(key)), ..openai("a") };
        build_all(&[keyed("$KEY")], None).unwrap();
        check_refused(
            &[keyed("$OTHER")],
            None,
            "models.a.api_key names the environment variable OTHER, which is not set",
        );
    }

    #[test]
    fn what_cannot_be_built_says_why() {
        check_refused(&[openai("a"), openai("a")], None, "models.a.name is used twice");
        check_refused(&[openai("a")], Some("b"), "default_model: unknown model \"b\"");
        check_refused(&[ModelSettings::new("a", Provider::Openai)], None, "models.a.base_url is missing");
        let headed = |name: &str, value: &str| ModelSettings {
            headers: [(name.to_owned(), Secret::new(value))].into(),
            ..openai("a")
        };
        check_refused(&[headed("a b", "x")], None, "models.a.headers.a b is not the name of an HTTP header");
        check_refused(
            &[headed("x-team", "a\nb")],
            None,
            "models.a.headers.x-team holds characters that an HTTP header cannot carry",
        );
        check_refused(
            &[headed("x-team", "$NOBODY")],
            None,
            "models.a.headers.x-team names the environment variable NOBODY, which is not set",
        );
        build_all(&[headed("x-team", "$KEY")], None).unwrap();
        let bad_url = ModelSettings { base_url: Some("ftp://x".into()), ..openai("a") };
        check_refused(&[bad_url], None, "models.a.base_url must be an http:// or https:// address");
        let with_user = ModelSettings { base_url: Some("http://me:pw@x/v1".into()), ..openai("a") };
        check_refused(&[with_user], None, "models.a.base_url must not hold a user name or password");
    }
}
