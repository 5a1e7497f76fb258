//! How values are read: each error names what is valid.

use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer};

/// A section. The derived implementation would also take a list of values, so that `[[swap]]` is refused for a key of it.
#[derive(Debug, Default)]
pub(super) struct Section<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Section<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Visitor<T> {
            type Value = Section<T>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a section, such as [swap], with a value for each key")
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Section)
            }
        }
        deserializer.deserialize_map(Visitor(PhantomData))
    }
}

/// An integer from `LOW` to `HIGH`; the error message names both.
#[derive(Debug)]
pub(super) struct Within<const LOW: u32, const HIGH: u32>(u32);

impl<const LOW: u32, const HIGH: u32> From<Within<LOW, HIGH>> for u32 {
    fn from(within: Within<LOW, HIGH>) -> Self {
        within.0
    }
}

impl<'de, const LOW: u32, const HIGH: u32> Deserialize<'de> for Within<LOW, HIGH> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<const LOW: u32, const HIGH: u32>(PhantomData<()>);
        impl<const LOW: u32, const HIGH: u32> de::Visitor<'_> for Visitor<LOW, HIGH> {
            type Value = Within<LOW, HIGH>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "a whole number from {LOW} to {HIGH}")
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Self::Value, E> {
                match u32::try_from(v) {
                    Ok(v) if (LOW..=HIGH).contains(&v) => Ok(Within(v)),
                    _ => Err(E::invalid_value(de::Unexpected::Signed(v), &self)),
                }
            }
        }
        deserializer.deserialize_i64(Visitor(PhantomData))
    }
}

/// `auto` (`None`), or an integer from `LOW` to `HIGH`.
#[derive(Debug)]
pub(super) struct AutoOr<const LOW: u32, const HIGH: u32>(Option<u32>);

impl<const LOW: u32, const HIGH: u32> From<AutoOr<LOW, HIGH>> for Option<u32> {
    fn from(value: AutoOr<LOW, HIGH>) -> Self {
        value.0
    }
}

impl<'de, const LOW: u32, const HIGH: u32> Deserialize<'de> for AutoOr<LOW, HIGH> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<const LOW: u32, const HIGH: u32>;
        impl<const LOW: u32, const HIGH: u32> de::Visitor<'_> for Visitor<LOW, HIGH> {
            type Value = AutoOr<LOW, HIGH>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "`auto` or a whole number from {LOW} to {HIGH}")
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Self::Value, E> {
                if v == "auto" {
                    Ok(AutoOr(None))
                } else {
                    Err(E::invalid_value(de::Unexpected::Str(v), &self))
                }
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Self::Value, E> {
                match u32::try_from(v) {
                    Ok(v) if (LOW..=HIGH).contains(&v) => Ok(AutoOr(Some(v))),
                    _ => Err(E::invalid_value(de::Unexpected::Signed(v), &self)),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
