//! The scripts and the machines in Rust, fed the same random requests: they must agree in every decision and leave the same
//! bytes.
//!
//! Each sequence has a key of its own and goes through the whole store, in batches of one step for many keys. Limits change on
//! the way, with versions and without; the clock steps forwards and backwards; receipts are kept and used later. Some keys
//! begin with a value that is far off, or was written by an earlier version of this crate.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ratekeeper::store::{
    AsyncStore, ErrorKind, Item, KeyKind, Namespace, StateBytes, answer_at_once, step_stored,
};
use ratekeeper::{
    All, AnyAlgorithm, Decision, FixedWindow, ManualClock, Receipt, Request, SlidingLog,
    SlidingWindow, Timestamp, TokenBucket,
};
use ratekeeper_redis::{RedisAlgorithm, RedisStore};
use ratekeeper_test_servers::{Kind, Options, Server};

/// Sequences in step with each other.
const ABREAST: usize = 400;
const STEPS: u64 = 10;
const GRACE: Duration = Duration::from_secs(3_600);

/// Full-length runs are for the server that most people have.
fn sequences(kind: Kind, most: usize) -> usize {
    if kind == Kind::Redis { most } else { most / 10 }
}

/// `SplitMix64`, as in `ratekeeper::store::Jitter`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`, which is above 0.
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// From 1 to `most`, each order of magnitude as likely as another.
    fn magnitude(&mut self, most: u64) -> u64 {
        let bits = self.below(u64::from(u64::BITS - most.leading_zeros())) + 1;
        (self.next() >> (64 - bits)).clamp(1, most)
    }

    fn period(&mut self) -> Duration {
        let seconds = [1, 1, 1, 60, 3_600, 86_400, 30 * 86_400];
        match self.below(4) {
            0 => Duration::from_nanos(self.magnitude(3_000_000_000_000_000)),
            _ => Duration::from_secs(seconds[usize::try_from(self.below(7)).unwrap()]),
        }
    }

    fn bucket(&mut self) -> TokenBucket {
        loop {
            let tokens = match self.below(3) {
                0 => self.magnitude(4_000_000_000_000_000),
                1 => self.magnitude(1_000_000_000),
                _ => self.below(20) + 1,
            };
            let burst = if self.one_in(3) {
                self.magnitude(1 << 50)
            } else {
                self.below(12) + 1
            };
            let Ok(mut limit) = TokenBucket::new(tokens, self.period(), burst) else {
                continue;
            };
            if self.one_in(2) {
                limit = limit.with_max_wait(Duration::from_nanos(self.magnitude(1 << 48)));
            }
            if limit.call(&Request::ONE, GRACE).is_ok() {
                return limit;
            }
        }
    }

    /// A bucket, or now and then one that does not count.
    fn member(&mut self) -> TokenBucket {
        match self.below(24) {
            0 => TokenBucket::UNLIMITED,
            1 => TokenBucket::BLOCKED,
            _ => self.bucket(),
        }
    }

    fn window_limit(&mut self) -> u32 {
        let most = if self.one_in(4) { u32::MAX } else { 12 };
        u32::try_from(self.magnitude(most.into())).unwrap()
    }

    /// Another limit on the same window, or on another one.
    fn sliding(&mut self, before: Option<&SlidingWindow>) -> SlidingWindow {
        let window = match before {
            Some(before) if !self.one_in(4) => before.window(),
            _ => self.period(),
        };
        SlidingWindow::per(self.window_limit(), window)
    }

    fn fixed(&mut self, before: Option<&FixedWindow>) -> FixedWindow {
        if let Some(before) = before.filter(|_| !self.one_in(4)) {
            let limit = FixedWindow::per(self.window_limit(), before.window());
            return if before.is_anchored() {
                limit.anchored()
            } else {
                limit.with_offset(before.offset())
            };
        }
        let limit = FixedWindow::per(self.window_limit(), self.period());
        match self.below(3) {
            0 => limit.anchored(),
            1 => limit.with_offset(Duration::from_nanos(self.magnitude(1 << 55))),
            _ => limit,
        }
    }

    fn any(&mut self) -> AnyAlgorithm {
        self.bucket().into()
    }

    /// On whole microseconds, as the set is: then the machine in Rust is the same.
    fn log(&mut self, before: Option<&SlidingLog>) -> SlidingLog {
        let limit = u32::try_from(self.magnitude(12)).unwrap();
        if let Some(before) = before.filter(|_| !self.one_in(4)) {
            return SlidingLog::per(limit, before.window());
        }
        let window_us = u64::try_from(self.period().as_micros()).unwrap().max(1);
        SlidingLog::per(limit, Duration::from_micros(window_us))
    }

    /// Mostly a little later, about as much as matters to limits of that time scale; now and then a jump.
    fn next_instant(&mut self, now_ns: u64, scale_ns: u64) -> u64 {
        const YEAR_NS: u64 = 365 * 86_400 * 1_000_000_000;
        let later = match self.below(24) {
            0..=5 => return now_ns,
            6 => return now_ns.saturating_sub(self.magnitude(scale_ns)),
            7 => return now_ns.saturating_sub(self.magnitude(YEAR_NS)),
            8 => YEAR_NS,
            _ => self.magnitude(scale_ns),
        };
        now_ns + later
    }

    /// The same request twice, since it may hold a receipt. `receipts` are those the store and the machine gave.
    fn request(
        &mut self,
        most: u64,
        scale_ns: u64,
        receipts: &mut Vec<[Receipt; 2]>,
    ) -> [Request; 2] {
        if !receipts.is_empty() && self.one_in(4) {
            let index = if self.one_in(2) {
                receipts.len() - 1
            } else {
                usize::try_from(self.below(receipts.len() as u64)).unwrap()
            };
            let pair = receipts.swap_remove(index);
            let part = self.below(pair[0].charged() + 2);
            let count = if self.one_in(2) {
                pair[0].charged()
            } else {
                part
            };
            return pair.map(|receipt| Request::refund(count, receipt));
        }
        let cost = match self.below(8) {
            0 => 0,
            1..=3 => 1,
            4 => most,
            5 => most.saturating_add(1),
            6 => self.next() >> self.below(64),
            _ => self.below(most) + 1,
        };
        let least = self.below(cost.saturating_add(1).max(1)).min(self.below(4));
        let wait = Duration::from_nanos(self.magnitude(scale_ns));
        let kind = self.below(8);
        [(); 2].map(|()| match kind {
            0 | 1 => Request::take(cost).or_wait(wait),
            2 => Request::up_to(cost),
            3 => Request::up_to(cost).at_least(least).or_wait(wait),
            4 => Request::up_to(cost).at_least(0).or_wait(Duration::MAX),
            _ => Request::take(cost),
        })
    }
}

