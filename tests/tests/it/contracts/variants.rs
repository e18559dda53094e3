//! The values of an enum, as its own deserialiser lists them: no list to forget an entry in.

use serde::{
    Deserialize,
    de::{Deserializer, Error as _, Visitor, value::Error},
    forward_to_deserialize_any,
};

/// The serialised names of a unit-only enum, in the order of its declaration.
pub(crate) fn variants_of<T: for<'de> Deserialize<'de>>() -> Vec<&'static str> {
    let mut found = Vec::new();
    let _ends_with_an_error_by_design = T::deserialize(Listing(&mut found));
    assert!(!found.is_empty(), "{} is not an enum", std::any::type_name::<T>());
    found
}

/// Notes which variants were asked for, and gives nothing back.
struct Listing<'a>(&'a mut Vec<&'static str>);

impl<'de> Deserializer<'de> for Listing<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(Error::custom("only enums are listed"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.extend_from_slice(variants);
        Err(Error::custom("the variants are noted"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
