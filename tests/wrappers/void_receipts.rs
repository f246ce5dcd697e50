//! Receipts that wrappers hand out give nothing back to a store whose clock counts from 1970, whatever the limit.

use std::time::Duration;

use ratekeeper::store::{ErrorKind, FailOpen, Fallback, Leased, Store};
use ratekeeper::{
    Algorithm, All, AnyAlgorithm, Decision, FixedWindow, ManualClock, Request, SlidingLog,
    SlidingWindow, TokenBucket,
};

use crate::support::{Answer, NOW, SECOND, Script, ms};

const HOUR: Duration = Duration::from_secs(3_600);
const YEARS: Duration = Duration::from_secs(50 * 365 * 86_400);

/// Refunds with every receipt that a wrapper can hand out for three tokens, of a key that has just been charged four.
fn is_void<A: Algorithm>(limit: A) {
    let take = |store: &dyn Store<str, A>| store.apply("a", &limit, Request::take(3)).unwrap();
    let outage = || Script::new([Answer::Fail(ErrorKind::Unknown)]);
    let receipts: [&dyn Fn() -> Decision; 3] = [
        &|| take(&FailOpen::new(outage())),
        &|| take(&Fallback::new(outage(), Script::default())),
        &|| {
            let store = Leased::with_clock(Script::default(), 50, ManualClock::new());
            assert!(take(&store).is_allowed());
            let local = take(&store);
            assert_eq!(store.hits(), 1, "{limit:?}");
            local
        },
    ];
    for receipt in receipts {
        for after in [Duration::ZERO, ms(1), SECOND] {
            let mut state = A::State::default();
            let charged = limit.step(NOW, &mut state, &Request::take(4)).decision;
            let before = format!("{state:?}");

            let receipt = receipt().into_receipt();
            assert_eq!(receipt.charged(), 3, "{limit:?}");
            let refund = Request::refund(3, receipt);
            let step = limit.step(NOW + after, &mut state, &refund);
            assert!(step.decision.is_allowed());
            assert_eq!(format!("{state:?}"), before, "{limit:?} after {after:?}");

            // The charge's own receipt does give something back.
            if after.is_zero() {
                let refund = Request::refund(3, charged.into_receipt());
                limit.step(NOW, &mut state, &refund);
                assert_ne!(format!("{state:?}"), before, "{limit:?}");
            }
        }
    }
}

#[test]
fn for_every_algorithm() {
    is_void(TokenBucket::per_second(10));
    is_void(TokenBucket::per(7, SECOND).with_burst(30));
    is_void(TokenBucket::per(1, YEARS).with_burst(10));
    is_void(TokenBucket::per_hour(9).with_max_wait(HOUR));
    is_void(SlidingWindow::per_minute(10));
    is_void(SlidingWindow::per(10, YEARS));
    is_void(SlidingLog::per_minute(10));
    is_void(FixedWindow::per_day(10));
    is_void(FixedWindow::per(10, YEARS));
    is_void(FixedWindow::per_day(10).with_offset(HOUR));
    is_void(FixedWindow::per_minute(10).anchored());
    is_void(AnyAlgorithm::from(TokenBucket::per_second(10)));
    is_void(AnyAlgorithm::from(SlidingWindow::per_minute(10)));
    is_void(AnyAlgorithm::from(FixedWindow::per_day(10)));
    is_void(All([
        TokenBucket::per_second(10),
        TokenBucket::per_hour(100),
    ]));
    is_void(All((
        TokenBucket::per_second(10),
        SlidingWindow::per_minute(20),
    )));
    is_void(All((
        FixedWindow::per_day(10),
        SlidingWindow::per_minute(20),
    )));
}
