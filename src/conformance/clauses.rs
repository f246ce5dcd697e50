//! The clauses, one function each; [`CLAUSES`] lists them.
//!
//! Each takes a subject, opens key spaces of its own, and returns what it found; `unwrap` makes a test of it. The numbers
//! that they expect are worked out by hand, except where the name says that a store *agrees with the machine*: there the
//! [`Algorithm`](crate::Algorithm) itself is asked.

mod agreement;
mod batches;
mod concurrency;
mod decisions;
mod drops;
mod faults;
mod foreign;
mod forgetting;
mod keys;
mod lifetime;
mod limits;
mod refunds;
mod stale;
mod time;
mod untouched;
mod windows;

pub use self::agreement::*;
pub use self::batches::*;
pub use self::concurrency::*;
pub use self::decisions::*;
pub use self::drops::*;
pub use self::faults::*;
pub use self::foreign::*;
pub use self::forgetting::*;
pub use self::keys::*;
pub use self::lifetime::*;
pub use self::limits::*;
pub use self::refunds::*;
pub use self::stale::*;
pub use self::time::*;
pub use self::untouched::*;
pub use self::windows::*;

use self::prelude::{Checked, Subject};

/// What the clauses have in common.
mod prelude {
    pub(super) use alloc::format;
    pub(super) use core::fmt;
    pub(super) use core::time::Duration;

    pub(super) use super::super::client::{Client, Shown};
    pub(super) use super::super::finding::{Checked, Finding};
    pub(super) use super::super::kit::{DAY, Kit, SECOND, YEAR, ms, ns};
    pub(super) use super::super::need::Need;
    pub(super) use super::super::repairs::Repairs;
    pub(super) use super::super::seen::Seen;
    pub(super) use super::super::subject::Subject;
    pub(super) use crate::algorithm::{
        Algorithm, All, FixedWindow, SlidingLog, SlidingWindow, TokenBucket,
    };
    pub(super) use crate::decision::Decision;
    pub(super) use crate::request::Request;
    pub(super) use crate::store::{AsyncStore as _, DynStore, ErrorKind, StoreError};

    /// A bucket that refills within 100 days: next to nothing comes back while a test runs. A token takes a whole number of
    /// nanoseconds, so that refunds are exact.
    pub(super) fn slow(burst: u64) -> TokenBucket {
        let token_ns = DAY.as_nanos() * 100 / u128::from(burst.max(1));
        TokenBucket::per(1, ns(u64::try_from(token_ns).unwrap_or(1))).with_burst(burst)
    }
}

/// A clause: a promise of the stores' contract, and the function that checks it.
#[derive(Clone, Copy)]
pub struct Clause {
    name: &'static str,
    promise: &'static str,
    check: fn(&dyn Subject) -> Checked,
}

impl Clause {
    /// The name of the function.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Which promise of [`Store`](crate::store::Store)'s contract it checks.
    pub const fn promise(&self) -> &'static str {
        self.promise
    }

    /// Checks it.
    ///
    /// # Errors
    /// The store breaks it, or it does not apply.
    pub fn check(&self, subject: &dyn Subject) -> Checked {
        (self.check)(subject)
    }
}

impl core::fmt::Debug for Clause {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} ({})", self.name, self.promise)
    }
}

macro_rules! clauses {
    ($($promise:literal: $($name:ident),+;)+) => {
        &[$($(Clause { name: stringify!($name), promise: $promise, check: $name }),+),+]
    };
}

/// All clauses.
pub const CLAUSES: &[Clause] = clauses! {
    "run this algorithm on this key":
        bursts_end_in_a_promise, denials_cost_nothing, peeks_take_nothing, costs_are_counted, large_costs_never_pass,
        tokens_come_back, partial_grants_give_what_there_is, rates_do_not_drift, fast_and_slow_rates_are_exact,
        limits_at_the_edge_are_exact_or_refused, the_limit_of_the_call_counts, refunds_give_back, receipts_bound_refunds,
        reservations_stand_in_line, reservations_can_be_cancelled, charges_go_into_debt,
        charges_take_whole_tokens_or_nothing, sliding_windows_slide,
        fixed_windows_turn, logs_are_exact, several_limits_are_all_or_nothing, takes_agree_with_the_machine,
        requests_agree_with_the_machine, windows_agree_with_the_machine, fixed_windows_agree_with_the_machine,
        several_limits_agree_with_the_machine, logs_agree_with_the_machine;
    "limits that differ on one key are safe":
        limits_that_differ_pay_in_time, refusals_forgive_nothing, other_windows_count_for_themselves;
    "a change moves a key once":
        changes_keep_tokens, changes_carry_what_was_chosen;
    "linearizable per key":
        requests_on_a_bucket_are_serial, requests_on_a_window_are_serial, requests_on_a_fixed_window_are_serial,
        requests_on_several_limits_are_serial, requests_on_a_log_are_serial, concurrent_refunds_are_counted,
        handles_share_a_key_space;
    "unchanged means untouched":
        refusals_write_nothing, refusals_prolong_nothing, refusals_create_nothing;
    "kept long enough":
        states_last_until_they_are_fresh, times_to_live_cover_what_is_owed;
    "never immortal":
        states_do_not_live_for_ever;
    "a denial is `Ok`":
        denials_are_answers;
    "undecodable values are errors":
        foreign_values_are_errors, values_of_other_kinds_are_absent, other_types_are_errors, states_have_the_common_form;
    "nothing is retried":
        refused_requests_count_nothing, lost_answers_count_at_most_once;
    "keys do not meet":
        keys_do_not_meet, tuple_keys_do_not_meet, byte_keys_do_not_meet, key_spaces_do_not_meet;
    "the store owns the clock":
        states_ahead_are_debt, readings_behind_find_debt, stale_readings_forgive_nothing, clock_steps_lock_nobody_out,
        repairs_are_written, windows_ahead_begin_now;
    "a lost state is a key never seen":
        lost_states_are_fresh;
    "dropping a future is safe":
        dropped_requests_count_at_most_once, dropped_batches_know_what_was_asked;
    "a deadline":
        hung_requests_end_in_time;
    "batches":
        batches_count_every_item, batches_agree_with_the_machine, answered_items_are_left_alone, bad_items_spoil_no_others;
    "forgetting":
        forgotten_keys_are_fresh, forgotten_keys_leave_nothing;
};
