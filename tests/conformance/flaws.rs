//! Each flaw, and the clauses that find it: no fewer, and no others.

use ratekeeper::conformance::{CLAUSES, Finding, Need, Report, check_all};

use crate::broken::BrokenStores;

macro_rules! flaws {
    ($($flaw:ident $place:ident $how:ident [$($clause:ident),* $(,)?],)+) => {
        /// A way to break the contract.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Flaw {
            None,
            $($flaw,)+
        }

        const FLAWS: &[(Flaw, Place, Found)] =
            &[$((Flaw::$flaw, flaws!(@$place), flaws!(@$how [$(stringify!($clause)),*]))),+];
    };
    (@by) => { BrokenStores::new };
    (@in_process) => { BrokenStores::in_process };
    (@only $clauses:expr) => { Found::ByOnly(&$clauses) };
    (@among $clauses:expr) => { Found::Among(&$clauses) };
}

/// Stores with a flaw: on a server, or as in this process.
type Place = fn(Flaw) -> BrokenStores;

/// Who finds a flaw.
#[derive(Clone, Copy, Debug)]
enum Found {
    /// These clauses and no others.
    ByOnly(&'static [&'static str]),
    /// These and many more, since it spoils most answers.
    Among(&'static [&'static str]),
}

flaws! {
    // unchanged means untouched
    DenialsAreWritten by only [refusals_write_nothing],
    DenialsCountAsWrites by only [refusals_write_nothing],
    PeeksAreWritten by only [
        refusals_write_nothing,
    ],
    MissingKeysAreCreated by only [refusals_create_nothing, refusals_write_nothing],
    DenialsAreCharged by among [denials_cost_nothing, refusals_write_nothing],
    DenialsRenewTheExpiry by only [
        fixed_windows_agree_with_the_machine,
        refusals_prolong_nothing,
        refusals_write_nothing,
        requests_agree_with_the_machine,
        several_limits_agree_with_the_machine,
        takes_agree_with_the_machine,
        windows_agree_with_the_machine,
    ],
    // linearizable per key
    ForgetsAtomicity by only [
        concurrent_refunds_are_counted,
        dropped_requests_count_at_most_once,
        requests_on_a_bucket_are_serial,
        requests_on_a_fixed_window_are_serial,
        requests_on_a_window_are_serial,
        requests_on_several_limits_are_serial,
        stale_readings_forgive_nothing,
    ],
    HandlesKeepTheirOwnData by among [handles_share_a_key_space, requests_on_a_bucket_are_serial],
    StatesAreCached by only [forgotten_keys_are_fresh, lost_states_are_fresh],
    // kept long enough, never immortal
    ExpiryIsCutToMilliseconds by only [
        batches_agree_with_the_machine,
        changes_keep_tokens,
        fast_and_slow_rates_are_exact,
        fixed_windows_agree_with_the_machine,
        limits_at_the_edge_are_exact_or_refused,
        requests_agree_with_the_machine,
        several_limits_agree_with_the_machine,
        states_last_until_they_are_fresh,
        takes_agree_with_the_machine,
        times_to_live_cover_what_is_owed,
        windows_agree_with_the_machine,
    ],
    ExpiryIsCutToSeconds by among [
        times_to_live_cover_what_is_owed,
        states_last_until_they_are_fresh,
    ],
    ExpiryIsAHundredthEarly by only [
        fixed_windows_agree_with_the_machine,
        fixed_windows_turn,
        requests_agree_with_the_machine,
        several_limits_agree_with_the_machine,
        states_ahead_are_debt,
        states_last_until_they_are_fresh,
        takes_agree_with_the_machine,
        times_to_live_cover_what_is_owed,
        windows_agree_with_the_machine,
    ],
    ExpiryIsCapped by only [
        fast_and_slow_rates_are_exact,
        states_last_until_they_are_fresh,
        times_to_live_cover_what_is_owed,
    ],
    WindowsExpireAfterOne by only [
        sliding_windows_slide,
        times_to_live_cover_what_is_owed,
        windows_agree_with_the_machine,
    ],
    ExpiryIsAYearLate by only [states_do_not_live_for_ever],
    NothingExpires by only [states_do_not_live_for_ever],
    // undecodable values are errors
    ForeignValuesAreAbsent by only [
        bad_items_spoil_no_others,
        foreign_values_are_errors,
        other_types_are_errors,
    ],
    ForeignValuesAreRemoved by only [
        bad_items_spoil_no_others,
        foreign_values_are_errors,
        other_types_are_errors,
    ],
    ForeignValuesAreOverwritten by only [
        bad_items_spoil_no_others,
        foreign_values_are_errors,
        other_types_are_errors,
    ],
    TagsAreIgnored by only [
        foreign_values_are_errors,
        states_have_the_common_form,
        values_of_other_kinds_are_absent,
    ],
    // a denial is `Ok`, and an error no decision
    DenialsAreErrors by among [denials_are_answers],
    ErrorsAreDenials by only [
        bad_items_spoil_no_others,
        foreign_values_are_errors,
        hung_requests_end_in_time,
        lost_answers_count_at_most_once,
        other_types_are_errors,
        refused_requests_count_nothing,
    ],
    ErrorsAllow by only [
        bad_items_spoil_no_others,
        foreign_values_are_errors,
        hung_requests_end_in_time,
        lost_answers_count_at_most_once,
        other_types_are_errors,
        refused_requests_count_nothing,
    ],
    // nothing is retried
    RetriesWhatMayHaveBeenExecuted by only [
        hung_requests_end_in_time,
        lost_answers_count_at_most_once,
    ],
    UnknownsAreCalledNotExecuted by only [
        hung_requests_end_in_time,
        lost_answers_count_at_most_once,
    ],
    WaitsForEver by only [hung_requests_end_in_time],
    AnswersInOrderOfArrival by only [
        concurrent_refunds_are_counted,
        dropped_batches_know_what_was_asked,
        dropped_requests_count_at_most_once,
        requests_on_a_bucket_are_serial,
        requests_on_a_fixed_window_are_serial,
        requests_on_a_window_are_serial,
        requests_on_several_limits_are_serial,
    ],
    CountsDroppedRequestsTwice by only [
        dropped_batches_know_what_was_asked,
        dropped_requests_count_at_most_once,
    ],
    // keys do not meet
    KeysLoseTheirSeparators by only [byte_keys_do_not_meet, tuple_keys_do_not_meet],
    KeysLoseTheirCase by only [keys_do_not_meet],
    KeysAreCutOff by only [keys_do_not_meet],
    KeysAreTrimmed by only [byte_keys_do_not_meet, keys_do_not_meet],
    KeysEndAtZero by only [byte_keys_do_not_meet, keys_do_not_meet],
    KeysAreMadeText by only [byte_keys_do_not_meet],
    SpacesAreIgnored by among [key_spaces_do_not_meet],
    SpacesRunIntoKeys by only [
        bad_items_spoil_no_others,
        foreign_values_are_errors,
        key_spaces_do_not_meet,
        other_types_are_errors,
        other_windows_count_for_themselves,
        refusals_prolong_nothing,
        refusals_write_nothing,
        states_have_the_common_form,
        times_to_live_cover_what_is_owed,
    ],
    // the store owns the clock
    RepairsAreNotWritten by only [
        fixed_windows_agree_with_the_machine,
        refusals_write_nothing,
        repairs_are_written,
        requests_agree_with_the_machine,
        several_limits_agree_with_the_machine,
        takes_agree_with_the_machine,
        windows_agree_with_the_machine,
    ],
    ClockStepsAreWaitedOut by only [
        clock_steps_lock_nobody_out,
        fixed_windows_agree_with_the_machine,
        repairs_are_written,
        requests_agree_with_the_machine,
        several_limits_agree_with_the_machine,
        takes_agree_with_the_machine,
        windows_agree_with_the_machine,
        windows_ahead_begin_now,
    ],
    ClockStepsForgive by only [
        clock_steps_lock_nobody_out,
        fixed_windows_agree_with_the_machine,
        readings_behind_find_debt,
        repairs_are_written,
        requests_agree_with_the_machine,
        several_limits_agree_with_the_machine,
        takes_agree_with_the_machine,
        windows_agree_with_the_machine,
        windows_ahead_begin_now,
    ],
    ReadsTheClockTooEarly by only [stale_readings_forgive_nothing],
    ReadingsAreReused by among [
        bursts_end_in_a_promise,
        tokens_come_back,
        takes_agree_with_the_machine,
    ],
    WindowsAheadAreKept by only [windows_ahead_begin_now, windows_agree_with_the_machine],
    CutsWhatIsAhead in_process only [
        limits_that_differ_pay_in_time,
        requests_agree_with_the_machine,
        states_ahead_are_debt,
        takes_agree_with_the_machine,
        the_limit_of_the_call_counts,
    ],
    RefusalsWriteWhatTheyCut in_process only [
        limits_that_differ_pay_in_time,
        readings_behind_find_debt,
        refusals_forgive_nothing,
        requests_agree_with_the_machine,
        states_ahead_are_debt,
        takes_agree_with_the_machine,
        the_limit_of_the_call_counts,
    ],
    // limits that differ on one key are safe
    LimitsThatDifferForgive in_process only [
        changes_carry_what_was_chosen,
        changes_keep_tokens,
        fixed_windows_agree_with_the_machine,
        limits_that_differ_pay_in_time,
        refusals_forgive_nothing,
        requests_agree_with_the_machine,
        several_limits_agree_with_the_machine,
        several_limits_are_all_or_nothing,
        states_ahead_are_debt,
        takes_agree_with_the_machine,
        the_limit_of_the_call_counts,
        windows_agree_with_the_machine,
    ],
    WindowsShareStates by only [
        other_windows_count_for_themselves,
        times_to_live_cover_what_is_owed,
    ],
    OtherKindsAreCorrupt by only [
        foreign_values_are_errors,
        values_of_other_kinds_are_absent,
    ],
    // a change moves a key once
    ChangesRunTwice by only [
        changes_carry_what_was_chosen,
        changes_keep_tokens,
    ],
    ChangesRunBackwards by only [
        changes_carry_what_was_chosen,
        changes_keep_tokens,
    ],
    ChangesTakeTheNewLimitForTheOld by only [
        changes_carry_what_was_chosen,
        changes_keep_tokens,
    ],
    ChangesKeepDebts by only [
        changes_carry_what_was_chosen,
        changes_keep_tokens,
    ],
    ChangesAlwaysKeepTokens by only [changes_carry_what_was_chosen],
    ChangesAreNotWritten by only [
        changes_carry_what_was_chosen,
        changes_keep_tokens,
    ],
    // run this algorithm on this key
    ChargesFillUp by only [
        charges_take_whole_tokens_or_nothing,
        refusals_write_nothing,
        requests_agree_with_the_machine,
        states_have_the_common_form,
    ],
    StatesAreRoundedToMicroseconds by only [
        batches_agree_with_the_machine,
        changes_keep_tokens,
        fast_and_slow_rates_are_exact,
        limits_at_the_edge_are_exact_or_refused,
        rates_do_not_drift,
        requests_agree_with_the_machine,
        states_have_the_common_form,
        states_last_until_they_are_fresh,
        takes_agree_with_the_machine,
    ],
    IntervalsAreTruncated by only [
        batches_agree_with_the_machine,
        changes_keep_tokens,
        fast_and_slow_rates_are_exact,
        limits_at_the_edge_are_exact_or_refused,
        rates_do_not_drift,
        requests_agree_with_the_machine,
        takes_agree_with_the_machine,
    ],
    WaitsAreRoundedDown by only [
        batches_agree_with_the_machine,
        bursts_end_in_a_promise,
        fast_and_slow_rates_are_exact,
        fixed_windows_agree_with_the_machine,
        limits_at_the_edge_are_exact_or_refused,
        rates_do_not_drift,
        requests_agree_with_the_machine,
        several_limits_agree_with_the_machine,
        states_last_until_they_are_fresh,
        takes_agree_with_the_machine,
        windows_agree_with_the_machine,
        windows_ahead_begin_now,
    ],
    PeeksTakeOne by among [peeks_take_nothing, refusals_create_nothing, refusals_write_nothing],
    CostsAreOne by among [costs_are_counted, takes_agree_with_the_machine],
    CostsAre32Bits by only [
        fixed_windows_agree_with_the_machine,
        large_costs_never_pass,
        limits_at_the_edge_are_exact_or_refused,
        requests_agree_with_the_machine,
        several_limits_agree_with_the_machine,
        takes_agree_with_the_machine,
        windows_agree_with_the_machine,
    ],
    LargeCostsAreDenied by only [
        batches_agree_with_the_machine,
        denials_are_answers,
        fixed_windows_agree_with_the_machine,
        large_costs_never_pass,
        limits_at_the_edge_are_exact_or_refused,
        requests_agree_with_the_machine,
        several_limits_agree_with_the_machine,
        sliding_windows_slide,
        takes_agree_with_the_machine,
        windows_agree_with_the_machine,
    ],
    GrantsAreAllOrNothing by only [
        charges_go_into_debt,
        charges_take_whole_tokens_or_nothing,
        fixed_windows_agree_with_the_machine,
        partial_grants_give_what_there_is,
        requests_agree_with_the_machine,
        several_limits_agree_with_the_machine,
        windows_agree_with_the_machine,
    ],
    LimitsAreKeptFromTheFirstCall by only [
        changes_carry_what_was_chosen,
        changes_keep_tokens,
        fixed_windows_agree_with_the_machine,
        limits_that_differ_pay_in_time,
        requests_agree_with_the_machine,
        several_limits_agree_with_the_machine,
        several_limits_are_all_or_nothing,
        states_ahead_are_debt,
        states_have_the_common_form,
        takes_agree_with_the_machine,
        the_limit_of_the_call_counts,
        windows_agree_with_the_machine,
    ],
    WaitsAreIgnored by only [
        charges_go_into_debt,
        charges_take_whole_tokens_or_nothing,
        requests_agree_with_the_machine,
        reservations_can_be_cancelled,
        reservations_stand_in_line,
        states_have_the_common_form,
    ],
    RefundsAreLost by only [
        concurrent_refunds_are_counted,
        fixed_windows_agree_with_the_machine,
        receipts_bound_refunds,
        refunds_give_back,
        requests_agree_with_the_machine,
        reservations_can_be_cancelled,
        several_limits_agree_with_the_machine,
        states_have_the_common_form,
        windows_agree_with_the_machine,
    ],
    RefundsNeedNoReceipt by only [
        fixed_windows_agree_with_the_machine,
        receipts_bound_refunds,
        refunds_give_back,
        requests_agree_with_the_machine,
        reservations_can_be_cancelled,
        several_limits_agree_with_the_machine,
        windows_agree_with_the_machine,
    ],
    ReceiptsAreLost by among [
        refunds_give_back,
        receipts_bound_refunds,
        requests_agree_with_the_machine,
        concurrent_refunds_are_counted,
    ],
    // batches
    BatchesRunTwice by only [
        answered_items_are_left_alone,
        bad_items_spoil_no_others,
        batches_agree_with_the_machine,
        batches_count_every_item,
        dropped_batches_know_what_was_asked,
        hung_requests_end_in_time,
        lost_answers_count_at_most_once,
    ],
    BatchesRunBackwards by only [
        answered_items_are_left_alone,
        bad_items_spoil_no_others,
        batches_agree_with_the_machine,
        batches_count_every_item,
        dropped_batches_know_what_was_asked,
    ],
    BatchesEndAfterAHundred by only [batches_count_every_item],
    BatchesFailAsOne by only [bad_items_spoil_no_others, refused_requests_count_nothing],
    BatchesSpoilAnsweredItems by only [answered_items_are_left_alone],
    // forgetting
    ForgettingDoesNothing by only [forgotten_keys_are_fresh, forgotten_keys_leave_nothing],
    ForgettingTakesPrefixes by only [forgotten_keys_are_fresh],
    ForgettingMissingKeysFails by only [forgotten_keys_are_fresh],
    ForgettingLeavesATrace by only [forgotten_keys_leave_nothing],
}

