//! Values that are no states.

use std::time::Duration;

use ratekeeper::store::ErrorKind;
use ratekeeper::{Request, Timestamp};
use ratekeeper_test_servers::{Kind, Options, Server};

use crate::support::{Limiter, Raw, bucket, cas, clock, store};

#[tokio::test]
async fn foreign_values_are_left_alone() {
    let server = Server::shared(Kind::Memcached);
    let cas = cas(server, "foreign");
    let name = cas.name_of("alice");
    let limiter = Limiter::<str>::with_store(bucket(), store(cas, &clock()));
    let mut raw = Raw::new(server);
    let newer = [0x21, 0, 0, 0, 0, 0, 0, 0, 1];
    let (long, huge) = ([0x11; 500], vec![b'\n'; 100_000]);
    let stamped = [&[0x70; 9][..], b"hello"].concat();
    let values: [&[u8]; 10] = [
        b"hello",
        b"42",
        b"",
        &stamped,
        &stamped[..9],
        &stamped[..1],
        &newer,
        &newer[..8],
        &long,
        &huge,
    ];
    for value in values {
        raw.set(&name, value);
        let before = raw.life(&name);
        for request in [Request::ONE, Request::PEEK] {
            let error = limiter.apply_async("alice", request).await.unwrap_err();
            assert_eq!(
                error.kind(),
                ErrorKind::Corrupt,
                "{} bytes: {error}",
                value.len()
            );
        }
        assert_eq!(raw.life(&name), before);
        assert_eq!(raw.ask(format!("mg {name} v\r\n")).1, value);
        // The connection is in step.
        assert!(
            limiter
                .apply_async("bob", Request::PEEK)
                .await
                .unwrap()
                .is_allowed()
        );
    }
    limiter.forget_async("alice").await.unwrap();
    assert!(limiter.check_async("alice").await.unwrap().is_allowed());
}

/// The instant of the write, the TAT and its reach.
#[tokio::test]
async fn another_process_reads_the_same_bytes() {
    const NOW_NS: u64 = 1_700_000_000_000_000_000;
    let server = Server::shared(Kind::Memcached);
    let cas = cas(server, "golden");
    let name = cas.name_of("alice");
    let clock = clock();
    clock.set(Timestamp::from_nanos(NOW_NS));
    let limiter = Limiter::<str>::with_store(bucket(), store(cas, &clock));
    let _ = limiter.check_async("alice").await.unwrap();
    let golden = [
        &[0x70][..],
        &NOW_NS.to_be_bytes(),
        &[0x21, 0x17, 0x97, 0x9c, 0xfe, 0x3c, 0x1f, 0xe1, 0x00],
        &500_000_000_u64.to_be_bytes(),
    ];
    let value = Raw::new(server).ask(format!("mg {name} v\r\n")).1;
    assert_eq!(value, golden.concat());
}

/// Earlier versions wrote a TAT alone, and a stamp as the item's flags: honest debt, from no known instant.
#[tokio::test]
async fn values_of_earlier_versions_are_debt_until_a_take() {
    let server = Server::shared(Kind::Memcached);
    let cas = cas(server, "earlier");
    let clock = clock();
    let limiter = Limiter::<str>::with_store(bucket(), store(cas.clone(), &clock));
    let mut raw = Raw::new(server);
    let now_ns = ratekeeper::Clock::now(&clock).as_nanos();
    // Half a second ahead: empty. A day ahead, though no bucket of this limit books so far: nothing is cut.
    for (key, ahead_ms) in [("empty", 500), ("deep", 86_400_000)] {
        let name = cas.name_of(key);
        let tat = (now_ns + ahead_ms * 1_000_000).to_be_bytes();
        let value = [&[0x11][..], &tat].concat();
        let mut request = format!("ms {name} 9 T600 F4294967295\r\n").into_bytes();
        request.extend(&value);
        request.extend(b"\r\n");
        assert_eq!(raw.ask(request).0, "HD");
        let refused = limiter.check_async(key).await.unwrap();
        let wait = Duration::from_millis(ahead_ms - 400);
        assert_eq!(refused.retry_after(), Some(wait), "{key}");
        assert_eq!(raw.ask(format!("mg {name} v\r\n")).1, value, "{key}");
    }
    clock.advance(Duration::from_millis(100));
    assert!(limiter.check_async("empty").await.unwrap().is_allowed());
    let value = raw.ask(format!("mg {} v\r\n", cas.name_of("empty"))).1;
    assert_eq!((value[0], value[9], value.len()), (0x70, 0x21, 26));

    // Windows had the names that are the buckets' alone now.
    let name = cas.name_of("window");
    raw.set(&name, &[&[0x13][..], &[7; 16]].concat());
    assert_eq!(limiter.check_async("window").await.unwrap().remaining(), 4);
}

/// Without versions every exchange would be refused.
#[tokio::test]
async fn a_server_without_versions_is_refused() {
    let server = Server::memcached(Options::new().args(["-C"]));
    let limiter = Limiter::<str>::with_store(bucket(), store(cas(&server, "no-cas"), &clock()));
    assert!(limiter.check_async("alice").await.unwrap().is_allowed());
    let error = limiter.check_async("alice").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
}
