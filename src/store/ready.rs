//! Stores of this process, for code that is written for any store.

use super::async_store::AsyncStore;
use super::blocking::Store;
use super::error::StoreError;
use super::memory::{InProcess, MemoryStore};
use crate::algorithm::{Algorithm, Carry};
use crate::decision::Decision;
use crate::invalid_limit::InvalidLimit;
use crate::request::{Receipt, Request};
use crate::time::Timestamp;

/// Makes a [`MemoryStore`] a [`Store`] and an [`AsyncStore`] whose answers are ready at once.
///
/// Our own stores are all three already; this is for those of others.
///
#[cfg_attr(feature = "std", doc = "```")]
#[cfg_attr(not(feature = "std"), doc = "```ignore")]
/// use ratekeeper::store::Ready;
/// use ratekeeper::{KeyedLimiter, TableStore, TokenBucket};
///
/// let store = Ready(TableStore::<_, TokenBucket>::for_keys(100)?);
/// let limiter = KeyedLimiter::<u64, _, _>::with_store(TokenBucket::per_minute(1), store);
/// assert!(limiter.try_check(&7)?.is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Ready<S>(pub S);

impl<K: ?Sized, A: Algorithm, S: MemoryStore<K, A>> MemoryStore<K, A> for Ready<S> {
    fn decide(&self, key: &K, algorithm: &A, request: Request) -> Decision {
        self.0.decide(key, algorithm, request)
    }

    fn decide_at(&self, key: &K, algorithm: &A, request: Request, now: Timestamp) -> Decision {
        self.0.decide_at(key, algorithm, request, now)
    }

    fn accepts(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        self.0.accepts(algorithm)
    }

    fn change(&self, key: &K, old: &A, new: &A, carry: Carry) -> Decision {
        self.0.change(key, old, new, carry)
    }

    fn fingerprint(&self, key: &K) -> u64 {
        self.0.fingerprint(key)
    }
}

impl<S: InProcess> InProcess for Ready<S> {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

impl<K: ?Sized, A: Algorithm, S: MemoryStore<K, A>> Store<K, A> for Ready<S> {
    fn apply(&self, key: &K, algorithm: &A, request: Request) -> Result<Decision, StoreError> {
        Ok(self.0.decide(key, algorithm, request))
    }

    fn try_change(&self, key: &K, old: &A, new: &A, carry: Carry) -> Result<Decision, StoreError> {
        Ok(self.0.change(key, old, new, carry))
    }

    fn try_accepts(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        self.0.accepts(algorithm)
    }

    fn try_fingerprint(&self, key: &K) -> u64 {
        self.0.fingerprint(key)
    }
}

impl<K, A, S> AsyncStore<K, A> for Ready<S>
where
    K: ?Sized + Sync,
    A: Algorithm,
    S: MemoryStore<K, A> + Send + Sync,
{
    async fn apply_async(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> Result<Decision, StoreError> {
        Ok(self.0.decide(key, algorithm, request))
    }

    async fn change_async(
        &self,
        key: &K,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> Result<Decision, StoreError> {
        Ok(self.0.change(key, old, new, carry))
    }

    fn accepts_async(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        self.0.accepts(algorithm)
    }

    fn cancel(&self, key: &K, algorithm: &A, receipt: Receipt) {
        let _ = self
            .0
            .decide(key, algorithm, Request::refund(u64::MAX, receipt));
    }

    fn fingerprint_of(&self, key: &K) -> u64 {
        self.0.fingerprint(key)
    }
}

/// Answers for our own stores, which can also forget.
macro_rules! ready {
    ($(#[$attribute:meta])* [$($generics:ident),*] $store:ty, where $($bounds:tt)*) => {
        $(#[$attribute])*
        impl<Q: ?Sized, B: Algorithm, $($generics),*> Store<Q, B> for $store
        where
            Self: MemoryStore<Q, B>,
            $($bounds)*
        {
            fn apply(&self, key: &Q, algorithm: &B, request: Request) -> Result<Decision, StoreError> {
                Ok(self.decide(key, algorithm, request))
            }

            fn forget(&self, key: &Q, _algorithm: &B) -> Result<(), StoreError> {
                self.remove(key);
                Ok(())
            }

            fn try_change(&self, key: &Q, old: &B, new: &B, carry: Carry) -> Result<Decision, StoreError> {
                Ok(self.change(key, old, new, carry))
            }

            fn try_accepts(&self, algorithm: &B) -> Result<(), InvalidLimit> {
                self.accepts(algorithm)
            }

            fn try_fingerprint(&self, key: &Q) -> u64 {
                self.fingerprint(key)
            }
        }

        $(#[$attribute])*
        impl<Q: ?Sized + Sync, B: Algorithm, $($generics),*> AsyncStore<Q, B> for $store
        where
            Self: MemoryStore<Q, B> + Send + Sync,
            $($bounds)*
        {
            async fn apply_async(&self, key: &Q, algorithm: &B, request: Request) -> Result<Decision, StoreError> {
                Ok(self.decide(key, algorithm, request))
            }

            async fn forget_async(&self, key: &Q, _algorithm: &B) -> Result<(), StoreError> {
                self.remove(key);
                Ok(())
            }

            async fn change_async(&self, key: &Q, old: &B, new: &B, carry: Carry) -> Result<Decision, StoreError> {
                Ok(self.change(key, old, new, carry))
            }

            fn accepts_async(&self, algorithm: &B) -> Result<(), InvalidLimit> {
                self.accepts(algorithm)
            }

            fn cancel(&self, key: &Q, algorithm: &B, receipt: Receipt) {
                let _ = self.decide(key, algorithm, Request::refund(u64::MAX, receipt));
            }

            fn fingerprint_of(&self, key: &Q) -> u64 {
                self.fingerprint(key)
            }
        }
    };
}
ready! {
    #[cfg(feature = "dashmap")]
    [K, A, C] super::DashStore<K, A, C>,
    where
        K: Eq + core::hash::Hash + core::borrow::Borrow<Q>,
        Q: Eq + core::hash::Hash,
        A: Algorithm,
}
ready! {
    [A, C] super::TableStore<C, A>,
    where
        Q: core::hash::Hash,
        A: Algorithm<State: super::SlotState>,
}
