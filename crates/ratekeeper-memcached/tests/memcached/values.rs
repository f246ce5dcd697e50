//! Values that are no states.

use ratekeeper::Request;
use ratekeeper::store::ErrorKind;
use ratekeeper_test_servers::{Kind, Options, Server};

use crate::support::{Limiter, Raw, bucket, cas, clock, store};

#[tokio::test]
async fn foreign_values_are_left_alone() {
    let server = Server::shared(Kind::Memcached);
    let cas = cas(server, "foreign");
    let name = cas.name_of("alice");
    let limiter = Limiter::<str>::with_store(bucket(), store(cas, &clock()));
    let mut raw = Raw::new(server);
    let window = [
        0x13, 0, 6, 10, 0x24, 0x18, 0x1e, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 10,
    ];
    let newer = [0x21, 0, 0, 0, 0, 0, 0, 0, 1];
    let (long, huge) = ([0x11; 500], vec![b'\n'; 100_000]);
    let values: [&[u8]; 8] = [
        b"hello",
        b"42",
        b"",
        &window,
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

#[tokio::test]
async fn another_process_reads_the_same_bytes() {
    let server = Server::shared(Kind::Memcached);
    let cas = cas(server, "golden");
    let name = cas.name_of("alice");
    let clock = clock();
    clock.set(ratekeeper::Timestamp::from_nanos(1_700_000_000_000_000_000));
    let limiter = Limiter::<str>::with_store(bucket(), store(cas, &clock));
    let _ = limiter.check_async("alice").await.unwrap();
    let golden = [0x11, 0x17, 0x97, 0x9c, 0xfe, 0x3c, 0x1f, 0xe1, 0x00];
    assert_eq!(Raw::new(server).ask(format!("mg {name} v\r\n")).1, golden);
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
