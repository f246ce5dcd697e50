//! Redis as a backend that compares and swaps, for algorithms without a script.

use std::time::Duration;

use ratekeeper::store::{AsyncCasStore, Key, Loaded, StateBytes, StoreError, Swap};
use redis::aio::{ConnectionLike, ConnectionManager};
use std::sync::LazyLock;

use crate::algorithm::{Call, Reply, stored};
use crate::script::Script;
use crate::store::RedisStore;

/// Compare-and-swap on Redis: with [`CasLoop`](ratekeeper::store::CasLoop), a store for every algorithm that has a wire
/// form, without Lua of its own.
///
/// A decision that changes the state takes two round trips, and callers that change the same key at the same time repeat
/// theirs. Where an algorithm has a script, [`RedisStore`] is the better choice: 60 times faster on a hot key.
///
/// ```no_run
/// use ratekeeper::store::{CasLoop, Namespace};
/// use ratekeeper::{All, KeyedLimiter, SlidingWindow, TokenBucket};
/// use ratekeeper_redis::{RedisCas, RedisStore};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let store = RedisStore::connect("redis://127.0.0.1/", Namespace::new("api")?)?;
/// let store = CasLoop::new(RedisCas(store), tokio::time::sleep);
/// let mixed = All((TokenBucket::per_second(10), SlidingWindow::per_hour(1000)));
/// let users = KeyedLimiter::<str, _, _>::with_store(mixed, store);
/// let decision = users.check_async("alice").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RedisCas<C = ConnectionManager>(pub RedisStore<C>);

impl<K: Key + ?Sized, C: ConnectionLike + Clone + Send + Sync> AsyncCasStore<K> for RedisCas<C> {
    /// Values are compared themselves.
    type Version = ();

    async fn load_async(&self, key: &K) -> Result<Loaded<()>, StoreError> {
        let reply = self
            .0
            .run(&self.0.namespace.key(key), &Call::look())
            .await?;
        found(&reply)
    }

    async fn compare_exchange_async(
        &self,
        key: &K,
        seen: &Loaded<()>,
        new: &StateBytes,
        keep: Duration,
    ) -> Result<Swap<()>, StoreError> {
        static SCRIPT: LazyLock<Script> =
            LazyLock::new(|| Script::after_prologue(&[include_str!("scripts/cas.lua")]));

        let expected = seen.state.as_deref().unwrap_or_default().to_vec();
        // A longer life than a server can count is endless for it, and for us.
        let keep_ms = keep
            .saturating_add(self.0.grace())
            .as_nanos()
            .div_ceil(1_000_000);
        let keep_ms = keep_ms.clamp(1, 1 << 53).to_string().into_bytes();
        let call = Call::new(&SCRIPT, vec![expected, new.to_vec(), keep_ms]);
        let reply = self.0.run(&self.0.namespace.key(key), &call).await?;
        if reply.bytes(2)?.is_empty() {
            return Ok(Swap::Conflict(Some(found(&reply)?)));
        }
        Ok(Swap::Done)
    }

    async fn remove_async(&self, key: &K) -> Result<(), StoreError> {
        self.0.delete(&self.0.namespace.key(key)).await
    }
}

fn found(reply: &Reply) -> Result<Loaded<()>, StoreError> {
    Ok(Loaded {
        state: stored(reply.bytes(1)?)?,
        version: (),
        now: Some(reply.now()),
    })
}
