//! Real threads: no torn limit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ratekeeper::{Limiter, Live, Timestamp, TokenBucket};

#[test]
fn a_limit_is_one_or_the_other() {
    let limits = [
        TokenBucket::per_second(7).with_burst(1 << 40),
        TokenBucket::per_hour(3).with_burst(5),
    ];
    let live = Limiter::new(Live::new(limits[0]));
    let done = AtomicBool::new(false);
    let seen: u64 = thread::scope(|scope| {
        let readers = [(); 2].map(|()| {
            scope.spawn(|| {
                let mut seen = 0;
                while !done.load(Ordering::Relaxed) {
                    let limit = live.get();
                    assert!(limits.contains(&limit), "{limit:?}");
                    let shown = live.check_at(Timestamp::from_nanos(1_000)).limit();
                    assert!(limits.iter().any(|limit| limit.burst() == shown), "{shown}");
                    seen += 1;
                }
                seen
            })
        });
        for turn in 1..60_000 {
            live.set_at(limits[turn % 2], Timestamp::from_nanos(1_000))
                .unwrap();
        }
        done.store(true, Ordering::Relaxed);
        readers.map(|reader| reader.join().unwrap()).iter().sum()
    });
    assert!(seen > 0);
}