/// One key.
struct Sequence<A: RedisAlgorithm> {
    key: String,
    limit: A,
    /// What each kind of limit has left there.
    kinds: HashMap<KeyKind, Left<A>>,
    receipts: Vec<[Receipt; 2]>,
}

/// What a key holds: a value, or for the log, which has none, a state.
struct Left<A: RedisAlgorithm> {
    value: Option<StateBytes>,
    state: A::State,
}

impl<A: RedisAlgorithm> Default for Left<A> {
    fn default() -> Self {
        let (value, state) = (None, A::State::default());
        Self { value, state }
    }
}

impl<A: RedisAlgorithm> Left<A> {
    fn step(
        &mut self,
        limit: &A,
        now: Timestamp,
        request: &Request,
    ) -> Result<Decision, ErrorKind> {
        if let Some(decision) = answer_at_once(limit, request) {
            return Ok(decision);
        }
        let fresh = StateBytes::encode(limit, &A::State::default());
        if fresh.is_err_and(|error| error.kind() == ErrorKind::Unsupported) {
            return Ok(limit.step(now, &mut self.state, request).decision);
        }
        let step = step_stored(limit, now, self.value.as_ref(), request);
        let step = step.map_err(|error| error.kind())?;
        if let Some(write) = step.write {
            self.value = Some(write.value);
        }
        Ok(step.decision)
    }
}

