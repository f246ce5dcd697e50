//! The form in which states leave this process: a tag byte, then big-endian words.
//!
//! The tag's upper half is the version of its form, its lower half the kind of algorithm.
//!
//! | tag | limit | body | bytes in all |
//! |---|---|---|---|
//! | `0x21` | [`TokenBucket`](crate::TokenBucket) | `u64` TAT, nanoseconds since the Unix epoch; `u64` reach: how far ahead its last taker could book | 17 |
//! | `0x31` | the same with a [version](crate::TokenBucket::with_version) | `u64` TAT; `u16` version; `u64` tokens, period in ns, burst, longest wait in ns | 43 |
//! | `0x11` | the same, as earlier versions wrote it | `u64` TAT | 9 |
//! | `0x13` | [`SlidingWindow`](crate::SlidingWindow) | `u64` window start in ns, `u32` previous count, `u32` current count | 17 |
//! | `0x15` | [`FixedWindow`](crate::FixedWindow) | `u64` window start in ns, `u32` open (1) or not, `u32` count | 17 |
//! | `0x24` | [`All`](crate::All) of buckets alone | each member's TAT and reach | 1 + N · 16 |
//! | `0x27` | [`All`](crate::All) of others, [`Limits`](crate::Limits) | each member's body | up to 65 |
//! | `0x70` | any of these, written by a process that told the time itself | `u64` instant of the write, then the value | 9 more |
//! | `0x80` and above | algorithms of your own | the words of the state | |
//!
//! The limit itself is stored only with a version, so a value stays good when a limit changes. The kind of limit, and a
//! window's length, are part of the key: see [`KeyKind`](super::KeyKind). A reader that meets another tag or length reports
//! [`ErrorKind::Corrupt`] and leaves the value alone.

use core::fmt;

use super::error::{ErrorKind, StoreError};
use crate::algorithm::Algorithm;
use crate::time::Timestamp;

/// A state as bytes.
///
/// ```
/// use core::time::Duration;
/// use ratekeeper::store::StateBytes;
/// use ratekeeper::{Algorithm, Request, Timestamp, TokenBucket};
///
/// let limit = TokenBucket::per_second(10).with_burst(5);
/// let mut tat_ns = 0;
/// limit.step(Timestamp::from_nanos(1_700_000_000_000_000_000), &mut tat_ns, &Request::ONE);
/// let bytes = StateBytes::encode(&limit, &tat_ns)?;
/// assert_eq!(bytes[..9], [0x21, 0x17, 0x97, 0x9c, 0xfe, 0x3c, 0x1f, 0xe1, 0x00]); // and half a second of reach
/// assert_eq!(bytes[9..], 500_000_000_u64.to_be_bytes());
/// assert_eq!(bytes.decode(&limit)?, tat_ns);
/// # Ok::<(), ratekeeper::store::StoreError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StateBytes {
    len: u8,
    bytes: [u8; Self::CAPACITY],
}

impl StateBytes {
    /// The longest value in bytes: four windows or buckets, a tag, and the instant of the write with its own.
    pub const CAPACITY: usize = 74;

    /// The longest without that instant.
    const LONGEST_VALUE: usize = 65;

    /// Marks a value with the instant of its write.
    const STAMPED: u8 = 0x70;
    const STAMP_LEN: usize = 9;

    /// The wire form of a state of `algorithm`, as a take leaves it.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the algorithm has none: its [`tag`](Algorithm::tag) is 0, or its state has no fixed
    /// size.
    pub fn encode<A: Algorithm>(algorithm: &A, state: &A::State) -> Result<Self, StoreError> {
        algorithm.seal_value(state, None, true)
    }

    /// The state that these bytes are under `algorithm`, as it is: neither repaired nor moved to another limit, for which see
    /// [`step_stored`](super::step_stored).
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if they are none of that algorithm's, [`ErrorKind::Unsupported`] if it has no wire form,
    /// [`ErrorKind::Config`] if they are those of another limit with a version that is not older.
    pub fn decode<A: Algorithm>(&self, algorithm: &A) -> Result<A::State, StoreError> {
        // At the end of time nothing looks as if it came from a clock that was ahead.
        let end = Timestamp::from_nanos(u64::MAX);
        let opened = algorithm.open_value(end, self)?;
        Ok(opened.map(|opened| opened.state).unwrap_or_default())
    }

    /// The tag of that algorithm's values, and their length without it.
    pub(crate) fn exist_for<A: Algorithm>(algorithm: &A) -> Result<(u8, usize), StoreError> {
        match (algorithm.tag(), algorithm.wire_len()) {
            (0, _) | (_, 0) => Err(no_wire_form()),
            form => Ok(form),
        }
    }

