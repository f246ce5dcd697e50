//! A changing limit under loom: every order of the threads' steps that the bound allows, with every old value that the
//! orderings allow.
//!
//! The limit is a toy whose states say which limit left them, so that every wrong reading is seen at once. Mutants that these models
//! find: without the acquire fence of `bucket::see` or the release fence of `bucket::step`, a state of generation 4 is
//! read under 3 and changed (`b_`); without either fence of the record, or with its words written before `WRITING`, limits are
//! torn (`a_`).

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

use super::bucket::{self, Bucket};
use super::plain::Plain;
use super::record::Record;
use super::word::LiveWord;
use crate::algorithm::{Algorithm, Carry, Step};
use crate::decision::{Decision, Outcome};
use crate::request::Request;
use crate::store::cell::{SingleWord, exchange_loop};
use crate::sync::Ordering::Relaxed;
use crate::sync::play::play;
use crate::time::Timestamp;

/// Its words are equal, unless torn.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Toy(u64, u64);

const fn toy(number: u64) -> Toy {
    Toy(number, number)
}

impl Plain for Toy {
    fn put(&self, put: &mut impl FnMut(u64)) {
        put(self.0);
        put(self.1);
    }

    fn take(next: &mut impl FnMut() -> u64) -> Self {
        Self(next(), next())
    }
}

impl Algorithm for Toy {
    type State = u64;

    fn step(&self, _now: Timestamp, state: &mut u64, _request: &Request) -> Step {
        assert_eq!(self.0, self.1, "a torn limit");
        assert!(
            *state == 0 || *state == self.0,
            "a state of {state} under {self:?}"
        );
        *state = self.0;
        let decision = Decision::new(Outcome::Allowed, 1, 1, core::time::Duration::ZERO);
        Step::write(decision, core::time::Duration::ZERO)
    }

    fn change(&self, _now: Timestamp, state: &mut u64, old: &Self, _carry: Carry) -> bool {
        assert_eq!((self.0, old.0), (self.1, old.1), "a torn limit");
        if *state != 0 {
            assert_eq!(*state, old.0, "changed from a limit it was not under");
            *state = self.0;
        }
        true
    }
}

impl Bucket for Toy {
    fn step_until(&self, _end_ns: u64, now: Timestamp, state: &mut u64, request: &Request) -> Step {
        self.step(now, state, request)
    }
}

struct Stage {
    record: Record,
    cell: AtomicU64,
}

const FIRST: Toy = toy(100);

#[derive(Debug)]
struct Stepper<'a>(&'a Record);

impl Algorithm for Stepper<'_> {
    type State = LiveWord;

    fn step(&self, now: Timestamp, word: &mut LiveWord, request: &Request) -> Step {
        bucket::step(self.0, &FIRST, now, word, request)
    }
}

impl Stage {
    /// As a `WordCell` does it.
    fn step(&self) {
        let word = LiveWord::from_word(self.cell.load(Relaxed));
        let exchange = |old: LiveWord, new: LiveWord| {
            self.cell
                .compare_exchange(old.into_word(), new.into_word(), Relaxed, Relaxed)
                .map(LiveWord::from_word)
                .map_err(LiveWord::from_word)
        };
        let limit = Stepper(&self.record);
        let _ = exchange_loop(&limit, &Request::ONE, Timestamp::ZERO, word, exchange);
    }

    fn set(&self, number: u64) {
        self.record.set(0, &FIRST, &toy(number));
    }
}

/// `before` changes in peace; then one more, and a step, while another thread steps.
fn scene(name: &str, bound: usize, before: u64) {
    play(name, Some(bound), move || {
        let stage = Arc::new(Stage {
            record: Record::new(),
            cell: AtomicU64::new(0),
        });
        stage.step();
        for number in 1..=before {
            stage.set(100 + number);
            stage.step();
        }
        let other = Arc::clone(&stage);
        let stepper = thread::spawn(move || other.step());
        stage.set(100 + before + 1);
        stage.step();
        stepper.join().expect("a stepper");
        stage.step();
        assert_eq!(
            LiveWord::from_word(stage.cell.load(Relaxed)).tat_ns(),
            100 + before + 1
        );
    });
}

#[test]
fn a_no_limit_is_torn() {
    // The reader may sleep on slot 1 while the writer comes around to it with generation 9.
    play("a: no limit is torn", Some(2), || {
        let record = Arc::new(Record::new());
        record.set(0, &FIRST, &toy(101));
        let other = Arc::clone(&record);
        let reader = thread::spawn(move || {
            let (generation, limit) = other.current(&FIRST);
            assert_eq!(limit, toy(100 + generation), "the generation's own limit");
            for before in 1..=generation.min(3) {
                if let Some(entry) = other.entry(generation - before, &FIRST) {
                    assert_eq!(entry.limit, toy(100 + generation - before));
                }
            }
        });
        for number in 2..=9 {
            record.set(0, &FIRST, &toy(100 + number));
        }
        reader.join().expect("a reader");
    });
}

#[test]
fn b_the_generation_is_looked_up_after_the_word() {
    scene("b: the generation is looked up after the word", 3, 3);
}

#[test]
fn c_setters_take_turns() {
    play("c: setters take turns", Some(2), || {
        let record = Arc::new(Record::new());
        let setters = [1, 2].map(|number| {
            let record = Arc::clone(&record);
            thread::spawn(move || record.set(0, &FIRST, &toy(number)))
        });
        for setter in setters {
            setter.join().expect("a setter");
        }
        let (generation, limit) = record.current(&FIRST);
        assert_eq!((generation, limit.0), (2, limit.1));
    });
}
