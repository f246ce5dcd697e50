//! Versions of a limit on one key: what this process does when a script has found the value of another one.
//!
//! The scripts decide under their own limit alone. Whatever else they find they leave as it is, and say so; then the newest
//! version that the key has met decides. If that is the value's, the script is called again with the value's limit, so that
//! processes with an old configuration do not contend with each other. If it is this process's, the value is exchanged for the
//! newer one, once per key and version, and the script is called again.

use ratekeeper::store::{ErrorKind, StoreError, Version};
use ratekeeper::{Decision, Request, TokenBucket};
use redis::aio::ConnectionLike;

use crate::algorithm::{RedisAlgorithm, Reply};
use crate::cas::exchange;
use crate::store::RedisStore;

/// How often the value may turn out to be of yet another version.
const MOST_ROUNDS: usize = 16;

impl<C: ConnectionLike + Clone + Send + Sync> RedisStore<C> {
    /// A decision on a key, whatever versions of the limit it meets.
    pub(crate) async fn decide<A: RedisAlgorithm>(
        &self,
        key: &[u8],
        algorithm: &A,
        request: &Request,
    ) -> Result<Decision, StoreError> {
        let call = algorithm.call(request, self.grace())?;
        let reply = self.run_once(key, &call).await?;
        if reply.is_of_another_version() {
            return self.settle(key, algorithm, request, reply).await;
        }
        algorithm.answer(request, &reply)
    }

    /// The decision after a reply that decided nothing.
    pub(crate) async fn settle<A: RedisAlgorithm>(
        &self,
        key: &[u8],
        algorithm: &A,
        request: &Request,
        mut reply: Reply,
    ) -> Result<Decision, StoreError> {
        let mut newer: Option<TokenBucket> = None;
        for _ in 0..MOST_ROUNDS {
            let version = match &newer {
                Some(limit) => limit.compare(&reply)?,
                None => algorithm.compare(&reply)?,
            };
            match version {
                Version::Newer(limit) => newer = Some(limit),
                Version::Older(write) => {
                    let call = exchange(reply.bytes(1)?, &write.value, write.keep, self.grace());
                    // Whether or not somebody was faster, the next call says what is there now.
                    self.run_once(key, &call).await?;
                }
                Version::Same => {}
            }
            let call = match &newer {
                Some(limit) => limit.call(request, self.grace())?,
                None => algorithm.call(request, self.grace())?,
            };
            reply = self.run_once(key, &call).await?;
            if !reply.is_of_another_version() {
                return match &newer {
                    Some(limit) => limit.answer(request, &reply),
                    None => algorithm.answer(request, &reply),
                };
            }
        }
        Err(StoreError::new(
            ErrorKind::Contention,
            "the versions of the limit on this key did not come to rest",
        ))
    }
}
