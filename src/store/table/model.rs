//! The lap ring under loom: the code of `set`, and every order of its steps that a scene's bound allows.
//!
//! Each scene is played in weak memory, where loads return every value that their orderings allow, and in strong
//! memory, where no order of accesses is missed (see `watched`). Slots have 16 bits of tag, 16 of lap and 32 of
//! state. `.ci/loom` plays all in 102 s on two cores; the numbers are executions, *p4* with at most four preemptions
//! and all of them otherwise.
//!
//! | scene | weak | strong | | scene | weak | strong |
//! |---|---|---|---|---|---|---|
//! | a | 11 | 50 | | l | 126 | 340 |
//! | b | 202 | 1,377 | | m | p3 53,221 | p4 38,274 |
//! | c | 73,890 | p5 16,026 | | n | 11 | 54 |
//! | d | 19,536 | p4 8,722 | | r, two ways | 217 | p5 3,896, all 109,644 |
//! | e | 25,242 | p4 14,642 | | r, three ways | 1,685 | p5 13,734 |
//! | f | 25,242 | p4 14,642 | | s | p3 4,903, all 70,604 | p4 6,818 |
//! | g | 2,317 | 76,436 | | t | 26 | 2,961 |
//! | h | 70,604 | p4 6,818 | | u | 1 | 62 |
//! | i | 109 | 628 | | v | 1,027 | 67,782 |
//! | j | 3,060 | p5 6,859 | | w | p2 26,037, p3 208,150 | p4 38,253 |
//! | k | 95,803 | p4 6,899 | | | | |
//!
//! # Mutants
//! What the scenes say to a broken `set`, with two preemptions at most where a scene has a bound:
//!
//! | broken how | fails in |
//! |---|---|
//! | the victim is replaced in place, no ring | h k l s w |
//! | the slot of least TAT is replaced in place, no ring | k s w |
//! | laps are not checked | d e f j r w |
//! | a lost exchange is repeated on new words, without looking for the key | a b d g h j k l m r s w |
//! | a rotation keeps the lap | c g h i j k l m s v w |
//! | a rotation ignores that its exchange was lost | g h k l s w |
//! | an insert ignores that its exchange was lost | all but i t u |
//! | an insert compares owner, or lap, but not the state | c n v w |
//! | an insert compares tag and state, but not the lap | k l w |
//! | the next lap is not masked | d |
//! | laps of one bit | w |
//! | a charge stores instead of exchanging | b c g h i j k n u v w |
//! | a lost charge is repeated whoever owns the slot | c |
//! | the head is evicted whatever it owes | c e f g j k m n t v w |
//! | a newcomer that inherits starts fresh | f k n t v w |
//! | `remove` stores instead of exchanging | s |
//! | no second reading of the clock: for a charge, for a newcomer | u, v |
//! | the second reading is followed by another scan | v |
//! | repair at the first illegal view; never | d e f j m v w; r |
//! | scans `Relaxed`, or exchanges of owners `Relaxed` or `Acquire`, or both | c d e f i j m v w |
//!
//! The last line fails because whole rings are repaired. That is no matter of taste: with all `Relaxed` and that
//! check left out, j, m and w end with illegal laps, and in w a key may own two slots.
//!
//! Nothing fails if inserts keep the lap (the head stays where it is: the same log, numbered more sparsely), if
//! exchanges of owners only release (scans acquire already), if `remove` clears the tag, or if a refund of an absent
//! key goes to whoever inherited its debt (the books stay balanced; it is a matter of fairness). Laps of two bits
//! survive w: eight changes do not fit into so few calls.

mod scene;
mod watched;

use alloc::vec;

use self::scene::Bound::{All, Preemptions};
pub(super) use self::scene::note_repair;
use self::scene::{Books, Held, NOW, Scene, T, empty, full, owes, refund, remove, take, until};
pub(super) use self::watched::Watched;
use crate::store::overflow::Overflow::{Deny, Inherit};

// Keys that are there at the start, and newcomers.
const A: u64 = 0xa;
const B: u64 = 0xb;
const C: u64 = 0xc;
const K: u64 = 1;
const L: u64 = 2;
const M: u64 = 3;

/// The last lap before they start again at 0.
const LAST: u64 = 0xffff;

#[test]
fn a_one_new_key_from_two_threads() {
    Scene {
        slots: [empty(0), empty(0)],
        burst: 1,
        overflow: Inherit,
        threads: vec![vec![take(K)], vec![take(K)]],
        books: Books::Exact,
        granted: 1..=1,
        bounds: [All, All],
    }
    .play("a one new key from two threads");
}

#[test]
fn b_one_new_key_twice_from_two_threads() {
    Scene {
        slots: [empty(0), empty(0)],
        burst: 3,
        overflow: Inherit,
        threads: vec![vec![take(K), take(K)], vec![take(K), take(K)]],
        books: Books::Exact,
        granted: 3..=3,
        bounds: [All, All],
    }
    .play("b one new key twice from two threads");
}

