//! Limits in serde formats: the same text.

use core::fmt::{self, Display};
use core::marker::PhantomData;
use core::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::algorithm::{
    All, AnyAlgorithm, FixedWindow, Limits, SlidingLog, SlidingWindow, TokenBucket,
};
use crate::invalid_limit::InvalidLimit;

struct TextVisitor<T>(PhantomData<T>);

impl<T: FromStr<Err = InvalidLimit>> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a limit such as \"100/min burst 20\" or \"sliding 60/min\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

macro_rules! as_text {
    ($($limit:ty),+) => {
        $(
            impl Serialize for $limit {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.collect_str(self)
                }
            }

            impl<'de> Deserialize<'de> for $limit {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    deserializer.deserialize_str(TextVisitor(PhantomData))
                }
            }
        )+
    };
}
as_text!(
    TokenBucket,
    SlidingWindow,
    SlidingLog,
    FixedWindow,
    AnyAlgorithm,
    Limits
);

impl<A: Display, const N: usize> Serialize for All<[A; N]> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, A, const N: usize> Deserialize<'de> for All<[A; N]>
where
    A: FromStr<Err = InvalidLimit> + Copy,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor(PhantomData))
    }
}
