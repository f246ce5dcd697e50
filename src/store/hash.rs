//! `SipHash`-1-3: a hash with a secret key, so that nobody can choose keys that collide.
//!
//! J.-P. Aumasson, D. J. Bernstein: *`SipHash`: a fast short-input PRF* (2012), with one compression and three
//! finalisation rounds, as the standard library uses for its maps. Written out here because that one takes no key,
//! and needs `std`.

use core::hash::{BuildHasher, Hasher};

/// Makes hashers with one secret key.
#[derive(Clone)]
pub(crate) struct KeyedHash {
    key: u128,
}

impl KeyedHash {
    /// Whoever knows `key` can choose keys that collide.
    pub(crate) const fn with_key(key: u128) -> Self {
        Self { key }
    }

    /// A key from the operating system's randomness, through the standard library's.
    #[cfg(feature = "std")]
    pub(crate) fn random() -> Self {
        let half = |salt: u8| u128::from(std::hash::RandomState::new().hash_one(salt));
        Self::with_key(half(0) << 64 | half(1))
    }
}

impl BuildHasher for KeyedHash {
    type Hasher = SipHasher13;

    #[inline]
    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new(self.key)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct SipHasher13 {
    v: [u64; 4],
    /// Bytes that do not fill a word yet, in the low end, and how many there are.
    tail: u64,
    tail_len: u32,
    /// All bytes so far, modulo 256.
    len: u8,
}

impl SipHasher13 {
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // takes the key apart
    const fn new(key: u128) -> Self {
        let (k0, k1) = (key as u64, (key >> 64) as u64);
        // "somepseudorandomlygeneratedbytes"
        let v = [
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ];
        Self {
            v,
            tail: 0,
            tail_len: 0,
            len: 0,
        }
    }

    #[inline]
    fn round(&mut self) {
        let [v0, v1, v2, v3] = &mut self.v;
        *v0 = v0.wrapping_add(*v1);
        *v2 = v2.wrapping_add(*v3);
        *v1 = v1.rotate_left(13) ^ *v0;
        *v3 = v3.rotate_left(16) ^ *v2;
        *v0 = v0.rotate_left(32);
        *v2 = v2.wrapping_add(*v1);
        *v0 = v0.wrapping_add(*v3);
        *v1 = v1.rotate_left(17) ^ *v2;
        *v3 = v3.rotate_left(21) ^ *v0;
        *v2 = v2.rotate_left(32);
    }

    #[inline]
    fn compress(&mut self, word: u64) {
        self.v[3] ^= word;
        self.round();
        self.v[0] ^= word;
    }

    /// The low `len` bytes of `word`, 1 to 8; the others are zero.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // at most 8
    fn write_word(&mut self, word: u64, len: u32) {
        self.len = self.len.wrapping_add(len as u8);
        let room = 8 - self.tail_len;
        self.tail |= word << (8 * self.tail_len);
        if len < room {
            self.tail_len += len;
            return;
        }
        let full = self.tail;
        self.compress(full);
        self.tail_len = len - room;
        self.tail = if self.tail_len == 0 {
            0
        } else {
            word >> (8 * room)
        };
    }
}

impl Hasher for SipHasher13 {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.split_at(bytes.len() - bytes.len() % 8);
        for word in words.chunks_exact(8) {
            let mut buffer = [0; 8];
            buffer.copy_from_slice(word);
            self.write_word(u64::from_le_bytes(buffer), 8);
        }
        if !rest.is_empty() {
            let word = rest
                .iter()
                .rev()
                .fold(0, |word, byte| word << 8 | u64::from(*byte));
            #[allow(clippy::cast_possible_truncation)] // below 8
            self.write_word(word, rest.len() as u32);
        }
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.write_word(value.into(), 1);
    }

    #[inline]
    fn write_u16(&mut self, value: u16) {
        self.write_word(value.into(), 2);
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_word(value.into(), 4);
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.write_word(value, 8);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_word(value as u64, 8);
    }

    #[inline]
    fn finish(&self) -> u64 {
        let mut last = self.clone();
        last.compress(u64::from(self.len) << 56 | self.tail);
        last.v[2] ^= 0xff;
        last.round();
        last.round();
        last.round();
        last.v.into_iter().fold(0, |hash, word| hash ^ word)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use core::hash::{BuildHasherDefault, Hash as _};
    use std::hash::DefaultHasher;

    use super::*;

    /// The standard library's is the same function with the key 0.
    #[test]
    fn agrees_with_the_standard_library() {
        let bytes: [u8; 67] = core::array::from_fn(|i| u8::try_from(i * 37 % 251).unwrap());
        for len in 0..bytes.len() {
            for cut in [0, len / 3, len] {
                let (mut ours, mut theirs) = (SipHasher13::new(0), DefaultHasher::new());
                for part in [&bytes[..cut], &bytes[cut..len]] {
                    ours.write(part);
                    theirs.write(part);
                }
                assert_eq!(ours.finish(), theirs.finish(), "{len} bytes, cut at {cut}");
            }
        }
        let key = (
            7_u8,
            "ab",
            String::from("c"),
            9_u64,
            3_u16,
            [1_u32, 2],
            5_usize,
        );
        let mut ours = SipHasher13::new(0);
        key.hash(&mut ours);
        assert_eq!(
            ours.finish(),
            BuildHasherDefault::<DefaultHasher>::default().hash_one(&key)
        );
    }

    #[test]
    fn the_key_matters_and_parts_do_not_run_together() {
        let hash = |key: u128, value: (&str, &str)| {
            let mut hasher = SipHasher13::new(key);
            value.hash(&mut hasher);
            hasher.finish()
        };
        assert_ne!(hash(1, ("ab", "c")), hash(2, ("ab", "c")));
        assert_ne!(hash(1, ("ab", "c")), hash(1, ("a", "bc")));
        #[cfg(feature = "std")]
        assert_ne!(KeyedHash::random().key, KeyedHash::random().key);
    }
}
