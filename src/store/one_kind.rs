//! That all states of a store in this process are of one kind.

use crate::algorithm::Algorithm;
use crate::state::State;
use crate::sync::{AtomicU64, Ordering};

/// The kind of states that a store holds: that of the first limit it is asked under.
///
/// A window's counts mean something else to a window of another length, and everything would pass. Single words are debts in
/// time under every limit and need no such care, so for them nothing is compared.
#[derive(Debug)]
pub(crate) struct OneKind {
    /// 0: not asked yet.
    kind: AtomicU64,
}

impl OneKind {
    pub(crate) const fn new() -> Self {
        Self {
            kind: AtomicU64::new(0),
        }
    }

    /// Whether `algorithm` may look at the store's states.
    #[inline]
    pub(crate) fn admits<A: Algorithm>(&self, algorithm: &A) -> bool {
        if A::State::IS_ORDERED {
            return true;
        }
        let asked = algorithm.state_kind().number();
        // Relaxed: the word is all there is to know, and it changes once.
        let held = self.kind.load(Ordering::Relaxed);
        held == asked || (held == 0 && self.settle(asked))
    }

    #[cold]
    fn settle(&self, asked: u64) -> bool {
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        match self.kind.compare_exchange(0, asked, success, failure) {
            Ok(_) => true,
            Err(other) => other == asked, // somebody was faster
        }
    }

    /// Whether `algorithm` can tell what the store's states owe. Unlike [`admits`](Self::admits), it settles nothing.
    #[cfg(feature = "dashmap")]
    pub(crate) fn understands<A: Algorithm>(&self, algorithm: &A) -> bool {
        let held = self.kind.load(Ordering::Relaxed);
        A::State::IS_ORDERED || held == 0 || held == algorithm.state_kind().number()
    }

    /// The store is empty again.
    #[cfg(feature = "dashmap")]
    pub(crate) fn forget(&self) {
        self.kind.store(0, Ordering::Relaxed);
    }
}
