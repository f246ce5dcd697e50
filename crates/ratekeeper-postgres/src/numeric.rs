//! Numbers as PostgreSQL's `numeric`, which alone holds all 64 bits without a sign.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

/// A whole number from 0 to `u64::MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numeric(pub(crate) u64);

/// On the wire a number is made of digits of this base: their count, the power of the first one, sign, scale, digits.
const BASE: u64 = 10_000;

impl ToSql for Numeric {
    fn to_sql(
        &self,
        _type: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let mut digits = [0_u16; 5]; // 10_000^5 is above 2^64
        let mut rest = self.0;
        for digit in digits.iter_mut().rev() {
            *digit = u16::try_from(rest % BASE)?;
            rest /= BASE;
        }
        let leading = digits.iter().take_while(|digit| **digit == 0).count();
        let digits = &digits[leading..];
        let count = u16::try_from(digits.len())?;
        for word in [count, count.saturating_sub(1), 0, 0].iter().chain(digits) {
            out.extend_from_slice(&word.to_be_bytes());
        }
        Ok(IsNull::No)
    }

    accepts!(NUMERIC);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Numeric {
    fn from_sql(_type: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        const NO_U64: &str = "not a whole number of 64 bits";
        let (words, []) = raw.as_chunks::<2>() else {
            return Err(NO_U64.into());
        };
        let mut words = words.iter().map(|word| u16::from_be_bytes(*word));
        let header = (words.next(), words.next(), words.next(), words.next());
        let (Some(count), Some(first), Some(0), Some(_scale)) = header else {
            return Err(NO_U64.into()); // a sign, or no number at all
        };
        // Digits that are 0 at the end are left out; there are none after the point.
        let power = if count == 0 { 0 } else { first };
        if power > 4 || u32::from(count) > u32::from(power) + 1 {
            return Err(NO_U64.into());
        }
        let mut value = 0_u64;
        for _ in 0..=power {
            let digit = u64::from(words.next().unwrap_or(0));
            let shifted = value
                .checked_mul(BASE)
                .and_then(|high| high.checked_add(digit));
            value = shifted.ok_or(NO_U64)?;
        }
        Ok(Self(value))
    }

    accepts!(NUMERIC);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(number: u64) -> BytesMut {
        let mut out = BytesMut::new();
        Numeric(number).to_sql(&Type::NUMERIC, &mut out).unwrap();
        out
    }

    fn read(words: &[u16]) -> Option<u64> {
        let raw: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        Numeric::from_sql(&Type::NUMERIC, &raw).ok().map(|n| n.0)
    }

    /// Forms that PostgreSQL itself sends are read in `tests/server/own_algorithm.rs`.
    #[test]
    fn every_number_comes_back() {
        let mut numbers = vec![0, 1, 9_999, 10_000, 10_001, 100_000_000, u64::MAX];
        numbers.extend((0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, u64::MAX >> bit]));
        for number in numbers {
            assert_eq!(
                Numeric::from_sql(&Type::NUMERIC, &bytes(number)).unwrap(),
                Numeric(number)
            );
        }
        assert_eq!(bytes(0)[..], [0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(10_001)[..], [0, 2, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1]);
    }

    #[test]
    fn what_is_no_such_number_is_refused() {
        assert_eq!(read(&[1, 1, 0, 0, 7]), Some(70_000));
        assert_eq!(
            read(&[5, 4, 0, 0, 1844, 6744, 737, 955, 1615]),
            Some(u64::MAX)
        );
        assert_eq!(read(&[5, 4, 0, 0, 1844, 6744, 737, 955, 1616]), None);
        assert_eq!(read(&[1, 0, 0x4000, 0, 7]), None, "negative");
        assert_eq!(read(&[0, 0, 0xC000, 0]), None, "not a number");
        assert_eq!(read(&[2, 0, 0, 1, 7, 5000]), None, "a fraction");
        assert_eq!(read(&[1, 0xFFFF, 0, 4, 5000]), None, "a fraction");
        assert_eq!(read(&[1, 5, 0, 0, 1]), None, "too large");
        assert_eq!(read(&[]), None);
    }
}
