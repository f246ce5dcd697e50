//! An algorithm that the crate does not know, with a function of its own.

use std::time::Duration;

use ratekeeper::store::{AsyncStore, ErrorKind, StoreError};
use ratekeeper::{Algorithm, Decision, Outcome, Request, Step, Timestamp};
use ratekeeper_postgres::{Call, InvalidSchema, PostgresAlgorithm, Reply, Schema};

use crate::common::{database, sql, store};

/// One request, then none for a while.
#[derive(Clone, Debug)]
struct Cooldown(Duration);

impl Algorithm for Cooldown {
    type State = u64;

    fn step(&self, now: Timestamp, until_ns: &mut u64, request: &Request) -> Step {
        let left = Timestamp::from_nanos(*until_ns).saturating_since(now);
        if request.cost() == 0 {
            return Step::unchanged(Decision::new(
                Outcome::Allowed,
                1,
                left.is_zero().into(),
                left,
            ));
        }
        if left.is_zero() {
            *until_ns = (now + self.0).as_nanos();
            return Step::write(Decision::new(Outcome::Allowed, 1, 0, self.0), self.0);
        }
        Step::unchanged(Decision::new(
            Outcome::Denied { retry_after: left },
            1,
            0,
            left,
        ))
    }

    fn tag(&self) -> u8 {
        0x80
    }
}

const STEP: &str = r"
    DECLARE
      until_ns numeric := 0;
    BEGIN
      IF old IS NOT NULL THEN
        IF octet_length(old) <> 9 OR substring(old FROM 1 FOR 1) <> '\x80' THEN
          RAISE EXCEPTION 'not a cooldown' USING ERRCODE = 'RK001';
        END IF;
        until_ns := @schema@.word_v1(old, 2);
      END IF;
      IF until_ns <= now_ns THEN
        new := '\x80'::bytea || @schema@.bytes_v1(now_ns + args[1]);
        keep_ns := args[1];
      END IF;
    END;";

impl PostgresAlgorithm for Cooldown {
    fn call(&self, request: &Request) -> Result<Call, StoreError> {
        match request.cost() {
            0 => Ok(Call::look()),
            1 => Ok(Call::new(
                "cooldown",
                [u64::try_from(self.0.as_nanos()).unwrap()],
            )),
            _ => Err(StoreError::new(ErrorKind::Unsupported, "one at a time")),
        }
    }
}

#[tokio::test]
async fn a_function_of_ones_own() {
    let url = database("own_function").await;
    sql(
        &url,
        &Schema::default().function_sql("cooldown", STEP).unwrap(),
    );
    assert_eq!(
        Schema::default().function_sql("Cool down", STEP),
        Err(InvalidSchema)
    );
    let store = store(&url, 2);
    let limit = Cooldown(Duration::from_secs(3_600));
    let ask = async |cost| store.apply_async("k", &limit, Request::take(cost)).await;
    assert_eq!(ask(0).await.unwrap().remaining(), 1);
    assert!(ask(1).await.unwrap().is_allowed());
    let denied = ask(1).await.unwrap();
    assert!(
        denied.retry_after().unwrap() > Duration::from_secs(3_500),
        "{denied:?}"
    );
    assert_eq!(ask(2).await.unwrap_err().kind(), ErrorKind::Unsupported);
    sql(&url, "UPDATE ratekeeper.states_v1 SET state = '\\x11'");
    assert_eq!(ask(1).await.unwrap_err().kind(), ErrorKind::Corrupt);
}

/// If the machines differ by a single nanosecond, that is noticed.
#[tokio::test]
async fn a_function_that_differs() {
    let url = database("differs").await;
    let wrong = STEP.replace("now_ns + args[1]", "now_ns + args[1] + 1");
    sql(
        &url,
        &Schema::default().function_sql("cooldown", &wrong).unwrap(),
    );
    let store = store(&url, 1);
    let limit = Cooldown(Duration::from_secs(60));
    let error = store
        .apply_async("k", &limit, Request::ONE)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(
        error.message(),
        "the function and this process disagree about the outcome"
    );
}

/// An algorithm that only tells what it is told: the instant.
#[derive(Clone, Debug)]
struct Instant;

impl Algorithm for Instant {
    type State = u64;

    fn step(&self, now: Timestamp, _state: &mut u64, _request: &Request) -> Step {
        Step::unchanged(Decision::new(
            Outcome::Allowed,
            0,
            now.as_nanos(),
            Duration::ZERO,
        ))
    }

    fn tag(&self) -> u8 {
        0x81
    }
}

impl PostgresAlgorithm for Instant {
    fn call(&self, _request: &Request) -> Result<Call, StoreError> {
        Ok(Call::look())
    }

    fn answer(&self, request: &Request, reply: &Reply) -> Result<Decision, StoreError> {
        assert_eq!((reply.old, reply.new), (None, None));
        Ok(self.step(reply.now, &mut 0, request).decision)
    }
}

/// Instants go to the server and come back, whatever `numeric` makes of their digits.
#[tokio::test]
async fn every_instant_comes_back() {
    let clock = std::sync::Arc::new(ratekeeper::ManualClock::new());
    let store = store(&database("instants").await, 1).with_clock(clock.clone(), Duration::ZERO);
    let powers = (0..20).map(|power| 10_u64.pow(power));
    let near = powers.flat_map(|power| [power - 1, power, power + 1, power.wrapping_mul(7)]);
    for now_ns in near.chain([u64::MAX - 1, u64::MAX, 1_767_225_600_000_001_000]) {
        clock.set(Timestamp::from_nanos(now_ns));
        let decision = store
            .apply_async("k", &Instant, Request::ONE)
            .await
            .unwrap();
        assert_eq!(decision.remaining(), now_ns);
    }
}
