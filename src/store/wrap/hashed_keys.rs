//! Hiding who the clients are from the store.

use alloc::vec::Vec;
use core::error::Error;
use core::fmt;

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::part::Part;
use super::passed_on::passed_on;
use crate::algorithm::{Algorithm, Carry};
use crate::decision::Decision;
use crate::invalid_limit::InvalidLimit;
use crate::request::{Receipt, Request};
use crate::store::async_store::AsyncStore;
use crate::store::batch::Item;
use crate::store::blocking::Store;
use crate::store::error::StoreError;
use crate::store::key::Key;
use crate::store::memory::{InProcess, MemoryStore};
use crate::time::Timestamp;

/// Replaces keys by keyed hashes of them, so that whoever reads the store, its backups or its traffic does not learn who the
/// clients are.
///
/// A hash is HMAC-SHA-256 (RFC 2104) of the key's [bytes](Key), cut to 16 of them. Processes that share a store share the
/// secret. Without it, a guess about a client cannot be verified; a plain hash of an address could be, for all addresses.
///
/// ```
/// use ratekeeper::store::{HashedKeys, MemoryStore};
/// use ratekeeper::{ManualClock, Request, TableStore, TokenBucket};
///
/// let table: TableStore<_> = TableStore::with_seed(1_024, 7, ManualClock::new())?;
/// let store = HashedKeys::new(table, b"at least sixteen bytes")?;
/// let decision = store.decide("alice", &TokenBucket::per_second(1), Request::ONE);
/// assert!(decision.is_allowed());
/// assert_eq!(store.hash("alice").to_string(), "03ee48057febf0b87389cd078a93813d");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Bound
/// The inner store's. Two keys of a million share a hash with a probability of 10⁻²⁷.
///
/// # Consistency
/// With another secret every key is a new one: changing it forgives each key at most one burst.
pub struct HashedKeys<S> {
    store: S,
    /// With the secret worked in.
    hmac: Hmac<Sha256>,
}

/// What [`HashedKeys`] makes of a key: 16 bytes, written as 32 hexadecimal digits.
///
/// It is a pseudonym: equal for equal keys, and of no use without the secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HashedKey([u8; 16]);

impl HashedKey {
    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    fn hex(self) -> [u8; 32] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 32];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        hex
    }
}

/// All have one length, so none is the beginning of another.
impl Key for HashedKey {
    fn write(&self, out: &mut dyn FnMut(&[u8])) {
        out(&self.hex());
    }
}

impl fmt::Display for HashedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for HashedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HashedKey({self})")
    }
}

/// A secret of fewer than [`HashedKeys::LEAST_SECRET_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidSecret;

impl fmt::Display for InvalidSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a secret for hashed keys has at least 16 bytes")
    }
}

impl Error for InvalidSecret {}

impl HashedKeys<()> {
    /// The shortest secret, in bytes. Let them be random.
    pub const LEAST_SECRET_BYTES: usize = 16;
}

impl<S> HashedKeys<S> {
    /// Hides keys from `store` with `secret`.
    ///
    /// # Errors
    /// [`InvalidSecret`] if it has fewer than 16 bytes, for then it can be guessed.
    pub fn new(store: S, secret: &[u8]) -> Result<Self, InvalidSecret> {
        if secret.len() < HashedKeys::LEAST_SECRET_BYTES {
            return Err(InvalidSecret);
        }
        let hmac = Hmac::new_from_slice(secret).map_err(|_| InvalidSecret)?;
        Ok(Self { store, hmac })
    }

    /// The inner store, which knows [`HashedKey`]s only.
    pub const fn get_ref(&self) -> &S {
        &self.store
    }

    /// What the inner store knows `key` as.
    pub fn hash<K: Key + ?Sized>(&self, key: &K) -> HashedKey {
        let mut hmac = self.hmac.clone();
        key.write_alone(&mut |part| hmac.update(part));
        let mut hashed = [0; 16];
        for (to, from) in hashed.iter_mut().zip(hmac.finalize().into_bytes()) {
            *to = from;
        }
        HashedKey(hashed)
    }