    /// A value of `algorithm` whose body `write` fills.
    #[allow(clippy::cast_possible_truncation)] // at most CAPACITY
    pub(crate) fn of<A: Algorithm>(
        algorithm: &A,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<Self, StoreError> {
        let (tag, len) = Self::exist_for(algorithm)?;
        let mut bytes = [0; Self::CAPACITY];
        bytes[0] = tag;
        let len = len.min(Self::LONGEST_VALUE - 1);
        write(&mut bytes[1..=len]);
        Ok(Self {
            len: len as u8 + 1,
            bytes,
        })
    }

    /// The bytes after the tag, if they have that algorithm's tag and length.
    pub(crate) fn body_of<A: Algorithm>(&self, algorithm: &A) -> Result<&[u8], StoreError> {
        let (tag, len) = Self::exist_for(algorithm)?;
        if self.bytes[0] >> 4 != tag >> 4 {
            const MESSAGE: &str = "the stored value is no state, or has another format version";
            return Err(corrupt(MESSAGE));
        }
        if self.bytes[0] != tag {
            return Err(corrupt("the stored state is another algorithm's"));
        }
        if usize::from(self.len) != len + 1 {
            return Err(corrupt("the stored state has the wrong length"));
        }
        Ok(self.body())
    }

    /// The bytes after the tag.
    pub(crate) fn body(&self) -> &[u8] {
        self.get(1..).unwrap_or_default()
    }

    /// Bytes of this value with another tag and body.
    #[allow(clippy::cast_possible_truncation)] // at most CAPACITY
    pub(crate) fn from_parts(tag: u8, parts: &[&[u8]]) -> Self {
        let mut bytes = [0; Self::CAPACITY];
        bytes[0] = tag;
        let mut len = 1;
        for part in parts {
            bytes[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        }
        Self {
            len: len as u8,
            bytes,
        }
    }

    /// The same with the instant of the write.
    pub(crate) fn stamped(&self, written: Timestamp) -> Self {
        Self::from_parts(Self::STAMPED, &[&written.as_nanos().to_be_bytes(), self])
    }

    /// The value, and the instant of its write if it says that.
    pub(crate) fn unstamped(&self) -> Result<(Self, Option<Timestamp>), StoreError> {
        if self.bytes[0] != Self::STAMPED {
            return Ok((*self, None));
        }
        let value = self.get(Self::STAMP_LEN..).unwrap_or_default();
        let written = Timestamp::from_nanos(u64::read(&self.bytes[1..]));
        Ok((Self::from_stored(value)?, Some(written)))
    }

    /// What a store holds, to be decoded.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if that is longer than any state, or empty.
    #[allow(clippy::cast_possible_truncation)] // at most CAPACITY
    pub fn from_stored(value: &[u8]) -> Result<Self, StoreError> {
        if value.is_empty() || value.len() > Self::CAPACITY {
            const MESSAGE: &str = "the stored value has no state's length";
            return Err(StoreError::new(ErrorKind::Corrupt, MESSAGE));
        }
        let mut bytes = [0; Self::CAPACITY];
        bytes[..value.len()].copy_from_slice(value);
        Ok(Self {
            len: value.len() as u8,
            bytes,
        })
    }
}

impl core::ops::Deref for StateBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for StateBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateBytes(")?;
        for byte in &**self {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}

const fn no_wire_form() -> StoreError {
    const MESSAGE: &str = "this algorithm's state has no wire form";
    StoreError::new(ErrorKind::Unsupported, MESSAGE)
}

const fn corrupt(message: &'static str) -> StoreError {
    StoreError::new(ErrorKind::Corrupt, message)
}

/// States as big-endian words.
pub trait Wire {
    /// Bytes; 0 if the size is not fixed, and then the functions do nothing.
    const LEN: usize;
    /// Writes to the front of `out`, which is long enough.
    fn write(&self, out: &mut [u8]);
    /// Reads from the front of `body`, which is long enough.
    fn read(body: &[u8]) -> Self;
}

macro_rules! words {
    ($($word:ty),+) => {
        $(impl Wire for $word {
            const LEN: usize = size_of::<Self>();

            fn write(&self, out: &mut [u8]) {
                out[..Self::LEN].copy_from_slice(&self.to_be_bytes());
            }

            fn read(body: &[u8]) -> Self {
                body[..Self::LEN].iter().fold(0, |word, byte| word << 8 | Self::from(*byte))
            }
        })+
    };
}
words!(u64, u128);

impl<W: Wire, const N: usize> Wire for [W; N] {
    const LEN: usize = W::LEN * N;

    fn write(&self, out: &mut [u8]) {
        for (word, out) in self.iter().zip(out.chunks_exact_mut(W::LEN)) {
            word.write(out);
        }
    }

    fn read(body: &[u8]) -> Self {
        core::array::from_fn(|i| W::read(&body[i * W::LEN..]))
    }
}

macro_rules! tuples {
    ($($($word:ident $index:tt),+;)+) => {
        $(impl<$($word: Wire),+> Wire for ($($word),+) {
            const LEN: usize = 0 $(+ $word::LEN)+;

            fn write(&self, out: &mut [u8]) {
                let mut rest = out;
                $(
                    self.$index.write(rest);
                    rest = &mut rest[$word::LEN..];
                )+
                let _ = rest;
            }

            fn read(body: &[u8]) -> Self {
                let mut rest = body;
                ($({
                    let word = $word::read(rest);
                    rest = &rest[$word::LEN..];
                    let _ = rest;
                    word
                }),+)
            }
        })+
    };
}
tuples! {
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
}

#[cfg(feature = "alloc")]
impl Wire for crate::algorithm::LogRing {
    const LEN: usize = 0;

    fn write(&self, _out: &mut [u8]) {}

    fn read(_body: &[u8]) -> Self {
        Self::EMPTY
    }
}
