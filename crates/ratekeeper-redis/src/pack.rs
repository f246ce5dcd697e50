//! Arguments as the scripts read them: big-endian fields in one string.

use std::time::Duration;

/// Fields in order, as `struct.unpack` takes them apart.
#[derive(Debug)]
pub(crate) struct Packed(Vec<u8>);

impl Packed {
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(128))
    }

    /// `B`.
    #[must_use]
    pub(crate) fn byte(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    /// `d`: a double, the only kind of number that Lua has. Exact up to 2^53; anything above counts as 2^53.
    #[must_use]
    pub(crate) fn number(self, value: impl Into<u128>) -> Self {
        self.double(exact_double(value.into()))
    }

    /// `d`: how many milliseconds a key outlives its state. At least 1, since a key that is to live for 0 ms is an error.
    #[must_use]
    pub(crate) fn grace(self, grace: Duration) -> Self {
        self.number(grace.as_millis().max(1))
    }

    /// `d`, for what is no count.
    #[must_use]
    #[allow(clippy::needless_pass_by_value)]
    pub(crate) fn double(mut self, value: Double) -> Self {
        self.0.extend_from_slice(&value.0);
        self
    }

    /// `d`, that many times 0.
    #[must_use]
    pub(crate) fn zeros(mut self, count: usize) -> Self {
        self.0.resize(self.0.len() + 8 * count, 0);
        self
    }

    /// Two bytes.
    #[must_use]
    pub(crate) fn short(mut self, value: u16) -> Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// `I4I4`: all 64 bits.
    #[must_use]
    pub(crate) fn word(mut self, value: u64) -> Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(crate) fn into_argument(self) -> Vec<u8> {
        self.0
    }
}

/// A double as its bytes; there is no arithmetic on them here.
#[derive(Debug)]
pub(crate) struct Double([u8; 8]);

impl Double {
    pub(crate) const MINUS_ONE: Self = Self((-1.0_f64).to_be_bytes());
    pub(crate) const MINUS_INFINITY: Self = Self(f64::NEG_INFINITY.to_be_bytes());
}

/// The largest integer up to which every integer is a double.
const MOST_EXACT: u64 = 1 << 53;

#[allow(clippy::cast_precision_loss)] // cut to what is exact
fn exact_double(value: u128) -> Double {
    let value = u64::try_from(value).unwrap_or(u64::MAX).min(MOST_EXACT);
    Double((value as f64).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_big_endian_and_exact() {
        let bytes = Packed::new()
            .byte(3)
            .number(1_u64 << 53)
            .number(u128::MAX)
            .double(Double::MINUS_ONE)
            .word(0x0102_0304_0506_0708)
            .into_argument();
        let expected = [
            &[3][..],
            &9_007_199_254_740_992_f64.to_be_bytes(),
            &9_007_199_254_740_992_f64.to_be_bytes(),
            &(-1_f64).to_be_bytes(),
            &[1, 2, 3, 4, 5, 6, 7, 8],
        ]
        .concat();
        assert_eq!(bytes, expected);
    }
}
