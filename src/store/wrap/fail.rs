//! What the wrappers that answer in place of a failing store have in common.

use core::fmt;

use crate::algorithm::Algorithm;
use crate::decision::Decision;
use crate::request::{Receipt, Request};
use crate::store::error::ErrorKind;
use crate::sync::{AtomicU64, Ordering};
use crate::time::Timestamp;

/// What `algorithm` says to a key never seen.
pub(super) fn fresh<A: Algorithm>(algorithm: &A, request: &Request) -> Decision {
    let mut state = A::State::default();
    algorithm
        .step(Timestamp::ZERO, &mut state, request)
        .decision
}

/// Marks an answer as one in place of the store. Its receipt is worth nothing there: the store did not charge for it.
pub(super) fn degraded(decision: Decision) -> Decision {
    let receipt = Receipt::new(decision.granted(), Receipt::VOID_MARK);
    decision.with_receipt(receipt).with_degraded(true)
}

/// Which errors a wrapper answers in place of the store, how many it has, and what the last one was.
pub(super) struct Answered {
    /// Whether [`ErrorKind::Corrupt`] is among them.
    corrupt: bool,
    count: AtomicU64,
    /// 0: none yet; else one more than the place in `KINDS`.
    last: AtomicU64,
}

const KINDS: [ErrorKind; 6] = [
    ErrorKind::NotExecuted,
    ErrorKind::Unknown,
    ErrorKind::Contention,
    ErrorKind::Corrupt,
    ErrorKind::Config,
    ErrorKind::Unsupported,
];

impl Answered {
    pub(super) const fn new() -> Self {
        Self {
            corrupt: false,
            count: AtomicU64::new(0),
            last: AtomicU64::new(0),
        }
    }

    #[must_use]
    pub(super) const fn with_corrupt(mut self) -> Self {
        self.corrupt = true;
        self
    }

    /// Whether the wrapper answers in place of the store. What the store cannot do at all is a mistake in the program, and a
    /// value that makes no sense does not go away by itself: an answer would hide both.
    pub(super) const fn includes(&self, kind: ErrorKind) -> bool {
        match kind {
            ErrorKind::Unsupported => false,
            ErrorKind::Corrupt => self.corrupt,
            _ => true,
        }
    }

    pub(super) fn add(&self, kind: ErrorKind) {
        let place = KINDS.iter().position(|known| *known == kind);
        // Relaxed: statistics; nothing is read because of them.
        self.count.fetch_add(1, Ordering::Relaxed);
        self.last
            .store(place.map_or(0, |place| place as u64 + 1), Ordering::Relaxed);
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn last(&self) -> Option<ErrorKind> {
        let code = self.last.load(Ordering::Relaxed);
        let place = usize::try_from(code.checked_sub(1)?).ok()?;
        KINDS.get(place).copied()
    }
}

impl fmt::Debug for Answered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answered")
            .field("corrupt", &self.corrupt)
            .field("count", &self.count())
            .field("last", &self.last())
            .finish()
    }
}

/// A wrapper with a field `store`, a field `errors` and a method `in_place_of_store` answers that store's errors.
macro_rules! answer_errors {
    ($wrapper:ident) => {
        impl<S> $wrapper<S> {
            /// Answers [`Corrupt`](ErrorKind::Corrupt) as well. The store is well then, and what it holds for the key makes no sense
            /// to this program: another wrote it, or this limit never wrote there. It stays so until somebody removes it, so
            /// this lasts for as long as that takes.
            #[must_use]
            pub const fn answering_corrupt(mut self) -> Self {
                self.errors = self.errors.with_corrupt();
                self
            }

            /// How many requests were answered in place of the store.
            pub fn errors_answered(&self) -> u64 {
                self.errors.count()
            }

            /// What kind of error the last of them was; `None` if there was none.
            pub fn last_error(&self) -> Option<ErrorKind> {
                self.errors.last()
            }

            /// The inner store.
            pub const fn get_ref(&self) -> &S {
                &self.store
            }

            fn settle<A: Algorithm>(
                &self,
                algorithm: &A,
                asked: Asked,
                result: Result<Decision, StoreError>,
            ) -> Result<Decision, StoreError> {
                match result {
                    Err(error) if self.errors.includes(error.kind()) => {
                        self.errors.add(error.kind());
                        Ok(self.in_place_of_store(algorithm, asked))
                    }
                    decided => decided,
                }
            }

            fn settle_batch<K: ?Sized, A: Algorithm>(&self, items: &mut [Item<'_, K, A>]) {
                for item in items {
                    let is_answered = |kind: &ErrorKind| self.errors.includes(*kind);
                    if let Some(kind) = item.error_kind().filter(is_answered) {
                        self.errors.add(kind);
                        let decision = self.in_place_of_store(item.algorithm(), item.asked());
                        item.answer(Ok(decision));
                    }
                }
            }
        }

        passed_on!(InProcess for $wrapper<S>);

        impl<K: ?Sized, A: Algorithm, S: Store<K, A>> Store<K, A> for $wrapper<S> {
            fn apply(
                &self,
                key: &K,
                algorithm: &A,
                request: Request,
            ) -> Result<Decision, StoreError> {
                let asked = request.asked();
                self.settle(algorithm, asked, self.store.apply(key, algorithm, request))
            }

            fn apply_batch(&self, items: &mut [Item<'_, K, A>]) {
                self.store.apply_batch(items);
                self.settle_batch(items);
            }

            fn forget(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
                self.store.forget(key, algorithm)
            }

            fn try_change(
                &self,
                key: &K,
                old: &A,
                new: &A,
                carry: Carry,
            ) -> Result<Decision, StoreError> {
                self.store.try_change(key, old, new, carry)
            }

            passed_on!(Store);
        }

        impl<K, A, S> AsyncStore<K, A> for $wrapper<S>
        where
            K: ?Sized + Sync,
            A: Algorithm,
            S: AsyncStore<K, A>,
        {
            async fn apply_async(
                &self,
                key: &K,
                algorithm: &A,
                request: Request,
            ) -> Result<Decision, StoreError> {
                let asked = request.asked();
                let result = self.store.apply_async(key, algorithm, request).await;
                self.settle(algorithm, asked, result)
            }

            async fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) {
                self.store.apply_batch_async(items).await;
                self.settle_batch(items);
            }

            async fn forget_async(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
                self.store.forget_async(key, algorithm).await
            }

            async fn change_async(
                &self,
                key: &K,
                old: &A,
                new: &A,
                carry: Carry,
            ) -> Result<Decision, StoreError> {
                self.store.change_async(key, old, new, carry).await
            }

            fn cancel(&self, key: &K, algorithm: &A, receipt: Receipt) {
                self.store.cancel(key, algorithm, receipt);
            }

            passed_on!(AsyncStore);
        }
    };
}
pub(super) use answer_errors;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_is_the_last_one() {
        let errors = Answered::new();
        assert_eq!((errors.count(), errors.last()), (0, None));
        for (count, kind) in (1..).zip(KINDS) {
            errors.add(kind);
            assert_eq!((errors.count(), errors.last()), (count, Some(kind)));
        }
    }
}
