//! What the kit itself says: of stores that cannot do everything, of wrong lists, and of stores that panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use ratekeeper::conformance::{
    CLAUSES, Finding, Need, Repairs, Report, Subject, check_all, clauses,
};
use ratekeeper::store::{AsyncStore, DynStore, ErrorKind, StoreError};
use ratekeeper::{Algorithm, Decision, ManualClock, Request, TokenBucket};

use crate::broken::BrokenStores;
use crate::flaws::Flaw;

/// A store that conforms and can do little: plain takes, under limits that fill within 104 days.
struct Modest(DynStore<str, TokenBucket>);

impl AsyncStore<str, TokenBucket> for Modest {
    async fn apply_async(
        &self,
        key: &str,
        limit: &TokenBucket,
        request: Request,
    ) -> Result<Decision, StoreError> {
        let fills =
            limit.period().as_nanos() * u128::from(limit.burst()) / u128::from(limit.tokens());
        let is_plain = matches!(&request, Request::Take { cost, at_least, max_wait, .. }
            if at_least == cost && *max_wait == Duration::ZERO);
        if !is_plain || fills >= 1 << 53 {
            return Err(StoreError::new(ErrorKind::Unsupported, "no such request"));
        }
        self.0.apply_async(key, limit, request).await
    }
}

struct ModestStores(BrokenStores);

impl Subject for ModestStores {
    fn buckets(&self, space: &str) -> DynStore<str, TokenBucket> {
        DynStore::new(Modest(self.0.buckets(space)))
    }

    fn clock(&self) -> Option<&ManualClock> {
        self.0.clock()
    }

    fn repairs(&self) -> Repairs {
        self.0.repairs()
    }
}

const MODEST: &[Need] = &[
    Need::PartialGrants,
    Need::ExtremeLimits,
    Need::Refunds,
    Need::Reservations,
    Need::Windows,
    Need::FixedWindows,
    Need::Logs,
    Need::Several,
    Need::Backend,
    Need::TupleKeys,
    Need::ByteKeys,
    Need::Forgetting,
    Need::Changes,
];

fn modest() -> ModestStores {
    ModestStores(BrokenStores::new(Flaw::None))
}

#[test]
fn a_store_need_not_be_able_to_do_everything() {
    check_all(&modest(), MODEST);
    let report = Report::of(&modest());
    assert_eq!(report.findings().count(), CLAUSES.len());
    for need in MODEST {
        assert!(report.to_string().contains(&format!("({need})")), "{need}");
    }
}

#[test]
fn what_is_not_tested_must_be_said_exactly() {
    let report = Report::of(&modest());
    assert_eq!(report.verdict(MODEST), Ok(()));
    let too_few = report.verdict(&MODEST[1..]).unwrap_err();
    assert!(
        too_few.contains("`partial_grants_give_what_there_is` does not apply: lacks PartialGrants"),
        "{too_few}"
    );
    let too_many = report
        .verdict(&[MODEST, &[Need::Clock]].concat())
        .unwrap_err();
    assert!(too_many.contains("said to lack Clock"), "{too_many}");
}

#[test]
fn a_finding_says_what_was_done_and_what_came_of_it() {
    let found = clauses::denials_cost_nothing(&BrokenStores::new(Flaw::CostsAreOne)).unwrap_err();
    let Finding::Broken {
        clause,
        case,
        expected,
        actual,
    } = &found
    else {
        panic!("{found}")
    };
    assert_eq!(*clause, "denials_cost_nothing");
    assert_eq!(
        (case.as_str(), expected.as_str()),
        ("all tokens of a fresh key", "remaining: 0")
    );
    assert!(
        actual.starts_with("Allowed, limit 5, remaining 4"),
        "{actual}"
    );
    for part in [*clause, case, expected, actual] {
        assert!(found.to_string().contains(part) && format!("{found:?}").contains(part));
    }
    let complaint =
        catch_unwind(|| check_all(&BrokenStores::new(Flaw::CostsAreOne), &[Need::Logs]));
    let complaint = *complaint.unwrap_err().downcast::<String>().unwrap();
    assert!(complaint.contains(&found.to_string()), "{complaint}");
}

/// A store that gives up.
struct Panicking;

impl<A: Algorithm> AsyncStore<str, A> for Panicking {
    async fn apply_async(&self, key: &str, _: &A, _: Request) -> Result<Decision, StoreError> {
        panic!("no answer for {key}")
    }
}

struct PanickingStores;

impl Subject for PanickingStores {
    fn buckets(&self, _space: &str) -> DynStore<str, TokenBucket> {
        DynStore::new(Panicking)
    }

    fn clock(&self) -> Option<&ManualClock> {
        None
    }
}

#[test]
fn a_panic_breaks_the_clause_and_no_others() {
    let report = catch_unwind(AssertUnwindSafe(|| Report::of(&PanickingStores))).unwrap();
    assert!(report.broken().contains(&"denials_are_answers"));
    assert!(report.broken().contains(&"requests_on_a_bucket_are_serial"));
    assert!(report.lacks().contains(&Need::Clock));
    let verdict = report.verdict(&[]).unwrap_err();
    assert!(
        verdict.contains("a panic: no answer for client"),
        "{verdict}"
    );
}

#[test]
fn algorithms_of_ones_own_are_compared_with_themselves() {
    let stores = BrokenStores::new(Flaw::None);
    let limits = [1, 3, 7].map(TokenBucket::per_second);
    let open = |space: &str| stores.buckets(space);
    clauses::your_algorithm_agrees_with_the_machine(&stores, &open, &limits).unwrap();
    let stores = BrokenStores::new(Flaw::IntervalsAreTruncated);
    let open = |space: &str| stores.buckets(space);
    clauses::your_algorithm_agrees_with_the_machine(&stores, &open, &limits).unwrap_err();
}