/// How one kind of limit is tested.
struct Machine<L, M, V> {
    name: &'static str,
    /// A limit to begin with, or to follow another.
    limit: L,
    /// The largest cost that passes.
    most: M,
    /// A value to begin with, at an instant.
    value: V,
    tick_ns: u64,
    sequences: usize,
}

async fn agree<A, L, M, V>(kind: Kind, mut machine: Machine<L, M, V>)
where
    A: RedisAlgorithm,
    L: FnMut(&mut Random, Option<&A>) -> A,
    M: Fn(&A) -> u64,
    V: Fn(&mut Random, u64) -> Option<Vec<u8>>,
{
    let (name, tick_ns) = (machine.name, machine.tick_ns);
    let server = Server::start(kind, Options::new());
    let url = format!("redis://{}/", server.address());
    let mut direct = redis::Client::open(&url[..])
        .unwrap()
        .get_connection()
        .unwrap();
    let clock = Arc::new(ManualClock::new());
    let namespace = Namespace::new(name).unwrap();
    let store = RedisStore::connect(&url[..], namespace.clone())
        .unwrap()
        .with_deadline(Duration::from_secs(60))
        .with_clock(clock.clone(), GRACE);
    let mut random = Random(
        name.bytes()
            .fold(7, |seed, byte| seed.wrapping_mul(131) + u64::from(byte)),
    );
    let (mut decisions, mut refusals, mut errors) = (0_u64, 0_u64, 0_u64);
    for round in 0..sequences(kind, machine.sequences) / ABREAST {
        let mut now_ns = random.magnitude(1 << 62) / tick_ns * tick_ns;
        let scale_ns = random.magnitude(1 << 50);
        let mut sequences: Vec<Sequence<A>> = (0..ABREAST)
            .map(|index| Sequence {
                key: format!("{round}-{index}"),
                limit: (machine.limit)(&mut random, None),
                kinds: HashMap::new(),
                receipts: Vec::new(),
            })
            .collect();
        let mut seeds = redis::pipe();
        for sequence in &mut sequences {
            let Some(value) = (machine.value)(&mut random, now_ns) else {
                continue;
            };
            let kind = KeyKind::of(&sequence.limit);
            let left = sequence.kinds.entry(kind).or_default();
            left.value = Some(StateBytes::from_stored(&value).unwrap());
            let key = namespace.key_of_kind(&sequence.key[..], &kind);
            seeds.cmd("SET").arg(key).arg(value).arg("EX").arg(600);
        }
        if seeds.cmd_iter().next().is_some() {
            seeds.exec(&mut direct).unwrap();
        }
        for _ in 0..STEPS {
            now_ns = random.next_instant(now_ns, scale_ns) / tick_ns * tick_ns;
            let now = Timestamp::from_nanos(now_ns);
            clock.set(now);
            let mut local = Vec::new();
            let mut remote = Vec::new();
            for sequence in &mut sequences {
                if random.one_in(12) {
                    sequence.limit = (machine.limit)(&mut random, Some(&sequence.limit));
                }
                let most = (machine.most)(&sequence.limit);
                let [for_store, for_machine] =
                    random.request(most, scale_ns, &mut sequence.receipts);
                let kind = KeyKind::of(&sequence.limit);
                let left = sequence.kinds.entry(kind).or_default();
                let what = format!(
                    "{:?} at {now_ns} on {:?} {:?}: {for_store:?}",
                    sequence.limit, left.value, left.state
                );
                local.push((left.step(&sequence.limit, now, &for_machine), what));
                remote.push(for_store);
            }
            let mut items: Vec<_> = sequences
                .iter()
                .zip(remote)
                .map(|(sequence, request)| Item::new(&sequence.key[..], &sequence.limit, request))
                .collect();
            store.apply_batch_async(&mut items).await;
            let answers: Vec<_> = items.into_iter().map(Item::into_result).collect();
            for ((sequence, answer), (expected, what)) in
                sequences.iter_mut().zip(answers).zip(local)
            {
                decisions += 1;
                let (answer, expected) = match (answer, expected) {
                    (Ok(answer), Ok(expected)) => (answer, expected),
                    (Err(error), Err(kind)) if error.kind() == kind => {
                        errors += 1;
                        continue;
                    }
                    (answer, expected) => panic!("{what}: {answer:?}, not {expected:?}"),
                };
                assert_eq!(answer, expected, "{what}");
                refusals += u64::from(!answer.is_allowed());
                let receipts = [answer.into_receipt(), expected.into_receipt()];
                if receipts[0].charged() > 0 {
                    sequence.receipts.push(receipts);
                }
            }
        }
        check_bytes(&mut direct, &namespace, &sequences);
        server.command(&["FLUSHALL"]).unwrap();
    }
    println!("{name} on {kind}: {decisions} decisions agree, {refusals} refusals, {errors} errors");
    assert!(
        refusals > decisions / 20 && refusals < decisions * 19 / 20 && errors < decisions / 10,
        "the requests test too little"
    );
}

