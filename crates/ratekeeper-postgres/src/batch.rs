//! Several decisions at once: they are sent before the first answer is awaited.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::task::Poll;

use futures_util::future::maybe_done;
use ratekeeper::Request;
use ratekeeper::store::{ErrorKind, Item, Key, KeyKind, StoreError, answer_at_once};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::Statement;

use crate::algorithm::{Answer, Call, PostgresAlgorithm};
use crate::clients::Clients;
use crate::error::{deadline_passed, no_connection_yet};
use crate::query::{Ready, run};
use crate::store::PostgresStore;

/// Statements under way at most, so that a batch of any size takes little memory.
const MOST_STATEMENTS: usize = 256;

/// What one item asks of the server.
struct Asked<'b, 'a, K: ?Sized, A> {
    item: &'b mut Item<'a, K, A>,
    request: Request,
    key: Vec<u8>,
    call: Call,
}

impl<K: ?Sized, A: PostgresAlgorithm> Asked<'_, '_, K, A> {
    fn fail(self, kind: ErrorKind, message: &'static str) {
        self.item.set_result(Err(StoreError::new(kind, message)));
    }

    fn looks(&self) -> bool {
        self.call.function == Call::look().function
    }

    /// Passes on what was answered, or asks again, alone.
    async fn finish<C: Clients>(
        self,
        store: &PostgresStore<C>,
        answer: Result<Answer, StoreError>,
        again: bool,
        due: Instant,
    ) {
        let algorithm = self.item.algorithm();
        let result = match answer {
            Err(error) => Err(error),
            Ok(Answer::Reply(reply)) if !again => algorithm.answer(&self.request, &reply),
            Ok(_) => store.decide(&self.key, algorithm, &self.request, due).await,
        };
        self.item.set_result(result);
    }
}

/// A function's statement, as text and as prepared.
type Statements = HashMap<&'static str, (String, Option<Statement>)>;

/// Answers all items over one connection, on which they are executed in order.
pub(crate) async fn apply<K, A, C>(store: &PostgresStore<C>, items: &mut [Item<'_, K, A>])
where
    K: Key + ?Sized,
    A: PostgresAlgorithm,
    C: Clients,
{
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
        match algorithm.call(&request) {
            Ok(call) => asked.push(Asked {
                key: store.key(item.key(), &KeyKind::of(algorithm)),
                item,
                request,
                call,
            }),
            Err(error) => item.set_result(Err(error)),
        }
    }
    let due = store.due();
    let prepared = timeout_at(due, prepare(store, &asked)).await;
    let (ready, statements) = match prepared.unwrap_or_else(|_| Err(no_connection_yet())) {
        Ok(Some(prepared)) => prepared,
        Ok(None) => return,
        Err(error) => {
            asked
                .into_iter()
                .for_each(|one| one.fail(error.kind(), error.message()));
            return;
        }
    };
    for part in parts(asked) {
        if Instant::now() >= due {
            let error = no_connection_yet();
            part.into_iter()
                .for_each(|one| one.fail(error.kind(), error.message()));
        } else {
            run_part(store, &ready, &statements, part, due).await;
        }
    }
}

/// Cuts a batch where it grows too long, and where a key comes again under another version of its limit: one of the two will
/// have to be asked again, and must not be overtaken.
fn parts<'b, 'a, K: ?Sized, A: PostgresAlgorithm>(
    asked: Vec<Asked<'b, 'a, K, A>>,
) -> Vec<Vec<Asked<'b, 'a, K, A>>> {
    let has_versions = asked.iter().any(|one| one.call.version > 0);
    let mut parts = Vec::new();
    let mut part = Vec::new();
    let mut versions = HashMap::new();
    for one in asked {
        let version = one.call.version;
        let may_write = has_versions && !one.looks();
        let before = versions.get(&one.key);
        let meets_another = may_write && before.is_some_and(|before| *before != version);
        if meets_another || part.len() >= MOST_STATEMENTS {
            parts.push(std::mem::take(&mut part));
            versions.clear();
        }
        if may_write {
            versions.insert(one.key.clone(), version);
        }
        part.push(one);
    }
    parts.push(part);
    parts
}

/// A connection on which the statements of all items are prepared; `None` if there are no items.
async fn prepare<K, A, C>(
    store: &PostgresStore<C>,
    asked: &[Asked<'_, '_, K, A>],
) -> Result<Option<(Ready<C>, Statements)>, StoreError>
where
    K: ?Sized,
    C: Clients,
{
    let mut ready: Option<Ready<C>> = None;
    let mut statements = Statements::new();
    for one in asked {
        let function = one.call.function;
        if statements.contains_key(function) {
            continue;
        }
        let sql = store.schema.decision(function);
        let on = match &mut ready {
            Some(ready) => {
                ready.prepare(&store.clients, &sql).await?;
                ready
            }
            None => ready.insert(Ready::new(&store.clients, &sql).await?),
        };
        statements.insert(function, (sql, on.statement()));
    }
    Ok(ready.map(|ready| (ready, statements)))
}

async fn run_part<K, A, C>(
    store: &PostgresStore<C>,
    ready: &Ready<C>,
    statements: &Statements,
    part: Vec<Asked<'_, '_, K, A>>,
    due: Instant,
) where
    K: ?Sized,
    A: PostgresAlgorithm,
    C: Clients,
{
    let sent = store.sent();
    let run_one = async |key: &[u8], call: &Call| {
        let (sql, statement) = &statements[call.function];
        run(
            ready.client(),
            statement.as_ref(),
            sql,
            &sent.parameters(&key, call),
        )
        .await
    };
    let mut running: Vec<_> = part
        .iter()
        .map(|one| Box::pin(maybe_done(run_one(&one.key, &one.call))))
        .collect();
    // A statement is sent when it is first polled; so this is the order in which the server gets them.
    poll_fn(|context| {
        for statement in &mut running {
            let _ = statement.as_mut().poll(context);
        }
        Poll::Ready(())
    })
    .await;
    let mut results = Vec::with_capacity(part.len());
    for mut statement in running {
        let in_time = timeout_at(due, statement.as_mut()).await;
        let row = statement.as_mut().take_output();
        results.push(match (in_time, row) {
            (Ok(()), Some(row)) => row.and_then(|row| Answer::new(&row)),
            _ => Err(deadline_passed()),
        });
    }
    // A key that has met another version of the limit is asked again. Requests behind it have then found the same, but looks
    // were answered: too early.
    let mut overtaken = HashSet::new();
    for (one, result) in part.into_iter().zip(results) {
        let of_another = matches!(&result, Ok(Answer::OtherVersion { .. }));
        if of_another {
            overtaken.insert(one.key.clone());
        }
        let again = of_another || (one.looks() && overtaken.contains(&one.key));
        one.finish(store, result, again, due).await;
    }
}