#[test]
fn without_a_flaw_the_store_conforms() {
    check_all(&BrokenStores::new(Flaw::None), &[Need::Logs]);
    let lacks = [Need::Logs, Need::Repairs];
    check_all(&BrokenStores::in_process(Flaw::None), &lacks);
}

#[test]
fn each_flaw_is_found_by_its_clauses() {
    let mut wrong = String::new();
    for (flaw, open, expected) in FLAWS {
        let report = Report::of(&open(*flaw));
        let mut broken = report.broken();
        broken.sort_unstable();
        println!("{flaw:?}: {}", broken.join(", "));
        let is_right = match expected {
            Found::ByOnly(clauses) => {
                let mut clauses = clauses.to_vec();
                clauses.sort_unstable();
                broken == clauses
            }
            Found::Among(clauses) => clauses.iter().all(|clause| broken.contains(clause)),
        };
        if !is_right {
            wrong.push_str(&format!(
                "\n{flaw:?} was found by {broken:?} instead of {expected:?}"
            ));
        }
        for (clause, checked) in report.findings() {
            if let Err(Finding::Broken { clause: name, .. } | Finding::Lacks { clause: name, .. }) =
                checked
            {
                assert_eq!(*name, clause.name());
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The table's other side: no clause is there for nothing. (Logs have no form in which they could leave the process.)
#[test]
fn each_clause_finds_a_flaw() {
    let found: Vec<&str> = FLAWS
        .iter()
        .flat_map(|(_, _, found)| match found {
            Found::ByOnly(clauses) | Found::Among(clauses) => *clauses,
        })
        .copied()
        .collect();
    let mut idle: Vec<_> = CLAUSES.iter().map(|clause| clause.name()).collect();
    idle.retain(|clause| !found.contains(clause) && !clause.contains("log"));
    assert_eq!(idle, [""; 0], "clauses that find nothing");
}
