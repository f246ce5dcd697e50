//! Buckets under a record of limits: a state is opened into the limit in force, decided on, and closed again if it changed.
//!
//! # Order
//! The generation must be looked up *after* the state was loaded, or a state of generation `g + 1` would be read as one of
//! `g − 3` and be changed three times too often. Stores load and exchange states `Relaxed`, so [`see`] begins with an acquire fence,
//! and [`step`] ends with a release fence after it wrote. Whoever loaded what that step's store exchanged sees at least the
//! `current` that the step saw: the two fences order the step's look before the reader's.

use super::plain::Plain;
use super::record::Record;
use super::word::{LATEST_NS, LiveWord};
use crate::algorithm::{Algorithm, Carry, Step, TokenBucket};
use crate::request::{Receipt, Request};
use crate::sync::Ordering::{Acquire, Release};
use crate::sync::modelled::fence;
use crate::time::Timestamp;

/// A machine whose state is a TAT.
pub(super) trait Bucket: Plain + Algorithm<State = u64> {
    /// [`step`](Algorithm::step), on a clock that ends at `end_ns`: the state must not lie after it, neither before nor after.
    fn step_until(&self, end_ns: u64, now: Timestamp, tat_ns: &mut u64, request: &Request) -> Step;
}

impl Bucket for TokenBucket {
    #[inline(always)]
    fn step_until(&self, end_ns: u64, now: Timestamp, tat_ns: &mut u64, request: &Request) -> Step {
        if self.stays_before(end_ns, now, *tat_ns) {
            self.step(now, tat_ns, request)
        } else {
            self.step_near_end(end_ns, now, tat_ns, request)
        }
    }
}

/// One step under the limit in force.
#[inline(always)]
pub(super) fn step<B: Bucket>(
    record: &Record,
    first: &B,
    now: Timestamp,
    word: &mut LiveWord,
    request: &Request,
) -> Step {
    if let Request::Refund { cost, receipt } = request {
        return refund(record, first, now, word, *cost, receipt);
    }
    let (generation, limit, [mut tat_ns]) = see(record, first, [*word]);
    let mut step = limit.step_until(LATEST_NS, now, &mut tat_ns, request);
    if step.keep.is_some() {
        *word = LiveWord::new(generation, tat_ns);
        step.decision = step.decision.with_mark(word.mark());
        fence(Release);
    }
    step
}

/// The receipt's mark is the word that its charge left: it is opened like the state.
#[cold]
#[inline(never)]
fn refund<B: Bucket>(
    record: &Record,
    first: &B,
    now: Timestamp,
    word: &mut LiveWord,
    cost: u64,
    receipt: &Receipt,
) -> Step {
    let mark = LiveWord::of_mark(receipt.mark());
    let (generation, limit, [mut tat_ns, after_ns]) = see(record, first, [*word, mark]);
    // Two debts that a change cut to the same reach look like one. They are not, so the receipt gives nothing back.
    let cut_alike = tat_ns == after_ns && *word != mark;
    let request = if cut_alike {
        Request::PEEK
    } else {
        let receipt = Receipt::new(receipt.charged(), after_ns).with_run_at_ns(receipt.run_at_ns());
        Request::refund(cost, receipt)
    };
    let step = limit.step_until(LATEST_NS, now, &mut tat_ns, &request);
    if step.keep.is_some() {
        *word = LiveWord::new(generation, tat_ns);
        fence(Release);
    }
    step
}

/// How long until the bucket is full, in the limit in force.
#[inline]
pub(super) fn debt_ns<B: Bucket>(
    record: &Record,
    first: &B,
    now: Timestamp,
    word: LiveWord,
) -> u64 {
    let (_, limit, [tat_ns]) = see(record, first, [word]);
    limit.debt_ns(now, &tat_ns)
}

/// The limit in force, its generation, and what the words are under it.
#[inline(always)]
fn see<B: Bucket, const N: usize>(
    record: &Record,
    first: &B,
    words: [LiveWord; N],
) -> (u64, B, [u64; N]) {
    fence(Acquire); // after the words were loaded
    loop {
        let (generation, limit) = record.current(first);
        if words.iter().all(|word| word.missed(generation) == 0) {
            return (generation, limit, words.map(LiveWord::tat_ns));
        }
        let mut opened = [0; N];
        let all = words.iter().zip(&mut opened).all(|(word, opened)| {
            open(record, first, generation, *word)
                .map(|tat_ns| *opened = tat_ns)
                .is_some()
        });
        if all {
            return (generation, limit, opened);
        }
    }
}

/// A word as the TAT it is under the limit of `generation`: as if the key had been there at each change since it was written.
/// `None` if one of those limits was overwritten meanwhile.
///
/// It depends on the word and on the record alone, not on when the key comes.
#[cold]
#[inline(never)]
fn open<B: Bucket>(record: &Record, first: &B, generation: u64, word: LiveWord) -> Option<u64> {
    let tat_ns = word.tat_ns();
    let Some(written) = generation.checked_sub(word.missed(generation)) else {
        return Some(tat_ns); // of no limit of ours
    };
    let mut old = record.entry(written, first)?.limit;
    let mut tat_ns = tat_ns;
    for next in written + 1..=generation {
        let new = record.entry(next, first)?;
        let since = Timestamp::from_nanos(new.since_ns);
        // Buckets share states: the answer is always true.
        new.limit.change(since, &mut tat_ns, &old, Carry::Tokens);
        tat_ns = tat_ns.min(LATEST_NS);
        old = new.limit;
    }
    Some(tat_ns)
}
