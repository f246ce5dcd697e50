//! A server whose memory is full.

use ratekeeper::Request;
use ratekeeper::store::ErrorKind;
use ratekeeper_test_servers::{Options, Server};

use crate::support::{Limiter, Raw, bucket, cas, clock, store};

/// Writes new keys until one of them is refused, or `gone` is gone.
fn fill(raw: &mut Raw, gone: &str) -> bool {
    for block in 0..400 {
        let mut refused = false;
        for key in 0..500 {
            // As long as a bucket in its name and value, and so from the same memory.
            let name = format!("flood-{block:03}-{key:03}");
            let (line, _) = raw.ask(format!("ms {name} 26 T600\r\n{:26}\r\n", ""));
            refused |= line.starts_with("SERVER_ERROR out of memory");
        }
        if refused || raw.life(gone) == "EN" {
            return refused;
        }
    }
    panic!("200,000 values fit into a megabyte");
}

#[tokio::test]
async fn an_evicted_key_is_a_new_one() {
    let server = Server::memcached(Options::new().args(["-m", "1", "-I", "512k"]));
    let cas = cas(&server, "evicted");
    let name = cas.name_of("alice");
    let limiter = Limiter::<str>::with_store(bucket(), store(cas, &clock()));
    let _ = limiter
        .apply_async("alice", Request::take(5))
        .await
        .unwrap();
    assert!(!limiter.check_async("alice").await.unwrap().is_allowed());
    assert!(
        !fill(&mut Raw::new(&server), &name),
        "memory was refused, not taken from others"
    );
    let decision = limiter.check_async("alice").await.unwrap();
    assert_eq!((decision.is_allowed(), decision.remaining()), (true, 4));
}

/// `-M`: a server that would rather fail than evict. It also drops the value that an exchange was to replace.
#[tokio::test]
async fn without_eviction_new_keys_are_errors_and_old_ones_are_lost() {
    let server = Server::memcached(Options::new().args(["-m", "1", "-I", "512k", "-M"]));
    let cas = cas(&server, "full");
    let name = cas.name_of("alice");
    let limiter = Limiter::<str>::with_store(bucket(), store(cas, &clock()));
    let _ = limiter.check_async("alice").await.unwrap();
    let mut raw = Raw::new(&server);
    assert!(
        fill(&mut raw, &name),
        "memory was taken from others, not refused"
    );
    assert_eq!(
        limiter
            .apply_async("alice", Request::PEEK)
            .await
            .unwrap()
            .remaining(),
        4
    );

    let error = limiter.check_async("alice").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotExecuted, "{error}");
    assert_eq!(raw.life(&name), "EN");
    // The connection is in step.
    assert_eq!(
        limiter
            .apply_async("bob", Request::PEEK)
            .await
            .unwrap()
            .remaining(),
        5
    );
}
