//! What tokens cost. Prices are whole millionths and sums are whole, so that a total is the sum of
//! its parts to the last digit, whatever order they are added in.

use std::{collections::BTreeMap, iter::Sum, ops::Add};

use crate::usage::Usage;

/// Millionths of the currency in one of it.
const MILLIONTHS: f64 = 1e6;
/// The unit of [`Cost`]: what one token costs at a price of a millionth per million tokens.
const COST_UNITS: f64 = 1e12;

/// What a million tokens cost, in millionths of the currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rate(u64);

impl Rate {
    /// A price per million tokens, to six digits after the point. `None` for what is no price.
    pub fn per_million(price: f64) -> Option<Self> {
        let millionths = (price * MILLIONTHS).round();
        let is_price = millionths.is_finite() && (0.0..=1e15).contains(&millionths);
        // Within the range that was checked the conversion is exact.
        is_price.then_some(Self(millionths as u64))
    }

    const fn of(self, tokens: u64) -> Cost {
        Cost(self.0 as u128 * tokens as u128)
    }
}

/// An amount of the currency. Adding loses nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Cost(u128);

impl Cost {
    /// The amount as a number: the nearest to it, with fifteen digits right.
    pub fn amount(self) -> f64 {
        self.0 as f64 / COST_UNITS
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Add::add)
    }
}

/// What the tokens of one model cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Price {
    /// Tokens that are sent.
    pub input: Rate,
    /// Tokens that come back.
    pub output: Rate,
    /// Tokens that are sent and that the provider had cached; `None` costs what other input does.
    pub cached_input: Option<Rate>,
}

impl Price {
    /// What a usage costs. Cached tokens are a part of the input.
    pub fn of(&self, usage: &Usage) -> Cost {
        let cached = usage.cache_read_tokens.unwrap_or(0).min(usage.input_tokens);
        self.input.of(usage.input_tokens - cached)
            + self.cached_input.unwrap_or(self.input).of(cached)
            + self.output.of(usage.output_tokens)
    }
}

/// The prices of models, by the names under which they are shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prices {
    /// The currency of all prices, such as `USD`.
    pub currency: String,
    /// The models that have a price.
    pub by_model: BTreeMap<String, Price>,
}

impl Prices {
    /// What a usage of a model costs; `None` where the model has no price.
    pub fn of(&self, model_name: &str, usage: &Usage) -> Option<Cost> {
        self.by_model.get(model_name).map(|price| price.of(usage))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(price: f64) -> Rate {
        Rate::per_million(price).unwrap()
    }

    #[test]
    fn input_output_and_cached_tokens_have_their_own_prices() {
        let price = Price { input: rate(2.0), output: rate(8.0), cached_input: Some(rate(0.5)) };
        let usage = Usage { cache_read_tokens: Some(400_000), ..Usage::new(1_000_000, 250_000) };
        assert_eq!(price.of(&usage).amount(), 1.2 + 0.2 + 2.0);
        let uncached = Price { cached_input: None, ..price };
        assert_eq!(uncached.of(&usage).amount(), 2.0 + 2.0);
        // A provider that reports more cached tokens than tokens is not paid for them.
        let odd = Usage { cache_read_tokens: Some(9), ..Usage::new(4, 0) };
        assert_eq!(price.of(&odd), price.cached_input.unwrap().of(4));
    }

    #[test]
    fn sums_lose_nothing() {
        let price = Price { input: rate(0.1), output: rate(0.0), cached_input: None };
        let parts: Cost = (0..1_000_000).map(|_| price.of(&Usage::new(1, 0))).sum();
        assert_eq!(parts, price.of(&Usage::new(1_000_000, 0)));
        assert_eq!(parts.amount(), 0.1);
    }

    #[test]
    fn only_a_price_is_a_price() {
        for bad in [-0.01, f64::NAN, f64::INFINITY, 1e10] {
            assert_eq!(Rate::per_million(bad), None, "{bad}");
        }
        assert_eq!(Rate::per_million(0.0), Some(Rate::default()));
    }
}