/// Either A is charged first and stays, and K is refused, or K takes its place, and A finds no other.
#[test]
fn c_a_full_key_is_evicted_while_it_is_charged() {
    Scene {
        slots: [full(A, 1), owes(B, 0, 2)],
        burst: 2,
        overflow: Deny,
        threads: vec![vec![take(A)], vec![take(K)], vec![take(K)]],
        books: Books::Exact,
        granted: 1..=2,
        bounds: [All, Preemptions(5)],
    }
    .play("c a full key is evicted while it is charged");
}

#[test]
fn d_insert_and_evict_in_one_set() {
    Scene {
        slots: [full(A, LAST), empty(LAST)],
        burst: 2,
        overflow: Deny,
        threads: vec![vec![take(K)], vec![take(L)], vec![take(K)]],
        books: Books::Exact,
        granted: 3..=3,
        bounds: [All, Preemptions(4)],
    }
    .play("d insert and evict in one set");
}

#[test]
fn e_three_new_keys_for_two_slots_denied() {
    Scene {
        slots: [empty(0), empty(0)],
        burst: 1,
        overflow: Deny,
        threads: vec![vec![take(K)], vec![take(L)], vec![take(M)]],
        books: Books::Exact,
        granted: 2..=2,
        bounds: [All, Preemptions(4)],
    }
    .play("e three new keys for two slots, denied");
}

/// The third takes over a debt of 1, and pays 1 on top.
#[test]
fn f_three_new_keys_for_two_slots_inherited() {
    Scene {
        slots: [empty(0), empty(0)],
        burst: 2,
        overflow: Inherit,
        threads: vec![vec![take(K)], vec![take(L)], vec![take(M)]],
        books: Books::Together,
        granted: 3..=3,
        bounds: [All, Preemptions(4)],
    }
    .play("f three new keys for two slots, inherited");
}

#[test]
fn g_the_head_passes_a_key_in_debt_while_it_is_charged() {
    Scene {
        slots: [owes(A, 7, 1), full(B, 7)],
        burst: 3,
        overflow: Deny,
        threads: vec![vec![take(K), take(A)], vec![take(A), take(K)]],
        books: Books::Exact,
        granted: 4..=4,
        bounds: [All, All],
    }
    .play("g the head passes a key in debt while charged");
}

/// The refund makes another slot free between two looks at the set.
#[test]
fn h_a_refund_frees_a_slot_during_two_inserts() {
    const OWING: Held = owes(A, 0, 1);
    Scene {
        slots: [OWING, full(B, 0)],
        burst: 1,
        overflow: Inherit,
        threads: vec![vec![take(K)], vec![take(K)], vec![refund(OWING, 1)]],
        books: Books::Exact,
        granted: 1..=1,
        bounds: [All, Preemptions(4)],
    }
    .play("h a refund frees a slot during two inserts");
}

/// No slot is free at any time; the refund changes which has the least debt.
#[test]
fn k_a_refund_changes_the_least_debt_during_two_inserts() {
    const OWING: Held = owes(A, 0, 3);
    Scene {
        slots: [OWING, owes(B, 0, 2)],
        burst: 4,
        overflow: Inherit,
        threads: vec![vec![take(K)], vec![take(K)], vec![refund(OWING, 2)]],
        books: Books::Together,
        granted: 2..=2,
        bounds: [All, Preemptions(4)],
    }
    .play("k a refund changes the least debt in two inserts");
}

/// To the later clock A is free, to the earlier it is not: A may lose half a token of debt and what it charged.
#[test]
fn i_a_later_clock_evicts_what_an_earlier_one_charges() {
    const LATER: u64 = NOW + T / 2;
    Scene {
        slots: [until(A, 0, LATER), owes(B, 0, 2)],
        burst: 2,
        overflow: Inherit,
        threads: vec![
            vec![take(A), take(K)],
            vec![take(K).at(LATER), take(A).at(LATER)],
        ],
        books: Books::Within(2),
        granted: 2..=4,
        bounds: [All, All],
    }
    .play("i a later clock evicts what an earlier one charges");
}

/// Each clock sees another free slot. Two slots for K would be two bursts.
#[test]
fn l_two_clocks_see_different_free_slots() {
    const LATER: u64 = NOW + T / 2;
    Scene {
        slots: [until(A, 0, LATER), full(B, 0)],
        burst: 1,
        overflow: Inherit,
        threads: vec![vec![take(K)], vec![take(K).at(LATER)]],
        books: Books::Within(0),
        granted: 1..=1,
        bounds: [All, All],
    }
    .play("l two clocks see different free slots");
}

#[test]
fn j_three_ways_inserts_and_charges() {
    Scene {
        slots: [owes(A, 5, 1), full(B, 5), empty(5)],
        burst: 2,
        overflow: Deny,
        threads: vec![vec![take(K), take(A)], vec![take(L), take(K)]],
        books: Books::Exact,
        granted: 4..=4,
        bounds: [All, Preemptions(5)],
    }
    .play("j three ways, inserts and charges");
}

