//! What a wrapper has no answer to, it passes on as it is: every kind of request, batches as one batch, and forgetting.

use std::sync::Arc;
use std::time::Duration;

use ratekeeper::store::{
    AsyncStore, Breaker, Deadline, DenyCache, FailClosed, FailOpen, Fallback, Item, Leased,
    Sharded, Store, WithLimit,
};
use ratekeeper::{ManualClock, Receipt, Request, TokenBucket};

use crate::support::{Answer, Call, LIMIT, MODES, Mode, SECOND, Script, asked, block_on, ms};

fn requests() -> Vec<Request> {
    vec![
        Request::ONE,
        Request::take(3),
        Request::up_to(7),
        Request::up_to(20).at_least(2),
        Request::PEEK,
        Request::take(2).or_wait(SECOND),
        Request::up_to(5).at_least(0).or_wait(Duration::MAX),
        Request::take(11),
        Request::refund(2, Receipt::new(2, 77)),
    ]
}

const KEYS: [&str; 3] = ["alice", "bob", ""];

/// `enforced`: the limit that the inner store sees.
fn passes_on<W>(make: impl Fn(Arc<Script>) -> W, enforced: &TokenBucket)
where
    W: Store<str, TokenBucket> + AsyncStore<str, TokenBucket>,
{
    for mode in MODES {
        let script = Arc::new(Script::default());
        let store = make(Arc::clone(&script));
        for request in requests() {
            let expected = asked("alice", enforced, &request);
            let said = Script::default();
            let said = mode.apply(&said, "alice", enforced, copy(&request));
            let answer = mode.apply(&store, "alice", &LIMIT, request);
            assert_eq!(answer.unwrap(), said.unwrap(), "{mode:?} {expected:?}");
            assert_eq!(script.calls(), [Call::Apply(expected)], "{mode:?}");
        }
        batch(mode, &store, &script, enforced);
        mode.forget(&store, "bob", &LIMIT).unwrap();
        assert_eq!(script.calls(), [Call::Forget("bob".into())], "{mode:?}");
    }
}

fn copy(request: &Request) -> Request {
    let found = requests().into_iter().find(|other| other == request);
    found.expect("one of ours")
}

fn batch<W>(mode: Mode, store: &W, script: &Script, enforced: &TokenBucket)
where
    W: Store<str, TokenBucket> + AsyncStore<str, TokenBucket>,
{
    let pairs = || requests().into_iter().zip(KEYS.iter().cycle());
    let mut items: Vec<_> = pairs().map(|(r, key)| Item::new(*key, &LIMIT, r)).collect();
    // An item that somebody else has answered already is nobody's business.
    let mut answered = Item::new("eve", &LIMIT, Request::ONE);
    answered.take_request();
    answered.set_result(mode.apply(&Script::default(), "eve", &LIMIT, Request::take(9)));
    items.insert(1, answered);
    mode.batch(store, &mut items);
    let expected = pairs().map(|(r, key)| asked(key, enforced, &r)).collect();
    assert_eq!(script.calls(), [Call::Batch(expected)], "{mode:?}");

    let mut results = items.into_iter().map(|item| item.into_result().unwrap());
    let mut said = requests().into_iter().map(|request| {
        mode.apply(&Script::default(), "", enforced, request)
            .unwrap()
    });
    assert_eq!(results.next(), said.next());
    assert_eq!(results.next().unwrap().granted(), 9);
    assert!(results.eq(said), "{mode:?}");
}

#[test]
fn all_wrappers() {
    let clock = || ManualClock::new();
    passes_on(FailOpen::new, &LIMIT);
    passes_on(FailClosed::new, &LIMIT);
    passes_on(|store| Fallback::new(store, Script::default()), &LIMIT);
    passes_on(
        |store| Breaker::with_clock(store, 1, SECOND, clock()),
        &LIMIT,
    );
    passes_on(|store| DenyCache::with_clock(store, clock()), &LIMIT);
    passes_on(|store| Leased::with_clock(store, 1, clock()), &LIMIT);
    passes_on(|store| Sharded::new([("only", store)]).unwrap(), &LIMIT);
    let own = TokenBucket::per_second(4);
    passes_on(|store| WithLimit::new(store, own), &own);
    passes_on(
        |store| {
            let store = Leased::with_clock(store, 1, clock());
            let store = Breaker::with_clock(store, 1, SECOND, clock());
            DenyCache::with_clock(FailOpen::new(store), clock())
        },
        &LIMIT,
    );
}

/// It is async only.
#[test]
fn the_deadline() {
    let script = Script::default();
    let store = Deadline::new(&script, ms(50), |_| std::future::pending());
    for request in requests() {
        let expected = asked("alice", &LIMIT, &request);
        let answer = block_on(store.apply_async("alice", &LIMIT, copy(&request)));
        let said = block_on(Script::default().apply_async("alice", &LIMIT, request));
        assert_eq!(answer.unwrap(), said.unwrap());
        assert_eq!(script.calls(), [Call::Apply(expected)]);
    }
    let items = || requests().into_iter().map(|r| Item::new("bob", &LIMIT, r));
    let mut batch: Vec<_> = items().collect();
    block_on(store.apply_batch_async(&mut batch));
    let expected = requests().iter().map(|r| asked("bob", &LIMIT, r)).collect();
    assert_eq!(script.calls(), [Call::Batch(expected)]);
    assert!(batch.into_iter().all(|item| item.into_result().is_ok()));
    block_on(AsyncStore::<str, _>::forget_async(&store, "bob", &LIMIT)).unwrap();
    assert_eq!(script.calls(), [Call::Forget("bob".into())]);
}

/// A batch that is answered already is not passed on at all, or as it is.
#[test]
fn nothing_open_asks_nothing() {
    for mode in MODES {
        let script = Script::new([Answer::Fresh]);
        let store = DenyCache::with_clock(&script, ManualClock::new());
        let store = Fallback::new(
            Breaker::with_clock(store, 1, SECOND, ManualClock::new()),
            &script,
        );
        mode.batch(&store, &mut [] as &mut [Item<'_, str, TokenBucket>]);
        for call in script.calls() {
            assert_eq!(call, Call::Batch(Vec::new()));
        }
    }
}
