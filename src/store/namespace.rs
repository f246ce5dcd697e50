//! Key spaces in a shared backend.

use alloc::string::String;
use alloc::vec::Vec;
use core::error::Error;
use core::fmt::{self, Write as _};

use sha2::{Digest, Sha256};

use super::key::Key;
use super::key_kind::KeyKind;

/// A key space of its own in a backend that several limiters share.
///
/// Limiters that count different things need different namespaces, and so do deployments that share a server. The kind of limit
/// is part of the key ([`KeyKind`]): a namespace whose algorithm changes, or a window's length, starts afresh.
///
/// ```
/// use ratekeeper::store::Namespace;
///
/// let searches = Namespace::new("searches")?;
/// assert_eq!(searches.key("alice"), b"rl:searches:alice");
/// assert_eq!(searches.key(&("eu", 42_u32)), b"rl:searches:eu\xff42\xff");
/// assert_eq!(searches.key(&"x".repeat(10_000)).len(), 76); // a hash
/// # Ok::<(), ratekeeper::store::InvalidNamespace>(())
/// ```
///
/// # Long keys
/// A key of more than [`MAX_KEY_BYTES`](Self::MAX_KEY_BYTES) is replaced by its SHA-256, so that a client who chooses its own
/// key cannot choose how much of the server's memory it takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Namespace {
    /// `rl:` and the name.
    prefix: String,
}

impl Namespace {
    /// The longest key, in bytes without the prefix, that is stored as it is.
    pub const MAX_KEY_BYTES: usize = 128;
    /// The longest name, in bytes.
    pub const MAX_NAME_BYTES: usize = 64;

    /// The key space of this name: 1 to 64 characters of `a–z A–Z 0–9 . _ -`.
    ///
    /// # Errors
    /// [`InvalidNamespace`] for any other name.
    pub fn new(name: &str) -> Result<Self, InvalidNamespace> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || name.len() > Self::MAX_NAME_BYTES || !name.bytes().all(legal) {
            return Err(InvalidNamespace);
        }
        let mut prefix = String::with_capacity(3 + name.len());
        prefix.push_str("rl:");
        prefix.push_str(name);
        Ok(Self { prefix })
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.prefix.trim_start_matches("rl:")
    }

    /// The bytes under which a backend stores `key` for token buckets: `rl:name:key`, or `rl:name#` and a hash in hexadecimal
    /// digits.
    pub fn key<K: Key + ?Sized>(&self, key: &K) -> Vec<u8> {
        self.key_in(key, "", Self::MAX_KEY_BYTES)
    }

    /// The same for limits of this kind: `rl:name/kind:key`, or `rl:name/kind#` and a hash.
    ///
    /// ```
    /// use ratekeeper::store::{KeyKind, Namespace};
    /// use ratekeeper::SlidingWindow;
    ///
    /// let searches = Namespace::new("searches")?;
    /// let kind = KeyKind::of(&SlidingWindow::per_minute(60));
    /// assert_eq!(searches.key_of_kind("alice", &kind), b"rl:searches/sliding-60s:alice");
    /// # Ok::<(), ratekeeper::store::InvalidNamespace>(())
    /// ```
    pub fn key_of_kind<K: Key + ?Sized>(&self, key: &K, kind: &KeyKind) -> Vec<u8> {
        self.key_in(key, kind.as_str(), Self::MAX_KEY_BYTES)
    }

    /// The same where the backend has no room for so long a key: a key that is not empty is always a hash here.
    ///
    /// ```
    /// use ratekeeper::store::{KeyKind, Namespace};
    /// use ratekeeper::SlidingWindow;
    ///
    /// let searches = Namespace::new("searches")?;
    /// let kind = KeyKind::of(&SlidingWindow::per_minute(60));
    /// let hashed = searches.hashed_key_of_kind("alice", &kind);
    /// assert!(hashed.starts_with(b"rl:searches/sliding-60s#2bd806c9"));
    /// assert_eq!(hashed.len(), 24 + 64);
    /// # Ok::<(), ratekeeper::store::InvalidNamespace>(())
    /// ```
    pub fn hashed_key_of_kind<K: Key + ?Sized>(&self, key: &K, kind: &KeyKind) -> Vec<u8> {
        self.key_in(key, kind.as_str(), 0)
    }

    fn key_in<K: Key + ?Sized>(&self, key: &K, kind: &str, longest: usize) -> Vec<u8> {
        let room = self.prefix.len() + 1 + kind.len() + 1 + Self::MAX_KEY_BYTES;
        let mut bytes = Vec::with_capacity(room);
        bytes.extend_from_slice(self.prefix.as_bytes());
        if !kind.is_empty() {
            bytes.push(b'/');
            bytes.extend_from_slice(kind.as_bytes());
        }
        bytes.push(b':');
        let start = bytes.len();
        // Hashed as it comes once it is too long, so that a long key is never held in one piece.
        let mut hash: Option<Sha256> = None;
        key.write_alone(&mut |part| match &mut hash {
            Some(hash) => hash.update(part),
            None if bytes.len() - start + part.len() <= longest => bytes.extend_from_slice(part),
            None => {
                hash = Some(
                    Sha256::new()
                        .chain_update(&bytes[start..])
                        .chain_update(part),
                )
            }
        });
        if let Some(hash) = hash {
            bytes.truncate(start - 1);
            bytes.push(b'#');
            let mut hex = String::with_capacity(64);
            for byte in hash.finalize() {
                let _ = write!(hex, "{byte:02x}"); // a string accepts everything
            }
            bytes.extend_from_slice(hex.as_bytes());
        }
        bytes
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that cannot be a [`Namespace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidNamespace;

impl fmt::Display for InvalidNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a namespace has 1 to 64 characters of a-z, A-Z, 0-9, '.', '_' and '-'")
    }
}

impl Error for InvalidNamespace {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        let long = "n".repeat(65);
        for name in ["", "a:b", "a#b", "a b", "é", "a{b}", "\0", &long] {
            assert_eq!(Namespace::new(name), Err(InvalidNamespace), "{name:?}");
        }
        assert_eq!(
            Namespace::new("v1.user_api-key").unwrap().name(),
            "v1.user_api-key"
        );
        assert_eq!(Namespace::new("rl").unwrap().name(), "rl");
    }

    /// `printf %0129d 0 | sha256sum`
    #[test]
    fn long_keys_are_hashed_and_meet_no_others() {
        let space = Namespace::new("n").unwrap();
        let at_the_limit = "0".repeat(128);
        assert_eq!(space.key(at_the_limit.as_str()).len(), 5 + 128);
        let hashed = space.key("0".repeat(129).as_str());
        assert_eq!(
            hashed,
            b"rl:n#beab3966389f2ad495c7db4f9dc029f16aae31c76af3ebefd9754faf0e6ddcb4"
        );
        assert_ne!(
            hashed,
            space.key(core::str::from_utf8(&hashed[5..]).unwrap())
        );
        let parts = ("0".repeat(100), "0".repeat(100), 7_u8);
        let whole: [u8; 203] = {
            let mut bytes = [b'0'; 203];
            (bytes[100], bytes[201], bytes[202]) = (0xff, 0xff, b'7');
            bytes
        };
        let whole = [whole.as_slice(), &[0xff]].concat();
        assert_eq!(space.key(&parts), space.key(whole.as_slice()));
    }
}