#[test]
fn m_three_ways_three_inserts() {
    Scene {
        slots: [full(A, 1), owes(B, 0, 2), empty(0)],
        burst: 2,
        overflow: Deny,
        threads: vec![vec![take(K)], vec![take(L)], vec![take(K)]],
        books: Books::Exact,
        granted: 3..=3,
        bounds: [Preemptions(3), Preemptions(4)],
    }
    .play("m three ways, three inserts");
}

/// One token is left in the set whatever comes first, and the evicted key that returns has lost its claim to it.
#[test]
fn n_debt_stays_when_its_key_is_evicted_and_returns() {
    Scene {
        slots: [owes(A, 0, 1), owes(B, 0, 2)],
        burst: 2,
        overflow: Inherit,
        threads: vec![vec![take(K), take(A)], vec![take(A)]],
        books: Books::Together,
        granted: 1..=1,
        bounds: [All, All],
    }
    .play("n debt stays when its key is evicted and returns");
}

#[test]
fn r_broken_laps_heal() {
    Scene {
        slots: [full(A, 5), full(B, 9)],
        burst: 1,
        overflow: Inherit,
        threads: vec![vec![take(K)], vec![take(K)]],
        books: Books::Exact,
        granted: 1..=1,
        bounds: [All, Preemptions(5)],
    }
    .play("r broken laps heal");
}

#[test]
fn r_three_broken_laps_heal() {
    Scene {
        slots: [full(A, 5), full(B, 9), owes(C, 5, 1)],
        burst: 2,
        overflow: Inherit,
        threads: vec![vec![take(K), take(C)], vec![take(K)]],
        books: Books::Exact,
        granted: 3..=3,
        bounds: [All, Preemptions(5)],
    }
    .play("r three broken laps heal");
}

#[test]
fn s_a_key_is_removed_during_two_inserts() {
    Scene {
        slots: [owes(A, 0, 1), full(B, 0)],
        burst: 1,
        overflow: Inherit,
        threads: vec![vec![take(K)], vec![take(K)], vec![remove(A)]],
        books: Books::Within(0),
        granted: 1..=1,
        bounds: [Preemptions(3), Preemptions(4)],
    }
    .play("s a key is removed during two inserts");
}

/// States further ahead than this limit reaches, as another limit or a later clock leaves them: honest debt, which nobody
/// cuts.
#[test]
fn t_all_are_in_debt_beyond_the_limit() {
    Scene {
        slots: [owes(A, 0, 9), owes(B, 0, 8)],
        burst: 2,
        overflow: Inherit,
        threads: vec![vec![take(K), take(A)], vec![take(B), take(K)]],
        books: Books::Within(9),
        granted: 0..=0,
        bounds: [All, All],
    }
    .play("t all are in debt beyond the limit");
}

/// A reading older than a state finds debt.
#[test]
fn u_a_stale_reading_cuts_no_debt() {
    const LATER: u64 = NOW + 5 * T;
    Scene {
        slots: [owes(K, 1, 2), empty(0)],
        burst: 2,
        threads: vec![
            vec![take(K)],
            vec![take(K).at(LATER), take(K).at(LATER), take(K).at(LATER)],
        ],
        books: Books::Within(5),
        granted: 2..=2,
        overflow: Inherit,
        bounds: [All, All],
    }
    .play("u a stale reading cuts no debt");
}

/// The same for the debt that a newcomer would inherit.
#[test]
fn v_a_stale_reading_of_a_newcomer_cuts_no_debt() {
    const SOON: u64 = NOW + 5 * T;
    const LATER: u64 = NOW + 9 * T;
    Scene {
        slots: [until(A, 0, SOON + T), until(B, 0, SOON + T)],
        burst: 1,
        threads: vec![
            vec![take(K)],
            vec![
                take(A).at(LATER),
                take(B).at(LATER),
                take(A).at(LATER),
                take(B).at(LATER),
            ],
        ],
        books: Books::Within(9),
        granted: 2..=2,
        overflow: Inherit,
        bounds: [All, All],
    }
    .play("v a stale reading of a newcomer cuts no debt");
}

/// With one bit of lap, the first thread's view of A comes back while K is in B's slot.
#[test]
fn w_a_sleeper_wakes_after_others_went_round() {
    const OWING: Held = owes(B, LAST, 3);
    Scene {
        slots: [owes(A, LAST, 2), OWING],
        burst: 4,
        overflow: Inherit,
        threads: vec![
            vec![take(K)],
            vec![take(M)],
            vec![refund(OWING, 3), take(K), take(K)],
        ],
        books: Books::Together,
        granted: 2..=4,
        bounds: [Preemptions(2), Preemptions(4)],
    }
    .play("w a sleeper wakes after others went round");
}
