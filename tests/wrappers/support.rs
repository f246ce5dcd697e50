//! A store that does as it is told and writes down what it is asked; asking it, blocking and async.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ratekeeper::store::{AsyncStore, ErrorKind, Item, Key, Store, StoreError};
use ratekeeper::{
    Algorithm, Carry, Decision, InvalidLimit, Outcome, Receipt, Request, Timestamp, TokenBucket,
};

/// What a store says to limits that it has no room for.
pub(crate) const DOES_NOT_FIT: InvalidLimit = InvalidLimit::DoesNotFitStore {
    bound: "nothing fits here",
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// 2023-11-14 22:13:20 UTC.
pub(crate) const NOW: Timestamp = Timestamp::from_nanos(1_700_000_000_000_000_000);

/// Ten tokens, one a second.
pub(crate) const LIMIT: TokenBucket = TokenBucket::per_second(1).with_burst(10);

pub(crate) const KINDS: [ErrorKind; 6] = [
    ErrorKind::NotExecuted,
    ErrorKind::Unknown,
    ErrorKind::Contention,
    ErrorKind::Corrupt,
    ErrorKind::Config,
    ErrorKind::Unsupported,
];

/// What the store does about one request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// As if the key had never been seen, at `NOW`.
    Fresh,
    Deny(Duration),
    Outcome(Outcome),
    /// So many tokens, whatever was asked.
    Grant(u64),
    Fail(ErrorKind),
    /// Of the first kind after having waited for one more poll.
    Late(Box<Answer>),
    /// Async: never. Blocking and in batches: an item that is taken and not answered.
    Hang,
    /// In batches: an item that is not even taken.
    Ignore,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Call {
    Apply(Asked),
    Batch(Vec<Asked>),
    Forget(String),
    Change {
        key: String,
        limits: [String; 2],
        carry: Carry,
    },
    /// Nothing is heard of it.
    Cancel(Asked),
}

pub(crate) fn changed<A: Algorithm>(key: &str, old: &A, new: &A, carry: Carry) -> Call {
    Call::Change {
        key: key.to_owned(),
        limits: [old, new].map(|limit| format!("{limit:?}")),
        carry,
    }
}

pub(crate) fn cancelled<A: Algorithm>(key: &str, limit: &A, receipt: Receipt) -> Call {
    Call::Cancel(asked(
        key,
        limit,
        &Request::refund(receipt.charged(), receipt),
    ))
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) key: String,
    pub(crate) limit: String,
    pub(crate) request: String,
}

pub(crate) fn asked<A: Algorithm>(key: &str, limit: &A, request: &Request) -> Asked {
    Asked {
        key: key.to_owned(),
        limit: format!("{limit:?}"),
        request: format!("{request:?}"),
    }
}

#[derive(Debug, Default)]
pub(crate) struct Script {
    answers: Mutex<VecDeque<Answer>>,
    calls: Mutex<Vec<Call>>,
    /// The one limit that it does not accept.
    refused: Mutex<Option<String>>,
}

impl Script {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let script = Self::default();
        script.then(answers);
        script
    }

    /// Answers that come after those given so far; after them, `Fresh`.
    pub(crate) fn then(&self, answers: impl IntoIterator<Item = Answer>) {
        self.answers.lock().unwrap().extend(answers);
    }

    /// The calls since the last time.
    pub(crate) fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    pub(crate) fn count(&self) -> usize {
        self.calls().len()
    }

    pub(crate) fn refuse<A: Algorithm>(&self, limit: &A) {
        *self.refused.lock().unwrap() = Some(format!("{limit:?}"));
    }

    fn accept<A: Algorithm>(&self, limit: &A) -> Result<(), InvalidLimit> {
        let refused = self.refused.lock().unwrap();
        match refused.as_ref().filter(|it| **it == format!("{limit:?}")) {
            None => Ok(()),
            Some(_) => Err(DOES_NOT_FIT),
        }
    }

    fn next(&self) -> Answer {
        let next = self.answers.lock().unwrap().pop_front();
        next.unwrap_or(Answer::Fresh)
    }

    fn record(&self, call: Call) {
        self.calls.lock().unwrap().push(call);
    }
}

