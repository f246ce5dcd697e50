//! PostgreSQL as a backend that compares and swaps, for algorithms without a function.

use std::time::Duration;

use ratekeeper::store::{AsyncCasStore, Key, Loaded, StateBytes, StoreError, Swap};
use tokio_postgres::types::Type;

use crate::algorithm::{Answer, Call, Reply};
use crate::clients::Clients;
use crate::connections::Connections;
use crate::numeric::Numeric;
use crate::store::{PostgresStore, micros};

/// Compare-and-swap on PostgreSQL: with [`CasLoop`](ratekeeper::store::CasLoop), a store for every algorithm that has a
/// wire form, without a function of its own.
///
/// A decision that changes the state takes two round trips, and callers that change the same key at the same time repeat
/// theirs. Where an algorithm has a function, [`PostgresStore`] is the better choice.
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
    /// A longer life is as good as endless, and a timestamp of PostgreSQL has room for it: ten thousand years.
    const LONGEST_LIFE: Duration = Duration::from_secs(315_569_520_000);

    /// With a clock of our own, that is read again, because the reading must not be older than the state.
    fn found(&self, reply: &Reply) -> Loaded<()> {
        Loaded {
            state: reply.old,
            version: (),
            now: Some(self.0.now().unwrap_or(reply.now)),
        }
    }
}

impl<K: Key + ?Sized, C: Clients> AsyncCasStore<K> for PostgresCas<C> {
    /// Values are compared themselves.
    type Version = ();

    async fn load_async(&self, key: &K) -> Result<Loaded<()>, StoreError> {
        let store = &self.0;
        let reply = store
            .run(&store.namespace.key(key), &Call::look(), store.due())
            .await?;
        Ok(self.found(&reply))
    }

    async fn compare_exchange_async(
        &self,
        key: &K,
        seen: &Loaded<()>,
        new: &StateBytes,
        keep: Duration,
    ) -> Result<Swap<()>, StoreError> {
        let store = &self.0;
        let key = store.namespace.key(key);
        let keep = keep.saturating_add(store.grace()).min(Self::LONGEST_LIFE);
        let (now, keep_us) = (store.sent().now, Numeric(micros(keep)));
        let (seen, new) = (seen.state.as_deref(), &**new);
        let parameters = [
            (&key as _, Type::BYTEA),
            (&now as _, Type::NUMERIC),
            (&keep_us as _, Type::NUMERIC),
            (&seen as _, Type::BYTEA),
            (&new as _, Type::BYTEA),
        ];
        let row = store
            .query(&store.schema.swap(), &parameters, store.due())
            .await?;
        let reply = Answer::new(&row)?.into_reply()?;
        Ok(match reply.new {
            Some(_) => Swap::Done,
            None => Swap::Conflict(Some(self.found(&reply))),
        })
    }

    async fn remove_async(&self, key: &K) -> Result<(), StoreError> {
        self.0.delete(&self.0.namespace.key(key)).await
    }
}
