//! Several decisions in one round trip.

use std::collections::{HashMap, HashSet};

use futures_util::future::join_all;
use ratekeeper::Request;
use ratekeeper::store::{Item, Key, KeyKind, StoreError, answer_at_once};
use redis::aio::ConnectionLike;
use redis::{Cmd, Pipeline, RedisError, Value};
use tokio::time::{Instant, timeout_at};

use crate::algorithm::{Call, RedisAlgorithm, Reply};
use crate::error::{deadline_passed, store_error};
use crate::store::{RedisStore, is_unknown_script};

/// Commands in one pipeline at most: a larger one would fill the sockets' buffers while nobody reads.
const MOST_COMMANDS: usize = 500;

/// What one item asks of the server.
struct Asked<'b, 'a, K: ?Sized, A> {
    item: &'b mut Item<'a, K, A>,
    request: Request,
    key: Vec<u8>,
    call: Call,
}

/// Answers all items, in pipelines.
pub(crate) async fn apply<K, A, C>(store: &RedisStore<C>, items: &mut [Item<'_, K, A>])
where
    K: Key + ?Sized,
    A: RedisAlgorithm,
    C: ConnectionLike + Clone + Send + Sync,
{
    let deadline = Instant::now() + store.deadline();
    let mut asked = Vec::with_capacity(items.len());
    for item in items {
        let Some(request) = item.take_request() else {
            continue;
        };
        let algorithm = item.algorithm();
        if let Some(decision) = answer_at_once(algorithm, &request) {
            item.set_result(Ok(decision));
            continue;
        }
        match algorithm.call(&request, store.grace()) {
            Ok(call) => {
                let kind = KeyKind::of(algorithm);
                let key = store.namespace.key_of_kind(item.key(), &kind);
                asked.push(Asked {
                    item,
                    request,
                    key,
                    call,
                });
            }
            Err(error) => item.set_result(Err(error)),
        }
    }
    let mut singly = Vec::new();
    let mut in_pipelines = Vec::with_capacity(asked.len());
    let disputed = disputed_keys(&asked);
    for one in asked {
        if store.is_cluster || disputed.contains(&one.key) {
            singly.push((one, None));
        } else {
            in_pipelines.push(one);
        }
    }
    let mut in_pipelines = in_pipelines.into_iter();
    loop {
        let part: Vec<_> = in_pipelines.by_ref().take(MOST_COMMANDS).collect();
        if part.is_empty() {
            break;
        }
        let results = timeout_at(deadline, run(store, &part)).await;
        let results =
            results.unwrap_or_else(|_| part.iter().map(|_| Err(deadline_passed())).collect());
        for (one, result) in part.into_iter().zip(results) {
            match result {
                Ok(reply) if reply.is_of_another_version() => singly.push((one, Some(reply))),
                result => finish(one, result),
            }
        }
    }
    one_by_one(store, singly, deadline).await;
}

/// The keys that are asked for under several versions of a limit: one that finds another's value is decided later than those
/// behind it, which would change the order of a key's items. (Under a single version that takes a value that expires between
/// two items, and then nothing stands before the first.)
fn disputed_keys<K: ?Sized, A>(asked: &[Asked<'_, '_, K, A>]) -> HashSet<Vec<u8>> {
    if asked.iter().all(|one| one.call.version == 0) {
        return HashSet::new();
    }
    let mut versions = HashMap::new();
    let mut disputed = HashSet::new();
    for Asked { key, call, .. } in asked {
        if *versions.entry(key).or_insert(call.version) != call.version {
            disputed.insert(key.clone());
        }
    }
    disputed
}

/// All keys at once, the items of one key in order: in a cluster, where each command finds its own node, and where versions of
/// a limit meet.
async fn one_by_one<K, A, C>(
    store: &RedisStore<C>,
    asked: Vec<(Asked<'_, '_, K, A>, Option<Reply>)>,
    deadline: Instant,
) where
    K: Key + ?Sized,
    A: RedisAlgorithm,
    C: ConnectionLike + Clone + Send + Sync,
{
    let mut by_key: HashMap<Vec<u8>, Vec<_>> = HashMap::new();
    for one in asked {
        by_key.entry(one.0.key.clone()).or_default().push(one);
    }
    join_all(by_key.into_values().map(|of_one_key| async {
        for (one, reply) in of_one_key {
            let algorithm = one.item.algorithm();
            let work = async {
                match reply {
                    Some(reply) => {
                        let settled = store.settle(&one.key, algorithm, &one.request, reply);
                        settled.await
                    }
                    None => store.decide(&one.key, algorithm, &one.request).await,
                }
            };
            let result = timeout_at(deadline, work).await;
            one.item
                .set_result(result.unwrap_or_else(|_| Err(deadline_passed())));
        }
    }))
    .await;
}

fn finish<K: ?Sized, A: RedisAlgorithm>(
    one: Asked<'_, '_, K, A>,
    result: Result<Reply, StoreError>,
) {
    let result = result.and_then(|reply| one.item.algorithm().answer(&one.request, &reply));
    one.item.set_result(result);
}

/// One pipeline, and a second one for what the server did not run because it did not know the script.
async fn run<K, A, C>(
    store: &RedisStore<C>,
    part: &[Asked<'_, '_, K, A>],
) -> Vec<Result<Reply, StoreError>>
where
    K: Key + ?Sized,
    A: RedisAlgorithm,
    C: ConnectionLike + Clone + Send + Sync,
{
    let now = match store.now() {
        Ok(now) => now,
        Err(error) => {
            return part
                .iter()
                .map(|_| Err(StoreError::new(error.kind(), error.message())))
                .collect();
        }
    };
    let first = &part[0].call.script;
    // With several scripts, one that the server does not know would be run after others that follow it, perhaps on its key.
    let are_mixed = part
        .iter()
        .any(|one| one.call.script.hash() != first.hash());
    let mut texts = Texts::default();
    let mut pipeline = redis::pipe();
    for one in part {
        pipeline.add_command(if are_mixed {
            texts.command(one, &now)
        } else {
            one.call.script.by_hash(&one.key, &now, &one.call.arguments)
        });
    }
    let mut results = send(store, &pipeline, part.len()).await;

    let unknown =
        |result: &Result<Value, RedisError>| result.as_ref().is_err_and(is_unknown_script);
    let again: Vec<usize> = (0..part.len())
        .filter(|index| unknown(&results[*index]))
        .collect();
    if !again.is_empty() {
        let mut texts = Texts::default();
        let mut pipeline = redis::pipe();
        for index in &again {
            pipeline.add_command(texts.command(&part[*index], &now));
        }
        for (index, result) in again.iter().zip(send(store, &pipeline, again.len()).await) {
            results[*index] = result;
        }
    }
    results
        .into_iter()
        .map(|result| result.map_err(store_error).and_then(Reply::new))
        .collect()
}

/// The scripts whose texts a pipeline brings along: with the first call of each, so that those behind it find it known.
#[derive(Default)]
struct Texts<'c> {
    sent: Vec<&'c str>,
}

impl<'c> Texts<'c> {
    fn command<K: ?Sized, A>(&mut self, one: &'c Asked<'_, '_, K, A>, now: &[u8]) -> Cmd {
        let Call {
            script, arguments, ..
        } = &one.call;
        if self.sent.contains(&script.hash()) {
            return script.by_hash(&one.key, now, arguments);
        }
        self.sent.push(script.hash());
        script.by_text(&one.key, now, arguments)
    }
}

/// One result for each command.
async fn send<C>(
    store: &RedisStore<C>,
    pipeline: &Pipeline,
    count: usize,
) -> Vec<Result<Value, RedisError>>
where
    C: ConnectionLike + Clone + Send + Sync,
{
    match store
        .connection()
        .req_packed_commands(pipeline, 0, count)
        .await
    {
        Ok(values) if values.len() == count => {
            values.into_iter().map(Value::extract_error).collect()
        }
        Ok(_) => (0..count)
            .map(|_| {
                Err(RedisError::from((
                    redis::ErrorKind::Parse,
                    "replies are missing",
                )))
            })
            .collect(),
        Err(error) => vec![Err(error); count],
    }
}