/// What a script's `fingerprint` is: the same in all of them.
pub(crate) fn fingerprint(key: &str) -> u64 {
    key.bytes()
        .fold(1, |sum, byte| sum.wrapping_mul(257) + u64::from(byte))
}

fn text<K: Key + ?Sized>(key: &K) -> String {
    let mut bytes = Vec::new();
    key.write_alone(&mut |part| bytes.extend_from_slice(part));
    String::from_utf8(bytes).unwrap()
}

fn fresh<A: Algorithm>(algorithm: &A, request: &Request) -> Decision {
    algorithm
        .step(NOW, &mut A::State::default(), request)
        .decision
}

fn said<A: Algorithm>(
    answer: Answer,
    algorithm: &A,
    request: &Request,
) -> Option<Result<Decision, StoreError>> {
    let with = |outcome| {
        let limit = fresh(algorithm, &Request::PEEK).limit();
        Decision::new(outcome, limit, 0, 2 * SECOND)
    };
    Some(match answer {
        Answer::Fresh => Ok(fresh(algorithm, request)),
        Answer::Deny(retry_after) => Ok(with(Outcome::Denied { retry_after })),
        Answer::Outcome(outcome) => Ok(with(outcome)),
        Answer::Grant(tokens) => Ok(with(Outcome::Allowed).with_receipt(Receipt::new(tokens, 77))),
        Answer::Fail(kind) => Err(StoreError::new(kind, "as told")),
        Answer::Late(answer) => return said(*answer, algorithm, request),
        Answer::Hang | Answer::Ignore => return None,
    })
}

fn said_now<A: Algorithm>(
    answer: Answer,
    algorithm: &A,
    request: &Request,
) -> Result<Decision, StoreError> {
    said(answer, algorithm, request)
        .unwrap_or_else(|| Err(StoreError::new(ErrorKind::Unknown, "hung")))
}

fn failure(answer: &Answer) -> Result<(), StoreError> {
    match answer {
        Answer::Fail(kind) => Err(StoreError::new(*kind, "as told")),
        Answer::Late(answer) => failure(answer),
        _ => Ok(()),
    }
}

impl Script {
    fn batch<K: Key + ?Sized, A: Algorithm>(&self, items: &mut [Item<'_, K, A>]) -> bool {
        let mut seen = Vec::new();
        let mut hangs = false;
        for item in items {
            let answer = self.next();
            if matches!(answer, Answer::Ignore) {
                continue;
            }
            hangs |= matches!(answer, Answer::Hang);
            let Some(request) = item.take_request() else {
                continue;
            };
            seen.push(asked(&text(item.key()), item.algorithm(), &request));
            if let Some(result) = said(answer, item.algorithm(), &request) {
                item.set_result(result);
            }
        }
        self.record(Call::Batch(seen));
        hangs
    }
}

impl<K: Key + ?Sized, A: Algorithm> Store<K, A> for Script {
    fn apply(&self, key: &K, algorithm: &A, request: Request) -> Result<Decision, StoreError> {
        self.record(Call::Apply(asked(&text(key), algorithm, &request)));
        said_now(self.next(), algorithm, &request)
    }

    fn apply_batch(&self, items: &mut [Item<'_, K, A>]) {
        self.batch(items);
    }

    fn forget(&self, key: &K, _: &A) -> Result<(), StoreError> {
        self.record(Call::Forget(text(key)));
        failure(&self.next())
    }

    fn try_change(&self, key: &K, old: &A, new: &A, carry: Carry) -> Result<Decision, StoreError> {
        self.record(changed(&text(key), old, new, carry));
        said_now(self.next(), new, &Request::PEEK)
    }

    fn try_accepts(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        self.accept(algorithm)
    }

    fn try_fingerprint(&self, key: &K) -> u64 {
        fingerprint(&text(key))
    }
}

impl<K: Key + ?Sized, A: Algorithm> AsyncStore<K, A> for Script {
    async fn apply_async(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> Result<Decision, StoreError> {
        self.record(Call::Apply(asked(&text(key), algorithm, &request)));
        let answer = self.next();
        wait_for(&answer).await;
        said_now(answer, algorithm, &request)
    }

    async fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) {
        if self.batch(items) {
            std::future::pending().await
        }
    }

