//! What the author of a store provides.

use alloc::boxed::Box;
use alloc::string::String;
use core::pin::Pin;
use core::time::Duration;

use super::backend::Backend;
use super::pausing::PausingClock;
use super::repairs::Repairs;
use crate::algorithm::{All, FixedWindow, SlidingLog, SlidingWindow, TokenBucket};
use crate::clock::ManualClock;
use crate::store::DynStore;

/// A future that the kit asks a [`Subject`] to run.
pub type Work<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A kind of store under test, and all that the kit needs to know about it.
///
/// Two methods are required. The others say what else there is to be tested; whatever is left out must be named to
/// [`check_all`](super::check_all) as a [`Need`](super::Need) that the subject lacks.
///
/// # Key spaces
/// Each method that opens a store is given the name of a key space, as for [`Namespace`](crate::store::Namespace): letters,
/// digits, `.`, `_` and `-`, at most 48 of them. The first call with a name makes a store over a key space that nobody has
/// used. Later calls with that name are further handles on the same data, like another process with another connection.
/// Distinct names are distinct key spaces. The kit uses each name for one algorithm, and never again in another run.
///
/// A store in this process keeps its spaces in a [`Spaces`](super::Spaces).
pub trait Subject: Sync {
    /// A store of token buckets over `space`.
    fn buckets(&self, space: &str) -> DynStore<str, TokenBucket>;

    /// The clock by which all stores of this subject tell the time; the kit moves it, also by years and backwards. A
    /// subject without one runs on its backend's own clock, and the clauses that move time do not apply to it.
    ///
    /// If the backend drops states by a clock of its own, let the store keep them a minute longer than it must: this clock
    /// stands still while that one goes on.
    fn clock(&self) -> Option<&ManualClock>;

    /// The same clock, if it can hold readers up. Use one for stores of this process: what they do with a reading that others
    /// have overtaken is tested with it, and hardly without.
    fn pausing_clock(&self) -> Option<&PausingClock> {
        None
    }

    /// A store of sliding windows over `space`.
    fn windows(&self, space: &str) -> Option<DynStore<str, SlidingWindow>> {
        let _ = space;
        None
    }

    /// A store of fixed windows over `space`.
    fn fixed_windows(&self, space: &str) -> Option<DynStore<str, FixedWindow>> {
        let _ = space;
        None
    }

    /// A store of three buckets at once over `space`.
    fn several(&self, space: &str) -> Option<DynStore<str, All<[TokenBucket; 3]>>> {
        let _ = space;
        None
    }

    /// A store of exact logs over `space`.
    fn logs(&self, space: &str) -> Option<DynStore<str, SlidingLog>> {
        let _ = space;
        None
    }

    /// A store over `space` whose keys are pairs of texts.
    fn tuple_keys(&self, space: &str) -> Option<DynStore<(String, String), TokenBucket>> {
        let _ = space;
        None
    }

    /// A store over `space` whose keys are arbitrary bytes.
    fn byte_keys(&self, space: &str) -> Option<DynStore<[u8], TokenBucket>> {
        let _ = space;
        None
    }

    /// The backend behind the stores, if it can be reached around them.
    fn backend(&self) -> Option<&dyn Backend> {
        None
    }

    /// Runs a future to its end: a runtime's `block_on`. The default serves futures that need no runtime. The kit calls it
    /// from several threads at once, and measures real time. The runtime's input, output and timers must go on while a caller
    /// is polled: take one with threads of its own, and do not pause its time.
    fn block_on(&self, work: Work<'_>) {
        super::block_on(work);
    }

    /// About how many requests one clause may make: 20,000, which takes a store in this process a few milliseconds. For a
    /// server, 1,000 is enough.
    fn requests_per_clause(&self) -> u32 {
        20_000
    }

    /// The smallest step of time that windows distinguish: the kit moves the clock in whole ones of these while it tests
    /// windows, and asks for windows that are multiples of it.
    fn window_tick(&self) -> Duration {
        Duration::from_nanos(1)
    }

    /// The same for exact logs.
    fn log_tick(&self) -> Duration {
        Duration::from_nanos(1)
    }

    /// Whether a reading of [`clock`](Self::clock) can be overtaken (no, by default) on its way to the state: the store sends it along
    /// with the request, and the backend uses it. For a backend's own clock that does not happen.
    fn sends_readings(&self) -> bool {
        false
    }

    /// What the stores do about states that a clock left ahead of itself: nothing, by default, which is right in this process.
    fn repairs(&self) -> Repairs {
        Repairs::Nothing
    }

    /// Within which time the stores answer, whatever the backend does.
    fn deadline(&self) -> Option<Duration> {
        None
    }
}
