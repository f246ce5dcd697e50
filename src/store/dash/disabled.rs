//! Without the feature `dashmap` the type can be named, for default type parameters, but not made.

use core::convert::Infallible;
use core::fmt;
use core::marker::PhantomData;

use crate::algorithm::TokenBucket;
use crate::clock::StdClock;

/// A keyed store over a concurrent map. Needs the feature `dashmap`.
#[allow(dead_code)] // never made
pub struct DashStore<K: ?Sized, A = TokenBucket, C = StdClock> {
    never: Infallible,
    key: PhantomData<fn() -> *const K>,
    algorithm: PhantomData<fn() -> A>,
    clock: PhantomData<C>,
}

impl<K: ?Sized, A, C> fmt::Debug for DashStore<K, A, C> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.never {}
    }
}
