//! Key spaces of stores in this process.

use alloc::string::String;
use alloc::sync::{Arc, Weak};
use core::any::{Any, TypeId};
use core::fmt;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The stores of a [`Subject`](super::Subject) whose data lives in them: one per key space, given out again while somebody
/// still holds it.
///
/// ```
/// use ratekeeper::conformance::Spaces;
/// use ratekeeper::{ManualClock, TableStore, TokenBucket};
///
/// let spaces = Spaces::new();
/// let open = |space| {
///     spaces.open(space, || TableStore::<_, TokenBucket>::with_clock(100, ManualClock::new()).unwrap())
/// };
/// let (one, same, other) = (open("one"), open("one"), open("other"));
/// assert!(std::sync::Arc::ptr_eq(&one, &same) && !std::sync::Arc::ptr_eq(&one, &other));
/// ```
#[derive(Default)]
pub struct Spaces {
    stores: Mutex<HashMap<(TypeId, String), Weak<dyn Any + Send + Sync>>>,
}

impl Spaces {
    /// No spaces yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The store over `space`, made by `make` if nobody holds one.
    pub fn open<S: Any + Send + Sync>(&self, space: &str, make: impl FnOnce() -> S) -> Arc<S> {
        // A clause that panicked elsewhere has left the map as it was.
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (TypeId::of::<S>(), String::from(space));
        let held = stores.get(&name).and_then(Weak::upgrade);
        if let Some(store) = held.and_then(|store| store.downcast().ok()) {
            return store;
        }
        stores.retain(|_, store| store.strong_count() > 0);
        let store = Arc::new(make());
        let erased: Arc<dyn Any + Send + Sync> = Arc::<S>::clone(&store);
        stores.insert(name, Arc::downgrade(&erased));
        store
    }
}

impl fmt::Debug for Spaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spaces").finish_non_exhaustive()
    }
}
