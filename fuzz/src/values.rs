//! Bytes of states and keys.

use std::time::Duration;

use arbitrary::{Result, Unstructured};
use ratekeeper::store::{
    ErrorKind, Key, KeyKind, Namespace, StateBytes, compare_versions, step_stored,
};
use ratekeeper::{Algorithm, All, AnyAlgorithm, Outcome, Request, Timestamp};

use crate::input;

/// Tries arbitrary values under every kind of limit, and arbitrary keys.
pub fn values(data: &[u8]) {
    let mut u = Unstructured::new(data);
    let _ = run(&mut u);
}

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let now = Timestamp::from_nanos(u.arbitrary()?);
    let bucket = input::bucket(u, true)?.with_version(u.int_in_range(0..=3)?);
    let plain = input::bucket(u, true)?;
    let (sliding, fixed) = (input::sliding_window(u)?, input::fixed_window(u)?);
    let request = input::take(u, true)?;
    keys(u)?;
    let bytes = u.bytes(u.len())?;
    value(&bucket, now, bytes, &request);
    value(&AnyAlgorithm::from(bucket), now, bytes, &request);
    value(&sliding, now, bytes, &request);
    value(&fixed, now, bytes, &request);
    value(&All([plain; 2]), now, bytes, &request);
    value(&All((sliding, plain)), now, bytes, &request);
    Ok(())
}

/// Bytes that are taken for a state lead to a value that is one, and to an honest answer; others to an error that says why.
fn value<A: Algorithm>(limit: &A, now: Timestamp, bytes: &[u8], request: &Request) {
    let Ok(found) = StateBytes::from_stored(bytes) else {
        assert!(bytes.is_empty() || bytes.len() > StateBytes::CAPACITY);
        return;
    };
    assert_eq!(&*found, bytes);
    let step = match step_stored(limit, now, Some(&found), request) {
        Ok(step) => step,
        Err(error) => {
            assert!(matches!(
                error.kind(),
                ErrorKind::Corrupt | ErrorKind::Config
            ));
            return;
        }
    };
    let is_peek = request.cost() == 0;
    assert!(!is_peek || step.write.is_none(), "a peek writes nothing");
    let Some(write) = step.write else {
        return;
    };
    assert!(write.value.len() <= StateBytes::CAPACITY);
    if found.len() == 43 || bucket_with_version(&write.value) {
        assert!(write.value.len() <= 44, "one allocation in Redis");
    }
    // What was written is read again, by this limit or by the newer version that it met.
    assert!(
        !matches!(compare_versions(limit, now, &write.value), Err(error) if error.kind() == ErrorKind::Corrupt)
    );
    let again = step_stored(limit, now, Some(&write.value), &Request::PEEK).expect("our own value");
    assert!(again.write.is_none());
    let outcome = step.decision.outcome();
    if matches!(outcome, Outcome::Denied { .. } | Outcome::TooLarge) {
        // Only a repair or a newer version is stored with a refusal: and it refuses still.
        let still = step_stored(limit, now, Some(&write.value), request).expect("our own value");
        assert_eq!(still.decision.outcome(), outcome);
        assert!(still.write.is_none(), "once");
    }
    assert!(write.keep <= Duration::from_nanos(u64::MAX));
}

fn bucket_with_version(value: &StateBytes) -> bool {
    value.first() == Some(&0x31)
}

/// Distinct keys have distinct bytes, alone and side by side, and so have distinct kinds.
fn keys(u: &mut Unstructured<'_>) -> Result<()> {
    let [a, b, c, d]: [&str; 4] = [
        u.arbitrary()?,
        u.arbitrary()?,
        u.arbitrary()?,
        u.arbitrary()?,
    ];
    let space = Namespace::new("fuzz").expect("a legal name");
    let same = |left: &dyn Fn() -> Vec<u8>, right: &dyn Fn() -> Vec<u8>| left() == right();
    assert_eq!(same(&|| space.key(a), &|| space.key(b)), a == b);
    let pairs = same(&|| space.key(&(a, b)), &|| space.key(&(c, d)));
    assert_eq!(pairs, (a, b) == (c, d));
    let (x, y): (&[u8], &[u8]) = (u.arbitrary()?, u.arbitrary()?);
    assert_eq!(same(&|| space.key(x), &|| space.key(y)), x == y);
    let numbers: (u64, i32) = u.arbitrary()?;
    let mut bytes = Vec::new();
    numbers.write(&mut |part| bytes.extend_from_slice(part));
    assert!(!bytes.is_empty());

    let kinds = [
        KeyKind::of(&input::sliding_window(u)?),
        KeyKind::of(&input::fixed_window(u)?),
    ];
    assert_ne!(kinds[0], kinds[1]);
    assert_ne!(
        space.key_of_kind(a, &kinds[0]),
        space.key_of_kind(a, &kinds[1])
    );
    assert_ne!(space.key_of_kind(a, &kinds[0]), space.key(b));
    Ok(())
}
