//! The store trait of this process.

use crate::algorithm::{Algorithm, Carry};
use crate::decision::Decision;
use crate::invalid_limit::InvalidLimit;
use crate::request::Request;
use crate::time::Timestamp;

/// A keyed home for states in this process, which cannot fail.
///
/// # Contract
/// * Linearizable per key: of concurrent requests on one key, each sees the effects of those before it,
///   and none is lost.
/// * A step that does not write leaves no trace: a refusal creates no entry.
/// * A state is kept at least as long as its step's [`keep`](crate::Step::keep) says.
///
/// # Implementing
/// Two methods; this one keeps 64-bit states in a mutex-guarded map, for ever.
///
/// ```
/// use std::collections::HashMap;
/// use std::hash::Hash;
/// use std::sync::Mutex;
///
/// use ratekeeper::{
///     Algorithm, Clock, Decision, KeyedLimiter, ManualClock, MemoryStore, Request, Timestamp,
///     TokenBucket,
/// };
///
/// struct MapStore<K>(Mutex<HashMap<K, u64>>, ManualClock);
///
/// impl<K: Clone + Eq + Hash, A: Algorithm<State = u64>> MemoryStore<K, A> for MapStore<K> {
///     fn decide(&self, key: &K, algorithm: &A, request: Request) -> Decision {
///         self.decide_at(key, algorithm, request, self.1.now())
///     }
///
///     fn decide_at(&self, key: &K, algorithm: &A, request: Request, now: Timestamp) -> Decision {
///         let mut states = self.0.lock().unwrap();
///         let mut state = states.get(key).copied().unwrap_or_default();
///         let step = algorithm.step(now, &mut state, &request);
///         if step.keep.is_some() {
///             states.insert(key.clone(), state);
///         }
///         step.decision
///     }
/// }
///
/// let store = MapStore(Mutex::default(), ManualClock::new());
/// let limiter = KeyedLimiter::<u32, _, _>::with_store(TokenBucket::per_second(1), store);
/// assert!(limiter.check(&7).is_allowed());
/// assert!(!limiter.check(&7).is_allowed());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not keep the states of `{A}` for keys `{K}` in this process",
    note = "the key must be hashable and cloneable, and the algorithm's state the one the store was made for"
)]
pub trait MemoryStore<K: ?Sized, A: Algorithm> {
    /// Decides at the store's own time.
    fn decide(&self, key: &K, algorithm: &A, request: Request) -> Decision;

    /// Decides at `now`. The readings that reach one key should not run backwards: where they differ by up to `d`, a bucket
    /// lets pass `burst + (W + d) / T` in a span of `W`.
    fn decide_at(&self, key: &K, algorithm: &A, request: Request, now: Timestamp) -> Decision;

    /// Whether the store can enforce `algorithm`; stores that pack their states cannot enforce every limit.
    ///
    /// # Errors
    /// [`InvalidLimit`] if the limit does not fit. Requests under it are then answered with
    /// [`Outcome::Unsupported`](crate::Outcome::Unsupported).
    fn accepts(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        let _ = algorithm;
        Ok(())
    }

    /// Moves `key` from the limit `old` to `new`, now and once: runs [`Change`](crate::Change) on it, if the store can. The
    /// decision is a peek under `new`.
    ///
    /// [`Outcome::Unsupported`](crate::Outcome::Unsupported) if the store cannot, or the limits do not share states; nothing was
    /// changed then.
    fn change(&self, key: &K, old: &A, new: &A, carry: Carry) -> Decision {
        let _ = (key, old, new, carry);
        Decision::unsupported()
    }

    /// A number that tells this store's keys apart, by a hash with a secret key; 0 if the store has none. Two keys have the
    /// same with a probability of 2⁻⁶⁴.
    fn fingerprint(&self, key: &K) -> u64 {
        let _ = key;
        0
    }
}

/// Stores that tell the time by a clock of this process.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not known to keep its states in this process and by its clock",
    note = "a limit can be `set` at run time over stores of this process only; on a shared store every process must learn of the change: give the limit a version number there"
)]
pub trait InProcess {
    /// What that clock shows.
    fn now(&self) -> Timestamp;
}

/// Pointers to stores are stores.
macro_rules! forward {
    ($($pointer:ty),+) => {
        $(impl<K: ?Sized, A: Algorithm, S: MemoryStore<K, A> + ?Sized> MemoryStore<K, A> for $pointer {
            fn decide(&self, key: &K, algorithm: &A, request: Request) -> Decision {
                (**self).decide(key, algorithm, request)
            }

            fn decide_at(&self, key: &K, algorithm: &A, request: Request, now: Timestamp) -> Decision {
                (**self).decide_at(key, algorithm, request, now)
            }

            fn accepts(&self, algorithm: &A) -> Result<(), InvalidLimit> {
                (**self).accepts(algorithm)
            }

            fn change(&self, key: &K, old: &A, new: &A, carry: Carry) -> Decision {
                (**self).change(key, old, new, carry)
            }

            fn fingerprint(&self, key: &K) -> u64 {
                (**self).fingerprint(key)
            }
        }

        impl<S: InProcess + ?Sized> InProcess for $pointer {
            fn now(&self) -> Timestamp {
                (**self).now()
            }
        })+
    };
}
forward!(&S);
#[cfg(feature = "alloc")]
forward!(alloc::boxed::Box<S>);
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
forward!(alloc::sync::Arc<S>);
