//! One limit, replayed: its answers counted and timed.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use ratekeeper::{
    Algorithm, AnyAlgorithm, DashStore, InvalidLimit, KeyedLimiter, MemoryStore, SlidingLog,
};

use crate::batch::Batch;
use crate::time::unix_seconds;
use crate::timeline::Timeline;

/// A limit on every key. The exact log is a type of its own, since its states have no fixed size.
#[derive(Debug)]
enum Limiter {
    Compact(KeyedLimiter<String, AnyAlgorithm>),
    Log(KeyedLimiter<String, SlidingLog>),
}

/// A limiter and what it said so far.
#[derive(Debug)]
pub(crate) struct Policy {
    limiter: Limiter,
    /// Of the batch at hand; kept for its memory.
    answers: Vec<Answer>,
    tally: Tally,
}

/// `None` if the request was allowed, else how long it would have had to wait.
type Answer = Option<Duration>;

/// Counts of one policy.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) allowed: u64,
    pub(crate) denied: u64,
    /// Keys denied at least once, and how often.
    pub(crate) denials: HashMap<String, u64>,
    pub(crate) longest_wait: Duration,
    /// Wall time of the decisions.
    pub(crate) deciding: Duration,
    pub(crate) timeline: Timeline,
}

impl FromStr for Policy {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        let limiter = if text.trim_start().starts_with("log ") {
            Limiter::Log(KeyedLimiter::new(text.parse()?))
        } else {
            Limiter::Compact(KeyedLimiter::new(text.parse()?))
        };
        Ok(Self {
            limiter,
            answers: Vec::new(),
            tally: Tally::default(),
        })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.limiter {
            Limiter::Compact(limiter) => limiter.algorithm().fmt(f),
            Limiter::Log(limiter) => limiter.algorithm().fmt(f),
        }
    }
}

impl Policy {
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Decides the batch, then counts. A clock reading costs as much as a decision, so the batch is timed
    /// as a whole and the counting is left out.
    pub(crate) fn decide(&mut self, batch: &Batch) {
        self.answers.clear();
        let start = Instant::now();
        match &self.limiter {
            Limiter::Compact(limiter) => answer(limiter, batch, &mut self.answers),
            Limiter::Log(limiter) => answer(limiter, batch, &mut self.answers),
        }
        self.tally.deciding += start.elapsed();

        for ((key, at), &answer) in batch.iter().zip(&self.answers) {
            self.tally.count(key, answer);
            self.tally
                .timeline
                .count(unix_seconds(at), answer.is_none());
        }
    }
}

fn answer<A: Algorithm>(limiter: &KeyedLimiter<String, A>, batch: &Batch, answers: &mut Vec<Answer>)
where
    DashStore<String, A>: MemoryStore<str, A>,
{
    answers.extend(batch.iter().map(|(key, at)| {
        let decision = limiter.check_at(key, at);
        // A single request always fits some time, so a refusal has a wait.
        (!decision.is_allowed()).then(|| decision.retry_after().unwrap_or_default())
    }));
}

impl Tally {
    fn count(&mut self, key: &str, answer: Answer) {
        let Some(wait) = answer else {
            self.allowed += 1;
            return;
        };
        self.denied += 1;
        self.longest_wait = self.longest_wait.max(wait);
        // Not `entry`, which would allocate a key for every denial.
        match self.denials.get_mut(key) {
            Some(denials) => *denials += 1,
            None => {
                self.denials.insert(key.to_owned(), 1);
            }
        }
    }

    /// The key denied most often; of several, the first by name.
    pub(crate) fn worst(&self) -> Option<(&str, u64)> {
        let by_denials =
            |(a, b): &(&String, &u64), (c, d): &(&String, &u64)| b.cmp(d).then(c.cmp(a));
        self.denials
            .iter()
            .max_by(by_denials)
            .map(|(key, &denials)| (key.as_str(), denials))
    }
}