    async fn forget_async(&self, key: &K, _: &A) -> Result<(), StoreError> {
        self.record(Call::Forget(text(key)));
        let answer = self.next();
        wait_for(&answer).await;
        failure(&answer)
    }

    async fn change_async(
        &self,
        key: &K,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> Result<Decision, StoreError> {
        self.record(changed(&text(key), old, new, carry));
        let answer = self.next();
        wait_for(&answer).await;
        said_now(answer, new, &Request::PEEK)
    }

    fn accepts_async(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        self.accept(algorithm)
    }

    fn cancel(&self, key: &K, algorithm: &A, receipt: Receipt) {
        self.record(cancelled(&text(key), algorithm, receipt));
    }

    fn fingerprint_of(&self, key: &K) -> u64 {
        fingerprint(&text(key))
    }
}

async fn wait_for(answer: &Answer) {
    match answer {
        Answer::Hang => std::future::pending().await,
        Answer::Late(_) => once_pending().await,
        _ => {}
    }
}

/// Pending once.
pub(crate) async fn once_pending() {
    let mut polled = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The output of a future that needs nobody else; panics if it hangs.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..1_000 {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
    panic!("the future hangs");
}

/// Polls once, which must not be enough, and drops.
pub(crate) fn give_up<T>(future: impl Future<Output = T>) {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_pending());
}

/// Each test of what both traits have runs twice.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode {
    Blocking,
    Async,
}

pub(crate) const MODES: [Mode; 2] = [Mode::Blocking, Mode::Async];

impl Mode {
    pub(crate) fn apply<A: Algorithm>(
        self,
        store: &(impl Store<str, A> + AsyncStore<str, A>),
        key: &str,
        limit: &A,
        request: Request,
    ) -> Result<Decision, StoreError> {
        match self {
            Self::Blocking => store.apply(key, limit, request),
            Self::Async => block_on(store.apply_async(key, limit, request)),
        }
    }

    pub(crate) fn batch<A: Algorithm>(
        self,
        store: &(impl Store<str, A> + AsyncStore<str, A>),
        items: &mut [Item<'_, str, A>],
    ) {
        match self {
            Self::Blocking => store.apply_batch(items),
            Self::Async => block_on(store.apply_batch_async(items)),
        }
    }

    pub(crate) fn forget<A: Algorithm>(
        self,
        store: &(impl Store<str, A> + AsyncStore<str, A>),
        key: &str,
        limit: &A,
    ) -> Result<(), StoreError> {
        match self {
            Self::Blocking => store.forget(key, limit),
            Self::Async => block_on(store.forget_async(key, limit)),
        }
    }

    pub(crate) fn change<A: Algorithm>(
        self,
        store: &(impl Store<str, A> + AsyncStore<str, A>),
        key: &str,
        [old, new]: [&A; 2],
        carry: Carry,
    ) -> Result<Decision, StoreError> {
        match self {
            Self::Blocking => store.try_change(key, old, new, carry),
            Self::Async => block_on(store.change_async(key, old, new, carry)),
        }
    }

    pub(crate) fn accepts<A: Algorithm>(
        self,
        store: &(impl Store<str, A> + AsyncStore<str, A>),
        limit: &A,
    ) -> Result<(), InvalidLimit> {
        match self {
            Self::Blocking => store.try_accepts(limit),
            Self::Async => store.accepts_async(limit),
        }
    }

    pub(crate) fn fingerprint<A: Algorithm>(
        self,
        store: &(impl Store<str, A> + AsyncStore<str, A>),
        key: &str,
        limit: &A,
    ) -> u64 {
        let _: &A = limit;
        match self {
            Self::Blocking => Store::<str, A>::try_fingerprint(store, key),
            Self::Async => AsyncStore::<str, A>::fingerprint_of(store, key),
        }
    }
}

/// `SplitMix64`, for tests that choose at random.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    /// Below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    /// One of `n` places.
    pub(crate) fn place(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap()
    }
}
