//! The form in which states leave this process: a tag byte, then big-endian words.
//!
//! The tag's upper half is the version of this format (1), its lower half the kind of algorithm. The limit itself is not
//! stored, so a value stays good when a limit changes.
//!
//! | tag | algorithm | body | bytes in all |
//! |---|---|---|---|
//! | `0x11` | [`TokenBucket`](crate::TokenBucket) | `u64` TAT, nanoseconds since the Unix epoch | 9 |
//! | `0x13` | [`SlidingWindow`](crate::SlidingWindow) | `u64` window start in ns, `u32` previous count, `u32` current count | 17 |
//! | `0x14` | [`All`](crate::All) of an array | each member's body | 1 + N · 8 or 16 |
//! | `0x15` | [`FixedWindow`](crate::FixedWindow) | `u64` window start in ns, `u32` open (1) or not, `u32` count | 17 |
//! | `0x17` | [`All`](crate::All) of a tuple | each member's body | up to 65 |
//! | `0x80` and above | algorithms of your own | the words of the state | |
//!
//! A reader that meets another tag or length reports [`ErrorKind::Corrupt`] and leaves the value alone; to change a key
//! space's algorithm, change its namespace.

use core::fmt;

use super::error::{ErrorKind, StoreError};
use crate::algorithm::Algorithm;

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
/// assert_eq!(*bytes, [0x11, 0x17, 0x97, 0x9c, 0xfe, 0x3c, 0x1f, 0xe1, 0x00]);
/// assert_eq!(bytes.decode(&limit)?, tat_ns);
/// # Ok::<(), ratekeeper::store::StoreError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StateBytes {
    len: u8,
    bytes: [u8; Self::CAPACITY],
}

impl StateBytes {
    /// The longest state in bytes: four windows and the tag.
    pub const CAPACITY: usize = 65;

    /// The wire form of a state of `algorithm`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the algorithm has none: its [`tag`](Algorithm::tag) is 0, or its state has no fixed
    /// size.
    #[allow(clippy::cast_possible_truncation)] // at most CAPACITY
    pub fn encode<A: Algorithm>(algorithm: &A, state: &A::State) -> Result<Self, StoreError> {
        let (tag, len) = (algorithm.tag(), algorithm.wire_len());
        if tag == 0 || len == 0 {
            const MESSAGE: &str = "this algorithm's state has no wire form";
            return Err(StoreError::new(ErrorKind::Unsupported, MESSAGE));
        }
        let mut bytes = [0; Self::CAPACITY];
        bytes[0] = tag;
        state.write(&mut bytes[1..]);
        let len = len + 1;
        // A shorter form leaves out words that are zero.
        bytes[len..].fill(0);
        Ok(Self {
            len: len as u8,
            bytes,
        })
    }

    /// The state that these bytes are under `algorithm`.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if tag or length are not that algorithm's, [`ErrorKind::Unsupported`] if it has no wire form.
    pub fn decode<A: Algorithm>(&self, algorithm: &A) -> Result<A::State, StoreError> {
        let corrupt = |message| Err(StoreError::new(ErrorKind::Corrupt, message));
        let (tag, len) = (algorithm.tag(), algorithm.wire_len());
        if tag == 0 || len == 0 {
            const MESSAGE: &str = "this algorithm's state has no wire form";
            return Err(StoreError::new(ErrorKind::Unsupported, MESSAGE));
        }
        if self.bytes[0] >> 4 != tag >> 4 {
            return corrupt("the stored value is no state, or has another format version");
        }
        if self.bytes[0] != tag {
            return corrupt("the stored state is another algorithm's");
        }
        if usize::from(self.len) != len + 1 {
            return corrupt("the stored state has the wrong length");
        }
        Ok(A::State::read(&self.bytes[1..]))
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
