//! Settings by subagent type, in the order in which the configuration names them, because types
//! are listed in that order.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, MapAccess, Visitor},
};

use crate::ids::SubagentType;

/// Settings by subagent type, in the order of the configuration. A name stands only once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InConfigOrder<T>(Vec<(SubagentType, T)>);

impl<T> InConfigOrder<T> {
    /// What is set for the type with this name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(known, _)| known.as_str() == name).map(|(_, setting)| setting)
    }

    /// Whether nothing is set.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every name with what is set for it, in order.
    pub fn iter(&self) -> impl Iterator<Item = &(SubagentType, T)> {
        self.0.iter()
    }
}

impl<T> Default for InConfigOrder<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Of two with the same name, the first counts.
impl<T> FromIterator<(SubagentType, T)> for InConfigOrder<T> {
    fn from_iter<I: IntoIterator<Item = (SubagentType, T)>>(settings: I) -> Self {
        let mut ordered = Self::default();
        for (name, setting) in settings {
            if ordered.get(name.as_str()).is_none() {
                ordered.0.push((name, setting));
            }
        }
        ordered
    }
}

impl<T: Serialize> Serialize for InConfigOrder<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, setting)| (name, setting)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for InConfigOrder<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OrderedVisitor(PhantomData))
    }
}

struct OrderedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OrderedVisitor<T> {
    type Value = InConfigOrder<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("settings by subagent type")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut ordered = InConfigOrder::default();
        while let Some((name, setting)) = map.next_entry::<SubagentType, T>()? {
            if ordered.get(name.as_str()).is_some() {
                return Err(A::Error::custom(format_args!("subagent type {name} is set twice")));
            }
            ordered.0.push((name, setting));
        }
        Ok(ordered)
    }
}
