//! A test kit for authors of stores: one function for each clause of the [contract](crate::store::Store).
//!
//! Implement [`Subject`] for your store, about twenty lines, and call [`check_all`] in a test. It opens stores over key spaces
//! of its own, asks, moves the clock, looks into the backend, and panics with what was done, what should have come of it and
//! what did. [`clauses`] lists the functions, for use one by one.
//!
//! # Example
//! A store that keeps bytes in a map, as a server would, and its test:
//!
//! ```
//! use std::collections::HashMap;
//! use std::sync::{Arc, Mutex};
//!
//! use ratekeeper::conformance::{Blocking, Need, PausingClock, Spaces, Subject, check_all};
//! use ratekeeper::store::{DynStore, Key, StateBytes, Store, StoreError};
//! use ratekeeper::{Algorithm, Clock, Decision, ManualClock, Request, TokenBucket};
//!
//! struct MapStore<C> {
//!     values: Mutex<HashMap<Vec<u8>, StateBytes>>,
//!     clock: C,
//! }
//!
//! impl<K: Key + ?Sized, A: Algorithm, C: Clock> Store<K, A> for MapStore<C> {
//!     fn apply(&self, key: &K, algorithm: &A, request: Request) -> Result<Decision, StoreError> {
//!         let mut bytes = Vec::new();
//!         key.write_alone(&mut |part| bytes.extend_from_slice(part));
//!         let mut values = self.values.lock().unwrap();
//!         let mut state = match values.get(&bytes) {
//!             Some(value) => value.decode(algorithm)?,
//!             None => A::State::default(),
//!         };
//!         let step = algorithm.step(self.clock.now(), &mut state, &request);
//!         if step.keep.is_some() {
//!             values.insert(bytes, StateBytes::encode(algorithm, &state)?);
//!         }
//!         Ok(step.decision)
//!     }
//! }
//!
//! struct MapStores {
//!     clock: Arc<PausingClock>, // a `ManualClock`, and a little more
//!
//!     spaces: Spaces,
//! }
//!
//! impl Subject for MapStores {
//!     fn buckets(&self, space: &str) -> DynStore<str, TokenBucket> {
//!         DynStore::new(Blocking(self.spaces.open(space, || MapStore {
//!             values: Mutex::default(),
//!             clock: Arc::clone(&self.clock),
//!         })))
//!     }
//!
//!     fn clock(&self) -> Option<&ManualClock> {
//!         Some(&self.clock)
//!     }
//!
//!     fn pausing_clock(&self) -> Option<&PausingClock> {
//!         Some(&self.clock)
//!     }
//! }
//!
//! // #[test]
//! fn map_stores_keep_the_contract() {
//!     let stores = MapStores { clock: Arc::default(), spaces: Spaces::new() };
//!     check_all(&stores, &[
//!         Need::Backend, Need::Windows, Need::FixedWindows, Need::Several, Need::Logs, Need::TupleKeys, Need::ByteKeys,
//!         Need::Forgetting, Need::Changes, Need::Repairs,
//!     ]);
//! }
//! # map_stores_keep_the_contract();
//! ```
//!
//! The list in the last line says what was *not* tested; it must be exact. This store would be tested further with a
//! [`Backend`], which shows that its states are never dropped, and with windows, which it supports already.
//!
//! # Which store
//! | a store that is | goes into a [`DynStore`](crate::store::DynStore) as |
//! |---|---|
//! | an [`AsyncStore`](crate::store::AsyncStore) | itself |
//! | a [`Store`](crate::store::Store) | [`Blocking`]`(store)` |
//! | a [`MemoryStore`](crate::MemoryStore) | [`Ready`](crate::store::Ready)`(store)` |
//! | a [`CasStore`](crate::store::CasStore) | [`Blocking`]`(`[`CasLoop`](crate::store::CasLoop)`::with_clock(store, …))` |
//! | an [`AsyncCasStore`](crate::store::AsyncCasStore) | [`CasLoop`](crate::store::CasLoop)`::with_clock(store, …)` |
//!
//! # A server
//! Give [`Subject::block_on`] your runtime, [`Subject::requests_per_clause`] about 1,000, and [`Subject::deadline`] what you
//! document. Run the kit twice: once with a clock that is told to the server, which checks every number, and once with the
//! server's own, [`Subject::clock`] being `None`. A missing server should fail the test.
//!
//! To check what happens when the server fails, put something that can break connections in between, and implement
//! [`Backend::break_with`].
//!
//! # What it cannot show
//! Failovers, evictions, and the clocks of several servers are the operator's; a store documents what they cost.

mod backend;
mod blocking;
pub mod clauses;
mod client;
mod draw;
mod finding;
mod history;
mod kit;
mod need;
mod pausing;
mod repairs;
mod report;
mod run;
mod seen;
mod spaces;
mod subject;

pub use self::backend::{Backend, Fault, Stored};
pub use self::blocking::Blocking;
pub use self::clauses::{CLAUSES, Clause};
pub use self::finding::{Checked, Finding};
pub use self::need::Need;
pub use self::pausing::PausingClock;
pub use self::repairs::Repairs;
pub use self::report::{Report, check_all};
pub use self::run::block_on;
pub use self::spaces::Spaces;
pub use self::subject::{Subject, Work};
