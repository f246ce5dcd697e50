//! governor's limiters, with the parameters of ours.

use std::hash::Hash;
use std::num::NonZeroU32;

use governor::clock::{Clock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use super::{LASTING_BURST, NEVER_EMPTY};

type Instant<C> = <C as Clock>::Instant;
pub(crate) type Direct<C> = RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<Instant<C>>>;
pub(crate) type Keyed<K, C> = RateLimiter<K, DashMapStateStore<K>, C, NoOpMiddleware<Instant<C>>>;

/// The counterpart of [`WHOLE`](super::WHOLE). The same holds for fractional limits: governor rounds
/// them to whole nanoseconds.
pub(crate) fn whole() -> Quota {
    Quota::per_second(nonzero(10)).allow_burst(nonzero(NEVER_EMPTY))
}

/// The counterpart of [`LASTING`](super::LASTING).
pub(crate) fn lasting() -> Quota {
    Quota::per_minute(nonzero(1)).allow_burst(nonzero(LASTING_BURST))
}

/// The counterpart of [`SPENT`](super::SPENT).
pub(crate) fn spent() -> Quota {
    Quota::per_hour(nonzero(1))
}

/// One limit, on a clock of the caller's choice.
pub(crate) fn direct<C: Clock>(quota: Quota, clock: C) -> Direct<C> {
    Direct::direct_with_clock(quota, clock)
}

/// One limit per key, with governor's default hasher, on the operating system's clock.
pub(crate) fn keyed<K: Hash + Eq + Clone>(quota: Quota) -> Keyed<K, MonotonicClock> {
    Keyed::dashmap_with_clock(quota, MonotonicClock)
}

fn nonzero(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("above zero")
}
