//! A million tokens to a consumer who waits exactly as long as it is told: the rate does not drift, at
//! any point, by more than one request.

use ratekeeper::{Outcome, TokenBucket};

use crate::support::{Ask, bucket, ns, step};

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;

/// Takes `cost` at a time, `requests` times, and compares with the tokens that have flowed since.
fn consume(limit: &TokenBucket, begin: u64, cost: u64, requests: u64) {
    let (tokens, period) = (u128::from(limit.tokens()), limit.period().as_nanos());
    let (mut state, mut now) = (0, begin);
    for admitted in 1..=requests {
        let mut answer = step(limit, now, &mut state, &Ask::take(cost).request());
        if let Outcome::Denied { retry_after } = answer.decision.outcome() {
            now += ns(retry_after);
            answer = step(limit, now, &mut state, &Ask::take(cost).request());
        }
        assert_eq!(
            answer.decision.outcome(),
            Outcome::Allowed,
            "kept waiting at {now}"
        );
        // Both counts in units of 1/period tokens, so that nothing is rounded.
        let flowed = u128::from(now - begin) * tokens + u128::from(limit.burst()) * period;
        let taken = u128::from(admitted) * u128::from(cost) * period;
        let request = u128::from(cost) * period;
        assert!(
            taken <= flowed + request,
            "{admitted} at {now} are ahead of {limit}"
        );
        if admitted * cost > limit.burst() {
            assert!(
                taken + request >= flowed,
                "{admitted} at {now} are behind {limit}"
            );
        }
    }
}

#[test]
fn a_million_tokens_do_not_drift() {
    for tokens in [3, 7, 300_000, 999_983, 30_000_001, 600_000_001, 999_999_999] {
        consume(&bucket(tokens, SECOND, 1, 0), 0, 1, 1_000_000);
        consume(
            &bucket(tokens, SECOND, 10, 0),
            1_760_000_000 * SECOND + 7,
            1,
            100_000,
        );
    }
}

#[test]
fn a_slow_rate_does_not_drift() {
    consume(&bucket(1, DAY, 1, 0), 0, 1, 200_000);
    consume(&bucket(7, DAY, 3, 0), 12_345, 1, 1_000_000);
    consume(&bucket(1_000_000, 30 * DAY, 5, 0), 0, 2, 500_000);
}

/// Above one token a nanosecond only the rounding of each request counts; 1500 tokens are 1200 ns.
#[test]
fn a_dense_rate_does_not_drift() {
    consume(
        &bucket(1_250_000_000, SECOND, 1_500, 0),
        0,
        1_500,
        1_000_000,
    );
    consume(
        &bucket(1_250_000_000, SECOND, 15_000, 0),
        99,
        1_500,
        1_000_000,
    );
}

/// Rates so odd that their products need more than 64 bits.
#[test]
fn odd_rates_do_not_drift() {
    consume(&bucket((1 << 61) - 1, (1 << 62) + 3, 1, 0), 5, 1, 1_000_000);
    consume(&bucket((1 << 61) - 1, u64::MAX, 2, 0), 5, 1, 1_000_000);
    consume(&bucket(999_999_937, u64::MAX - 58, 1, 0), 0, 1, 1_000_000);
}