/// What the server holds, against the values of the machines.
fn check_bytes<A: RedisAlgorithm>(
    direct: &mut redis::Connection,
    namespace: &Namespace,
    sequences: &[Sequence<A>],
) {
    let mut expected = Vec::new();
    let mut reads = redis::pipe();
    for sequence in sequences {
        for (kind, left) in &sequence.kinds {
            // The log's set is checked by its decisions.
            let Some(value) = left.value else { continue };
            reads
                .cmd("GET")
                .arg(namespace.key_of_kind(&sequence.key[..], kind));
            expected.push(Some(value.to_vec()));
        }
    }
    if expected.is_empty() {
        return;
    }
    let found: Vec<Option<Vec<u8>>> = reads.query(direct).unwrap();
    assert_eq!(found, expected);
}

/// Any instant, more often one near `now_ns`.
fn instant(random: &mut Random, now_ns: u64) -> u64 {
    let far = random.magnitude(u64::MAX);
    match random.below(4) {
        0 => far,
        1 => now_ns.saturating_sub(random.magnitude(1 << 50)),
        _ => now_ns.saturating_add(random.magnitude(1 << 56)),
    }
}

/// A bucket's value by any taker, or one of an earlier version of the crate.
fn bucket_value(random: &mut Random, now_ns: u64) -> Option<Vec<u8>> {
    let tat = instant(random, now_ns).to_be_bytes();
    let reach = random.magnitude(u64::MAX).to_be_bytes();
    match random.below(40) {
        0 => Some([&[0x11][..], &tat].concat()),
        1 => Some([&[0x13][..], &tat, &reach].concat()),
        2 => Some([&[0x14][..], &tat, &reach].concat()),
        3..=5 => Some([&[0x21][..], &tat, &reach].concat()),
        _ => None,
    }
}

fn members_value<const N: usize>(random: &mut Random, now_ns: u64) -> Option<Vec<u8>> {
    random.one_in(8).then(|| {
        let words = (0..N).flat_map(|_| [instant(random, now_ns), random.magnitude(u64::MAX)]);
        let words: Vec<u8> = words.flat_map(u64::to_be_bytes).collect();
        [&[0x24][..], &words].concat()
    })
}

fn window_value(random: &mut Random, now_ns: u64, tag: u8) -> Option<Vec<u8>> {
    random.one_in(8).then(|| {
        let start = instant(random, now_ns).to_be_bytes();
        let upper = match random.below(3) {
            0 => random.magnitude(u32::MAX.into()),
            bit => bit - 1,
        };
        let lower = random.below(9);
        let [upper, lower] =
            [upper, lower].map(|count| u32::try_from(count).unwrap().to_be_bytes());
        [&[tag][..], &start, &upper, &lower].concat()
    })
}

