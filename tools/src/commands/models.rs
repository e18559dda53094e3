//! `remit models`.

use runtime::{
    config::Config,
    models::{ModelSettings, SecretSource, configured::OFFLINE_NAME},
};
use serde::Serialize;

use super::models_check;
use crate::{
    args::{ModelsArguments, ModelsCommand},
    context::Context,
    failure::{Exit, Failure},
    render,
};

/// One configured model, as it is shown.
#[derive(Debug, Serialize)]
pub(crate) struct ModelRow {
    /// The name by which agents ask for it.
    pub(crate) name: String,
    /// Whether it is used when none is named.
    pub(crate) is_default: bool,
    /// Whose wire format it speaks.
    pub(crate) provider: String,
    /// The provider's id of it.
    pub(crate) model: String,
    /// Where its API is.
    pub(crate) base_url: Option<String>,
    /// Its key.
    pub(crate) api_key: KeyRow,
    /// Tokens that one request may hold.
    pub(crate) context_tokens: Option<u32>,
    /// Tokens that one reply may have.
    pub(crate) max_tokens: Option<u32>,
    /// What a million tokens cost.
    pub(crate) price: Option<PriceRow>,
}

/// Whether a model has a key, and from where.
#[derive(Debug, Serialize)]
pub(crate) struct KeyRow {
    /// Whether it is there and can be read.
    pub(crate) present: bool,
    /// `none`, `configuration`, `environment` or `file`.
    pub(crate) source: &'static str,
    /// The variable or the file.
    pub(crate) name: Option<String>,
}

/// What a million tokens cost.
#[derive(Debug, Serialize)]
pub(crate) struct PriceRow {
    pub(crate) currency: String,
    pub(crate) input_per_million: f64,
    pub(crate) output_per_million: f64,
    pub(crate) cached_input_per_million: Option<f64>,
}

/// Lists the models, or tries one.
pub(super) async fn models(context: &Context, arguments: ModelsArguments) -> anyhow::Result<Exit> {
    if context.global.server.is_some() {
        let refusal = Failure::usage("`remit models` reads the configuration here, not that of a server");
        return Err(refusal.hint("leave out --server").into());
    }
    let config = context.config(Vec::new())?.config;
    match arguments.command {
        Some(ModelsCommand::Check { name }) => models_check::check(context, &config, &name).await,
        None => {
            let rows: Vec<ModelRow> = configured(&config).iter().map(|model| row(&config, model)).collect();
            if context.output.json {
                context.output.value(&rows)?;
            } else {
                context.output.text(&render::models::models(context.output.screen, &rows))?;
            }
            Ok(Exit::Done)
        }
    }
}

/// The models, or the one that answers when there are none.
pub(super) fn configured(config: &Config) -> Vec<ModelSettings> {
    match config.models.is_empty() {
        true => vec![ModelSettings::offline(OFFLINE_NAME)],
        false => config.models.clone(),
    }
}

/// Looks a variable up.
pub(super) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn row(config: &Config, model: &ModelSettings) -> ModelRow {
    let first = config.models.first().map_or(OFFLINE_NAME, |model| model.name.as_str());
    ModelRow {
        name: model.name.clone(),
        is_default: model.name == config.default_model.as_deref().unwrap_or(first),
        provider: model.provider.as_str().to_owned(),
        model: model.model.clone().unwrap_or_else(|| model.name.clone()),
        base_url: model.address(),
        api_key: key_row(model),
        context_tokens: model.context_tokens,
        max_tokens: model.max_tokens,
        price: config.pricing.models.get(&model.name).map(|price| PriceRow {
            currency: config.pricing.currency.clone(),
            input_per_million: price.input_per_million,
            output_per_million: price.output_per_million,
            cached_input_per_million: price.cached_input_per_million,
        }),
    }
}

fn key_row(model: &ModelSettings) -> KeyRow {
    let (source, name) = match model.api_key.as_ref().map(|key| key.source()) {
        None => ("none", None),
        Some(SecretSource::Configuration) => ("configuration", None),
        Some(SecretSource::Environment(name)) => ("environment", Some(name.to_owned())),
        Some(SecretSource::File(path)) => ("file", Some(path.display().to_string())),
    };
    let present = model.resolved_key(&environment).is_ok_and(|key| key.is_some());
    KeyRow { present, source, name }
}
