//! The `pricing` section: what the tokens of a model cost.
//!
//! Prices are looked at when somebody asks what was spent, and are not written into the log: a price
//! that was put right is right for what was used before, too.

use std::collections::BTreeMap;

use domain::{
    definition::SettingProblem,
    pricing::{Price, Prices, Rate},
};
use serde::{Deserialize, Serialize};

use super::check::Checks;

/// The highest price of a million tokens that may be configured.
const PRICE_MAX: f64 = 1_000_000.0;
/// Letters of the name of a currency.
const CURRENCY_CHARS_MAX: usize = 16;

/// The `pricing` section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pricing {
    /// The currency of all prices, as it is shown.
    pub currency: String,
    /// What models cost, by the names under which they are shown. A model that is not here costs an
    /// unknown amount.
    pub models: BTreeMap<String, ModelPrice>,
}

/// What a million tokens of a model cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// Tokens that are sent.
    pub input_per_million: f64,
    /// Tokens that come back.
    pub output_per_million: f64,
    /// Tokens that are sent and that the provider had cached; without it they cost what others do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_per_million: Option<f64>,
}

impl Default for Pricing {
    fn default() -> Self {
        Self { currency: "USD".to_owned(), models: BTreeMap::new() }
    }
}

impl Pricing {
    /// The prices, to six digits after the point.
    pub fn prices(&self) -> Prices {
        let price = |(name, price): (&String, &ModelPrice)| (name.clone(), price.price());
        Prices { currency: self.currency.clone(), by_model: self.models.iter().map(price).collect() }
    }

    pub(super) fn problems(&self) -> Vec<SettingProblem> {
        let mut checks = Checks::below("pricing");
        if self.currency.trim().is_empty() || self.currency.chars().count() > CURRENCY_CHARS_MAX {
            let allowed = format!("1 to {CURRENCY_CHARS_MAX} characters, such as USD");
            checks.problem("currency", &format!("{:?}", self.currency), &allowed);
        }
        for (name, price) in &self.models {
            for (key, price) in price.rates() {
                checks.within(&format!("models.{name}.{key}"), &price, &(0.0..=PRICE_MAX));
            }
        }
        checks.found()
    }
}

impl ModelPrice {
    fn rates(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let cached = self.cached_input_per_million.map(|price| ("cached_input_per_million", price));
        let both =
            [("input_per_million", self.input_per_million), ("output_per_million", self.output_per_million)];
        both.into_iter().chain(cached)
    }

    /// Prices were checked when they were loaded.
    fn price(&self) -> Price {
        let rate = |price| Rate::per_million(price).unwrap_or_default();
        Price {
            input: rate(self.input_per_million),
            output: rate(self.output_per_million),
            cached_input: self.cached_input_per_million.map(rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::usage::Usage;

    use super::*;

    #[test]
    fn prices_are_per_million_tokens() {
        let pricing: Pricing = serde_json::from_value(serde_json::json!({
            "models": {"a": {"input_per_million": 3, "output_per_million": 15.5, "cached_input_per_million": 0.3}}
        }))
        .unwrap();
        let prices = pricing.prices();
        assert_eq!(prices.currency, "USD");
        let usage = Usage { cache_read_tokens: Some(1_000_000), ..Usage::new(2_000_000, 1_000_000) };
        assert_eq!(prices.of("a", &usage).map(|cost| cost.amount()), Some(3.0 + 0.3 + 15.5));
        assert_eq!(prices.of("b", &usage), None);
    }

    #[test]
    fn what_is_no_price_is_named() {
        let price = ModelPrice {
            input_per_million: -1.0,
            output_per_million: f64::NAN,
            cached_input_per_million: Some(2e6),
        };
        let pricing =
            Pricing { currency: " ".into(), models: BTreeMap::from([("gpt-4.1".to_owned(), price)]) };
        let keys: Vec<_> = pricing.problems().into_iter().map(|problem| problem.key).collect();
        assert_eq!(
            keys,
            [
                "pricing.currency",
                "pricing.models.gpt-4.1.input_per_million",
                "pricing.models.gpt-4.1.output_per_million",
                "pricing.models.gpt-4.1.cached_input_per_million"
            ]
        );
    }
}
