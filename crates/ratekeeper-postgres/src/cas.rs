//! PostgreSQL as a backend that compares and swaps, for algorithms without a function.

use std::time::Duration;

use ratekeeper::store::{AsyncCasStore, Key, KeyKind, Loaded, StateBytes, StoreError, Swap};

use crate::algorithm::Reply;
use crate::clients::Clients;
use crate::connections::Connections;
use crate::store::PostgresStore;

/// Compare-and-swap on PostgreSQL: with [`CasLoop`](ratekeeper::store::CasLoop), a store for every algorithm that has a
/// wire form, without a function of its own.
///
/// A decision that changes the state takes two round trips, and callers that change the same key at the same time repeat
/// theirs. Where an algorithm has a function, [`PostgresStore`] is the better choice; both leave the same values under the same
/// keys.
///
/// # Time
/// The server's. If the store has [a clock of its own](PostgresStore::with_clock), the clock of the
/// [loop](ratekeeper::store::CasLoop::with_clock) counts instead of that, and values carry the instant of their write: then
/// functions cannot read them.
///
/// ```no_run
/// use ratekeeper::store::{CasLoop, Namespace};
/// use ratekeeper::{All, KeyedLimiter, SlidingWindow, TokenBucket};
/// use ratekeeper_postgres::{PostgresCas, PostgresStore};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let store = PostgresStore::connect("postgres://app@127.0.0.1/app", Namespace::new("api")?)?;
/// let store = CasLoop::new(PostgresCas(store), tokio::time::sleep);
/// let mixed = All((TokenBucket::per_second(10), SlidingWindow::per_hour(1000)));
/// let users = KeyedLimiter::<str, _, _>::with_store(mixed, store);
/// let decision = users.check_async("alice").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PostgresCas<C = Connections>(pub PostgresStore<C>);

impl<C> PostgresCas<C> {
    fn found(&self, reply: &Reply) -> Loaded<()> {
        let servers = self.0.now().is_none();
        Loaded {
            state: reply.old,
            version: (),
            now: servers.then_some(reply.now),
        }
    }
}

impl<K: Key + ?Sized, C: Clients> AsyncCasStore<K> for PostgresCas<C> {
    /// Values are compared themselves.
    type Version = ();

    async fn load_async(&self, key: &K, kind: &KeyKind) -> Result<Loaded<()>, StoreError> {
        let store = &self.0;
        let reply = store.look(&store.key(key, kind), store.due()).await?;
        Ok(self.found(&reply))
    }

    async fn compare_exchange_async(
        &self,
        key: &K,
        kind: &KeyKind,
        seen: &Loaded<()>,
        new: &StateBytes,
        keep: Duration,
    ) -> Result<Swap<()>, StoreError> {
        let store = &self.0;
        let key = store.key(key, kind);
        let seen = seen.state.as_ref();
        let reply = store.swap(&key, seen, new, keep, store.due()).await?;
        Ok(match reply.new {
            Some(_) => Swap::Done,
            None => Swap::Conflict(Some(self.found(&reply))),
        })
    }

    async fn remove_async(&self, key: &K, kind: &KeyKind) -> Result<(), StoreError> {
        self.0.delete(&self.0.key(key, kind)).await
    }
}