    /// The keys of a batch, in order.
    fn hash_all<K: Key + ?Sized, A: Algorithm>(&self, items: &[Item<'_, K, A>]) -> Vec<HashedKey> {
        items.iter().map(|item| self.hash(item.key())).collect()
    }
}

/// The open items of a batch under their new keys.
fn under<'k, 'i: 'k, K: ?Sized, A: Algorithm>(
    keys: &'k [HashedKey],
    items: &mut [Item<'i, K, A>],
) -> Part<'k, HashedKey, A> {
    let mut part = Part::new();
    for ((place, item), key) in items.iter_mut().enumerate().zip(keys) {
        if let Some(request) = item.take_request() {
            part.push(place, key, item.algorithm(), request);
        }
    }
    part
}

impl<K, A, S> MemoryStore<K, A> for HashedKeys<S>
where
    K: Key + ?Sized,
    A: Algorithm,
    S: MemoryStore<HashedKey, A>,
{
    fn decide(&self, key: &K, algorithm: &A, request: Request) -> Decision {
        self.store.decide(&self.hash(key), algorithm, request)
    }

    fn decide_at(&self, key: &K, algorithm: &A, request: Request, now: Timestamp) -> Decision {
        self.store
            .decide_at(&self.hash(key), algorithm, request, now)
    }

    fn accepts(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        self.store.accepts(algorithm)
    }

    fn change(&self, key: &K, old: &A, new: &A, carry: Carry) -> Decision {
        self.store.change(&self.hash(key), old, new, carry)
    }

    fn fingerprint(&self, key: &K) -> u64 {
        self.store.fingerprint(&self.hash(key))
    }
}

passed_on!(InProcess for HashedKeys<S>);

impl<K, A, S> Store<K, A> for HashedKeys<S>
where
    K: Key + ?Sized,
    A: Algorithm,
    S: Store<HashedKey, A>,
{
    fn apply(&self, key: &K, algorithm: &A, request: Request) -> Result<Decision, StoreError> {
        self.store.apply(&self.hash(key), algorithm, request)
    }

    fn apply_batch(&self, items: &mut [Item<'_, K, A>]) {
        let keys = self.hash_all(items);
        let mut part = under(&keys, items);
        self.store.apply_batch(&mut part.items);
        part.settle(items);
    }

    fn forget(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        self.store.forget(&self.hash(key), algorithm)
    }

    fn try_change(&self, key: &K, old: &A, new: &A, carry: Carry) -> Result<Decision, StoreError> {
        self.store.try_change(&self.hash(key), old, new, carry)
    }

    fn try_accepts(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        self.store.try_accepts(algorithm)
    }

    fn try_fingerprint(&self, key: &K) -> u64 {
        self.store.try_fingerprint(&self.hash(key))
    }
}

impl<K, A, S> AsyncStore<K, A> for HashedKeys<S>
where
    K: Key + ?Sized,
    A: Algorithm,
    S: AsyncStore<HashedKey, A>,
{
    async fn apply_async(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> Result<Decision, StoreError> {
        let key = self.hash(key);
        self.store.apply_async(&key, algorithm, request).await
    }

    async fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) {
        let keys = self.hash_all(items);
        let mut part = under(&keys, items);
        self.store.apply_batch_async(&mut part.items).await;
        part.settle(items);
    }

    async fn forget_async(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        let key = self.hash(key);
        self.store.forget_async(&key, algorithm).await
    }

    async fn change_async(
        &self,
        key: &K,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> Result<Decision, StoreError> {
        let key = self.hash(key);
        self.store.change_async(&key, old, new, carry).await
    }

    fn accepts_async(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        self.store.accepts_async(algorithm)
    }

    fn cancel(&self, key: &K, algorithm: &A, receipt: Receipt) {
        self.store.cancel(&self.hash(key), algorithm, receipt);
    }

    fn fingerprint_of(&self, key: &K) -> u64 {
        self.store.fingerprint_of(&self.hash(key))
    }
}

/// Without the secret.
impl<S: fmt::Debug> fmt::Debug for HashedKeys<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashedKeys")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
