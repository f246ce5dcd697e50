//! Several decisions at once: all of them are sent before the first answer is awaited.

use std::collections::HashMap;
use std::future::poll_fn;
use std::task::Poll;

use futures_util::future::maybe_done;
use ratekeeper::Request;
use ratekeeper::store::{Item, Key, StoreError};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::Statement;

use crate::algorithm::{Answer, Call, PostgresAlgorithm, Reply};
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
    fn finish(self, result: Result<Reply, StoreError>) {
        let answer = |reply| self.item.algorithm().answer(&self.request, &reply);
        let result = result.and_then(answer);
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
        match item.algorithm().call(&request) {
            Ok(call) => asked.push(Asked {
                key: store.namespace.key(item.key()),
                item,
                request,
                call,
            }),
            Err(error) => item.set_result(Err(error)),
        }
    }
    if store.now().is_some() {
        // An item that must be asked again would be executed after those that stand behind it.
        for one in asked {
            let result = store.run(&one.key, &one.call, store.due()).await;
            one.finish(result);
        }
        return;
    }
    let due = store.due();
    let prepared = timeout_at(due, prepare(store, &asked)).await;
    let (ready, statements) = match prepared.unwrap_or_else(|_| Err(no_connection_yet())) {
        Ok(Some(prepared)) => prepared,
        Ok(None) => return,
        Err(error) => {
            for one in asked {
                one.finish(Err(StoreError::new(error.kind(), error.message())));
            }
            return;
        }
    };
    let mut asked = asked.into_iter();
    while asked.len() > 0 {
        let part: Vec<_> = asked.by_ref().take(MOST_STATEMENTS).collect();
        if Instant::now() >= due {
            part.into_iter()
                .for_each(|one| one.finish(Err(no_connection_yet())));
        } else {
            run_part(store, &ready, &statements, part, due).await;
        }
    }
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
            (Ok(()), Some(row)) => row.and_then(|row| Answer::new(&row)?.into_reply()),
            _ => Err(deadline_passed()),
        });
    }
    for (one, result) in part.into_iter().zip(results) {
        one.finish(result);
    }
}