/// Limits of the versions 0 to 3, of which one changes now and then without getting a new number.
fn versions() -> impl FnMut(&mut Random, Option<&TokenBucket>) -> TokenBucket {
    let mut pool: Vec<TokenBucket> = Vec::new();
    move |random, _| {
        while pool.len() < 4 {
            let version = u16::try_from(pool.len()).unwrap();
            pool.push(random.bucket().with_version(version));
        }
        if random.one_in(300) {
            let index = usize::try_from(random.below(4)).unwrap();
            pool[index] = random.bucket().with_version(pool[index].version());
        }
        pool[usize::try_from(random.below(4)).unwrap()]
    }
}

macro_rules! machines {
    ($($name:ident: $limit:expr, $most:expr, $value:expr, $tick_ns:expr, $sequences:expr;)+) => {
        $(mod $name {
            use super::*;

            async fn on(kind: Kind) {
                agree(kind, Machine {
                    name: stringify!($name),
                    limit: $limit,
                    most: $most,
                    value: $value,
                    tick_ns: $tick_ns,
                    sequences: $sequences,
                }).await;
            }

            #[tokio::test]
            async fn redis() {
                on(Kind::Redis).await;
            }

            #[tokio::test]
            async fn redis_6_2() {
                on(Kind::Redis62).await;
            }

            #[tokio::test]
            async fn valkey() {
                on(Kind::Valkey).await;
            }
        })+
    };
}

fn pair(random: &mut Random, _: Option<&All<[TokenBucket; 2]>>) -> All<[TokenBucket; 2]> {
    All([random.member(), random.member()])
}

fn quartet(random: &mut Random, _: Option<&All<[TokenBucket; 4]>>) -> All<[TokenBucket; 4]> {
    All([(); 4].map(|()| random.member()))
}

fn least_burst<const N: usize>(limits: &All<[TokenBucket; N]>) -> u64 {
    let bursts = limits.0.iter().map(TokenBucket::burst);
    bursts.filter(|burst| *burst > 0).min().unwrap_or(1)
}

fn bucket(random: &mut Random, _: Option<&TokenBucket>) -> TokenBucket {
    random.bucket()
}

fn any(random: &mut Random, _: Option<&AnyAlgorithm>) -> AnyAlgorithm {
    random.any()
}

fn any_burst(limit: &AnyAlgorithm) -> u64 {
    match limit {
        AnyAlgorithm::TokenBucket(limit) => limit.burst(),
        _ => 1,
    }
}

fn sliding_value(random: &mut Random, now_ns: u64) -> Option<Vec<u8>> {
    window_value(random, now_ns, 0x13)
}

fn fixed_value(random: &mut Random, now_ns: u64) -> Option<Vec<u8>> {
    window_value(random, now_ns, 0x15)
}

fn no_value(_: &mut Random, _: u64) -> Option<Vec<u8>> {
    None
}

machines! {
    token_bucket: bucket, TokenBucket::burst, bucket_value, 1, 100_000;
    sliding_window: Random::sliding, |limit: &SlidingWindow| limit.limit().into(), sliding_value, 1, 100_000;
    fixed_window: Random::fixed, |limit: &FixedWindow| limit.limit().into(), fixed_value, 1, 100_000;
    all_of_four: quartet, least_burst, members_value::<4>, 1, 80_000;
    all_of_two: pair, least_burst, members_value::<2>, 1, 12_000;
    any_algorithm: any, any_burst, bucket_value, 1, 12_000;
    versions: versions(), TokenBucket::burst, bucket_value, 1, 20_000;
    sliding_log: Random::log, |limit: &SlidingLog| limit.limit().into(), no_value, 1_000, 40_000;
}
