//! Decisions under limits that change, each compared with exact fractions: `oracle [decisions] [seed]`.
//!
//! One key after another goes through random limits, readings, states far ahead of the caller, takes, parts, reservations and
//! charges. Prints how many decisions were compared; a difference is a panic that names it.

use std::time::Duration;

use ratekeeper::{Algorithm, Outcome, Request, Timestamp, TokenBucket};
use ratekeeper_fuzz::{Expected, expected};

struct Draw(u64);

impl Draw {
    /// Xorshift: a number below `most`.
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }

    fn limit(&mut self) -> TokenBucket {
        loop {
            let tokens = 1 + self.below(12);
            let period_ns = tokens + self.below(40);
            let limit =
                TokenBucket::new(tokens, Duration::from_nanos(period_ns), 1 + self.below(6));
            if let Ok(limit) = limit {
                let wait_ns = if self.below(2) == 0 {
                    0
                } else {
                    self.below(60)
                };
                return limit.with_max_wait(Duration::from_nanos(wait_ns));
            }
        }
    }

    fn request(&mut self) -> Request {
        let cost = self.below(9);
        match self.below(6) {
            0 => Request::up_to(cost),
            1 => Request::up_to(cost).at_least(self.below(5)),
            2 => Request::take(cost).or_wait(Duration::from_nanos(self.below(80))),
            3 => Request::charge(cost),
            _ => Request::take(cost),
        }
    }
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|text| text.replace('_', "").parse::<u64>());
    let mut next = |default| match arguments.next() {
        Some(Ok(number)) => number,
        Some(Err(error)) => panic!("oracle [decisions] [seed]: {error}"),
        None => default,
    };
    let (decisions, seed) = (next(1_000_000), next(1));
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (mut compared, mut refused) = (0_u64, 0_u64);
    while compared < decisions {
        let limits: Vec<TokenBucket> = (0..4).map(|_| draw.limit()).collect();
        let mut state = draw.below(300);
        let mut now_ns = draw.below(300);
        for _ in 0..64 {
            now_ns = match draw.below(8) {
                0 => now_ns.saturating_sub(draw.below(40)),
                1..=3 => now_ns,
                _ => now_ns + draw.below(30),
            };
            let limit = &limits[usize::try_from(draw.below(4)).unwrap_or(0)];
            let request = draw.request();
            let want = expected(limit, state, now_ns, &request);
            let before = state;
            let step = limit.step(Timestamp::from_nanos(now_ns), &mut state, &request);
            let decision = &step.decision;
            let got = Expected {
                tat_ns: state,
                granted: decision.is_allowed().then_some(decision.granted()),
                too_large: decision.outcome() == Outcome::TooLarge,
                wait_ns: u64::try_from(decision.wait().as_nanos()).unwrap_or(u64::MAX),
            };
            assert_eq!(got, want, "{limit} at {now_ns} from {before}: {request:?}");
            if let Some(wait) = decision.retry_after() {
                let wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
                let passes = |at_ns| expected(limit, state, at_ns, &request).granted.is_some();
                assert!(
                    passes(now_ns + wait_ns) && !passes(now_ns + wait_ns - 1),
                    "{limit}: wait {wait_ns}"
                );
                refused += 1;
            }
            compared += 1;
        }
    }
    println!(
        "{compared} decisions under limits that change, {refused} of them refused with a wait: none differs"
    );
}
