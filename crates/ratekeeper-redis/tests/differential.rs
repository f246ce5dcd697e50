//! The scripts and the machines in Rust, fed the same random requests: they must agree in every decision and leave the same
//! bytes.
//!
//! Each sequence has a key of its own and goes through the whole store, in batches of one step for many keys. Limits change on
//! the way, the clock steps forwards and backwards, receipts are kept and used later.

use std::sync::Arc;
use std::time::Duration;

use ratekeeper::store::{AsyncStore, Item, Namespace, StateBytes};
use ratekeeper::{
    All, AnyAlgorithm, FixedWindow, ManualClock, Receipt, Request, SlidingLog, SlidingWindow,
    Timestamp, TokenBucket,
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

    fn window_limit(&mut self) -> u32 {
        let most = if self.one_in(4) { u32::MAX } else { 12 };
        u32::try_from(self.magnitude(most.into())).unwrap()
    }

    fn sliding(&mut self) -> SlidingWindow {
        SlidingWindow::per(self.window_limit(), self.period())
    }

    fn fixed(&mut self) -> FixedWindow {
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
    fn log(&mut self) -> SlidingLog {
        let limit = u32::try_from(self.magnitude(12)).unwrap();
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
    state: A::State,
    receipts: Vec<[Receipt; 2]>,
}

async fn agree<A>(
    kind: Kind,
    name: &str,
    mut random_limit: impl FnMut(&mut Random) -> A,
    most: impl Fn(&A) -> u64,
    tick_ns: u64,
    most_sequences: usize,
) where
    A: RedisAlgorithm,
{
    let server = Server::start(kind, Options::new());
    let clock = Arc::new(ManualClock::new());
    let store = RedisStore::connect(
        format!("redis://{}/", server.address()),
        Namespace::new(name).unwrap(),
    )
    .unwrap()
    .with_deadline(Duration::from_secs(60))
    .with_clock(clock.clone(), GRACE);
    let mut random = Random(
        name.bytes()
            .fold(7, |seed, byte| seed.wrapping_mul(131) + u64::from(byte)),
    );
    let (mut decisions, mut refusals) = (0_u64, 0_u64);
    for round in 0..sequences(kind, most_sequences) / ABREAST {
        let mut now_ns = random.magnitude(1 << 62) / tick_ns * tick_ns;
        let scale_ns = random.magnitude(1 << 50);
        let mut sequences: Vec<Sequence<A>> = (0..ABREAST)
            .map(|index| Sequence {
                key: format!("{round}-{index}"),
                limit: random_limit(&mut random),
                state: A::State::default(),
                receipts: Vec::new(),
            })
            .collect();
        for _ in 0..STEPS {
            now_ns = random.next_instant(now_ns, scale_ns) / tick_ns * tick_ns;
            let now = Timestamp::from_nanos(now_ns);
            clock.set(now);
            let mut local = Vec::new();
            let mut remote = Vec::new();
            for sequence in &mut sequences {
                if random.one_in(16) {
                    sequence.limit = random_limit(&mut random);
                }
                let [for_store, for_machine] =
                    random.request(most(&sequence.limit), scale_ns, &mut sequence.receipts);
                let what = format!(
                    "{:?} at {now_ns} on {:?}: {for_store:?}",
                    sequence.limit, sequence.state
                );
                let step = sequence.limit.step(now, &mut sequence.state, &for_machine);
                local.push((step.decision, what));
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
                let answer = answer.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(answer, expected, "{what}");
                decisions += 1;
                refusals += u64::from(!answer.is_allowed());
                let receipts = [answer.into_receipt(), expected.into_receipt()];
                if receipts[0].charged() > 0 {
                    sequence.receipts.push(receipts);
                }
            }
        }
        check_bytes(&server, name, &sequences);
        server.command(&["FLUSHALL"]).unwrap();
    }
    println!("{name} on {kind}: {decisions} decisions agree, {refusals} of them refusals");
    assert!(
        refusals > decisions / 20 && refusals < decisions * 19 / 20,
        "the requests test too little"
    );
}

/// What the server holds for a tenth of the keys, against the machine's own state.
fn check_bytes<A: RedisAlgorithm>(server: &Server, name: &str, sequences: &[Sequence<A>]) {
    for sequence in sequences.iter().step_by(10) {
        // The log has no such form; its set is checked by its decisions.
        let Ok(expected) = StateBytes::encode(&sequence.limit, &sequence.state) else {
            return;
        };
        let fresh = StateBytes::encode(&sequence.limit, &A::State::default()).unwrap();
        let key = format!("rl:{name}:{}", sequence.key);
        let hex: String = expected.iter().map(|byte| format!("{byte:02x}")).collect();
        let script = "local v = redis.call('GET', KEYS[1]) or '' \
                      return (v:gsub('.', function(c) return string.format('%02x', c:byte()) end))";
        let found = server.command(&["EVAL", script, "1", &key]).unwrap();
        if found.is_empty() {
            assert_eq!(expected, fresh, "{key} is missing");
        } else {
            assert_eq!(found, hex, "{key}");
        }
    }
}

macro_rules! machines {
    ($($name:ident: $limit:expr, $most:expr, $tick_ns:expr, $sequences:expr;)+) => {
        $(mod $name {
            use super::*;

            #[tokio::test]
            async fn redis() {
                agree(Kind::Redis, stringify!($name), $limit, $most, $tick_ns, $sequences).await;
            }

            #[tokio::test]
            async fn redis_6_2() {
                agree(Kind::Redis62, stringify!($name), $limit, $most, $tick_ns, $sequences).await;
            }

            #[tokio::test]
            async fn valkey() {
                agree(Kind::Valkey, stringify!($name), $limit, $most, $tick_ns, $sequences).await;
            }
        })+
    };
}

fn pair(random: &mut Random) -> All<[TokenBucket; 2]> {
    All([random.bucket(), random.bucket()])
}

fn quartet(random: &mut Random) -> All<[TokenBucket; 4]> {
    All([(); 4].map(|()| random.bucket()))
}

fn least_burst<const N: usize>(limits: &All<[TokenBucket; N]>) -> u64 {
    limits.0.iter().map(TokenBucket::burst).min().unwrap_or(1)
}

machines! {
    token_bucket: Random::bucket, TokenBucket::burst, 1, 100_000;
    sliding_window: Random::sliding, |limit| limit.limit().into(), 1, 100_000;
    fixed_window: Random::fixed, |limit| limit.limit().into(), 1, 100_000;
    all_of_four: quartet, least_burst, 1, 100_000;
    all_of_two: pair, least_burst, 1, 20_000;
    any_algorithm: Random::any, |limit| match limit {
        AnyAlgorithm::TokenBucket(limit) => limit.burst(),
        _ => 1,
    }, 1, 20_000;
    sliding_log: Random::log, |limit| limit.limit().into(), 1_000, 40_000;
}
