//! Parameters by name, each at most once and none unknown.

use std::ops::RangeInclusive;

use axum::http::Uri;
use contracts::wire::problem::ProblemCode;
use domain::ids::InvalidId;
use eventlog::Seq;

use crate::error::{Answer, ApiError};

/// The parameters of one query.
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads the query of an address. Unknown and repeated parameters are refused by name.
    pub(super) fn read(uri: &Uri, known: &[&str]) -> Answer<Self> {
        check_encoding(uri.query().unwrap_or_default())?;
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|_| ApiError::invalid("query", "pairs of name=value, percent-encoded"))?;
        let mut seen = Vec::new();
        for (name, _) in &pairs.0 {
            if !known.contains(&name.as_str()) {
                return Err(unknown(name, known));
            }
            if seen.contains(&name) {
                return Err(ApiError::invalid(name, "given once"));
            }
            seen.push(name);
        }
        Ok(Self(pairs.0))
    }

    /// The text of a parameter.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A whole number within a range.
    pub(super) fn number(&self, name: &str, range: RangeInclusive<u64>) -> Answer<Option<u64>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = whole_number(text).filter(|number| range.contains(number));
        let rule = || format!("a whole number from {} to {}", range.start(), range.end());
        number.map(Some).ok_or_else(|| ApiError::invalid(name, &rule()))
    }

    /// A place in a thread, from 1.
    pub(super) fn seq(&self, name: &str) -> Answer<Option<Seq>> {
        Ok(self.number(name, 1..=u64::MAX)?.map(Seq::new))
    }

    /// One of several names, as what it stands for.
    pub(super) fn one_of<T: Copy>(&self, name: &str, known: &[(&str, T)]) -> Answer<Option<T>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let found = known.iter().find(|(known, _)| *known == text);
        let names = || known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        found
            .map(|(_, one)| Some(*one))
            .ok_or_else(|| ApiError::invalid(name, &format!("one of {}", names())))
    }

    /// `true` or `false`.
    pub(super) fn flag(&self, name: &str) -> Answer<Option<bool>> {
        match self.text(name) {
            None => Ok(None),
            Some("true" | "1") => Ok(Some(true)),
            Some("false" | "0") => Ok(Some(false)),
            Some(_) => Err(ApiError::invalid(name, "true or false")),
        }
    }

    /// An id; an error calls it by the parameter's name.
    pub(super) fn id<Id>(
        &self,
        name: &'static str,
        new: fn(String) -> Result<Id, InvalidId>,
    ) -> Answer<Option<Id>> {
        let id = self.text(name).map(|text| new(text.to_owned())).transpose();
        Ok(id.map_err(|error| InvalidId { kind: name, ..error })?)
    }
}

/// What is percent-encoded must be UTF-8: the parser would put a replacement character in its place
/// and look for something that was not asked for.
fn check_encoding(query: &str) -> Answer<()> {
    for pair in query.split('&') {
        if std::str::from_utf8(&decoded(pair)).is_err() {
            let name = pair.split('=').next().filter(|name| !name.is_empty() && !name.contains('%'));
            return Err(ApiError::invalid(name.unwrap_or("query"), "UTF-8 text, percent-encoded"));
        }
    }
    Ok(())
}

/// The bytes behind a percent-encoded text. A `%` that is not followed by two digits is itself.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        let encoded = if *first == b'%' { digit(0).zip(digit(1)) } else { None };
        let byte = encoded.and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    bytes
}

/// Digits alone: a sign or a space is not a number here.
pub(crate) fn whole_number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

fn unknown(name: &str, known: &[&str]) -> ApiError {
    let name: String = name.chars().take(80).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    ApiError::new(
        ProblemCode::Invalid,
        format!("unknown query parameter {name:?}; this route knows: {known}"),
    )
}
