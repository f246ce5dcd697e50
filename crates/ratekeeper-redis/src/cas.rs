//! Redis as a backend that compares and swaps, for algorithms without a script.

use std::sync::LazyLock;
use std::time::Duration;

use ratekeeper::store::{AsyncCasStore, Key, KeyKind, Loaded, StateBytes, StoreError, Swap};
use redis::aio::{ConnectionLike, ConnectionManager};

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
///
/// # Time
/// The server's. Over a store [with a clock of its own](RedisStore::with_clock), the [`CasLoop`](ratekeeper::store::CasLoop)'s:
/// give it the same one. Then values carry the instant of their write, processes may differ by its `max_skew`, and a plain
/// [`RedisStore`] does not read those values.
#[derive(Clone, Debug)]
pub struct RedisCas<C = ConnectionManager>(pub RedisStore<C>);

impl<K: Key + ?Sized, C: ConnectionLike + Clone + Send + Sync> AsyncCasStore<K> for RedisCas<C> {
    /// Values are compared themselves.
    type Version = ();

    async fn load_async(&self, key: &K, kind: &KeyKind) -> Result<Loaded<()>, StoreError> {
        let loaded = ByServer(&self.0).load_async(key, kind).await?;
        Ok(self.in_its_time(loaded))
    }

    async fn compare_exchange_async(
        &self,
        key: &K,
        kind: &KeyKind,
        seen: &Loaded<()>,
        new: &StateBytes,
        keep: Duration,
    ) -> Result<Swap<()>, StoreError> {
        let inner = ByServer(&self.0);
        let swap = inner.compare_exchange_async(key, kind, seen, new, keep);
        Ok(match swap.await? {
            Swap::Conflict(Some(fresh)) => Swap::Conflict(Some(self.in_its_time(fresh))),
            swap => swap,
        })
    }

    async fn remove_async(&self, key: &K, kind: &KeyKind) -> Result<(), StoreError> {
        ByServer(&self.0).remove_async(key, kind).await
    }
}

impl<C> RedisCas<C> {
    /// Without an instant if that is the reading of a process: there may be others, whose clocks differ.
    fn in_its_time(&self, loaded: Loaded<()>) -> Loaded<()> {
        Loaded {
            now: loaded.now.filter(|_| self.0.has_the_servers_time()),
            ..loaded
        }
    }
}

/// The same, where one clock counts for all: the server's, or the one that the store was given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByServer<'s, C>(pub(crate) &'s RedisStore<C>);

impl<K: Key + ?Sized, C: ConnectionLike + Clone + Send + Sync> AsyncCasStore<K>
    for ByServer<'_, C>
{
    type Version = ();

    async fn load_async(&self, key: &K, kind: &KeyKind) -> Result<Loaded<()>, StoreError> {
        let key = self.0.namespace.key_of_kind(key, kind);
        found(&self.0.run(&key, &Call::look()).await?)
    }

    async fn compare_exchange_async(
        &self,
        key: &K,
        kind: &KeyKind,
        seen: &Loaded<()>,
        new: &StateBytes,
        keep: Duration,
    ) -> Result<Swap<()>, StoreError> {
        let key = self.0.namespace.key_of_kind(key, kind);
        let expected = seen.state.as_deref().unwrap_or_default();
        let call = exchange(expected, new, keep, self.0.grace());
        let reply = self.0.run(&key, &call).await?;
        if reply.bytes(2)?.is_empty() {
            return Ok(Swap::Conflict(Some(found(&reply)?)));
        }
        Ok(Swap::Done)
    }

    async fn remove_async(&self, key: &K, kind: &KeyKind) -> Result<(), StoreError> {
        let key = self.0.namespace.key_of_kind(key, kind);
        self.0.delete(&key).await
    }
}

/// The call that puts `new` in the place of `expected`, empty for none.
pub(crate) fn exchange(expected: &[u8], new: &StateBytes, keep: Duration, grace: Duration) -> Call {
    static SCRIPT: LazyLock<Script> =
        LazyLock::new(|| Script::after_prologue(&[include_str!("scripts/cas.lua")]));

    // A longer life than a server can count is endless for it, and for us.
    let keep_ms = keep.saturating_add(grace).as_nanos().div_ceil(1_000_000);
    let keep_ms = keep_ms.clamp(1, 1 << 53).to_string().into_bytes();
    Call::new(&SCRIPT, vec![expected.to_vec(), new.to_vec(), keep_ms])
}

fn found(reply: &Reply) -> Result<Loaded<()>, StoreError> {
    Ok(Loaded {
        state: stored(reply.bytes(1)?)?,
        version: (),
        now: Some(reply.now()),
    })
}
