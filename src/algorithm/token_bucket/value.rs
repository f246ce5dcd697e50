//! A bucket's value in a shared store: its TAT, and what proves that a TAT came from a clock that was ahead.
//!
//! Without a version the value carries its *reach*, the burst and longest wait of its last taker as a span of time: no taker
//! moves a TAT further ahead than that. With a version it carries the limit itself, so that an older process can decide as a
//! newer one does, and a newer one knows what the key's tokens are.

use core::time::Duration;

use super::TokenBucket;
use crate::algorithm::Carry;
use crate::store::{ErrorKind, Opened, StateBytes, StoreError, Wire};
use crate::time::{Timestamp, duration_ns};

/// A TAT alone, as earlier versions wrote it.
const BARE: u8 = 0x11;
/// A TAT and its reach.
pub(super) const WITH_REACH: u8 = 0x21;
/// A TAT and the limit.
const WITH_LIMIT: u8 = 0x31;

const WORD: usize = size_of::<u64>();
const VERSION: usize = size_of::<u16>();
/// TAT, version, and the limit's four numbers.
const WITH_LIMIT_LEN: usize = WORD + VERSION + 4 * WORD;

/// What is found under a bucket's key.
enum Found {
    /// Another kind of limit's, from a time when the kind was no part of the key.
    AnotherKind,
    Bare {
        tat_ns: u64,
    },
    WithReach {
        tat_ns: u64,
        reach_ns: u64,
    },
    WithLimit {
        tat_ns: u64,
        limit: TokenBucket,
    },
}

fn word(body: &[u8], index: usize) -> u64 {
    u64::read(&body[index * WORD..])
}

impl Found {
    fn of(value: &StateBytes) -> Result<Self, StoreError> {
        let body = value.body();
        let tag = value.first().copied().unwrap_or_default();
        Ok(match (tag, body.len()) {
            (BARE, WORD) => Self::Bare {
                tat_ns: word(body, 0),
            },
            (WITH_REACH, 16) => Self::WithReach {
                tat_ns: word(body, 0),
                reach_ns: word(body, 1),
            },
            (WITH_LIMIT, WITH_LIMIT_LEN) => Self::WithLimit {
                tat_ns: word(body, 0),
                limit: stored_limit(&body[WORD..])?,
            },
            // Windows, several limits on one key.
            (0x13 | 0x15, 16) | (0x14, 8 | 16 | 24 | 32) | (0x17, 16..) => Self::AnotherKind,
            _ => return Err(no_bucket()),
        })
    }
}

/// The limit in a value: version, tokens, period, burst, longest wait.
fn stored_limit(bytes: &[u8]) -> Result<TokenBucket, StoreError> {
    let version = u16::from(bytes[0]) << 8 | u16::from(bytes[1]);
    let numbers = &bytes[VERSION..];
    let limit = TokenBucket::new(
        word(numbers, 0),
        Duration::from_nanos(word(numbers, 1)),
        word(numbers, 2),
    );
    let limit = limit.map_err(|_| no_bucket())?;
    let max_wait = Duration::from_nanos(word(numbers, 3));
    if version == 0 {
        return Err(no_bucket());
    }
    Ok(limit.with_max_wait(max_wait).with_version(version))
}

const fn no_bucket() -> StoreError {
    const MESSAGE: &str = "the stored value is no state of a token bucket";
    StoreError::new(ErrorKind::Corrupt, MESSAGE)
}

/// A TAT cut to what a clock that is at `now_ns` can have left, and whether it was not.
fn repaired(now_ns: u64, tat_ns: u64, reach_ns: u64) -> (u64, bool) {
    let most_ns = now_ns.saturating_add(reach_ns);
    (tat_ns.min(most_ns), tat_ns > most_ns)
}

impl TokenBucket {
    pub(super) const fn value_tag(&self) -> u8 {
        if self.version == 0 {
            WITH_REACH
        } else {
            WITH_LIMIT
        }
    }

    pub(super) const fn value_len(&self) -> usize {
        if self.version == 0 {
            2 * WORD
        } else {
            WITH_LIMIT_LEN
        }
    }

    pub(super) fn opened(
        &self,
        now: Timestamp,
        value: &StateBytes,
    ) -> Result<Option<Opened<u64>>, StoreError> {
        let now_ns = now.as_nanos();
        let (state, must_write) = match Found::of(value)? {
            Found::AnotherKind => return Ok(None),
            // Which limit left these is not said, so their debt is kept in time.
            Found::Bare { tat_ns } => self.first_version(now_ns, tat_ns, false),
            Found::WithReach { tat_ns, reach_ns } => {
                let (tat_ns, is_repaired) = repaired(now_ns, tat_ns, reach_ns);
                self.first_version(now_ns, tat_ns, is_repaired)
            }
            Found::WithLimit { tat_ns, limit } => {
                let (tat_ns, is_repaired) = repaired(now_ns, tat_ns, limit.reach_ns);
                if self.version > limit.version {
                    (self.changed(now_ns, tat_ns, &limit, Carry::Tokens), true)
                } else if limit.is_as(self) {
                    (tat_ns, is_repaired)
                } else {
                    return Err(another_limit(self.version == limit.version));
                }
            }
        };
        Ok(Some(Opened { state, must_write }))
    }

    /// The TAT of a value without a version under this limit, and whether it must be stored. If this limit has a version, the value
    /// gets it, and as with any change, a debt beyond this limit's reach is cut to that: the value would say no longer where
    /// the debt came from, and the next step would take it for the proof of a clock step.
    fn first_version(&self, now_ns: u64, tat_ns: u64, must_write: bool) -> (u64, bool) {
        if self.version == 0 {
            return (tat_ns, must_write);
        }
        (tat_ns.min(self.latest_tat(now_ns)), true)
    }

    /// The limit in a value that is a newer version of this one.
    pub(super) fn newer_than_this(&self, value: &StateBytes) -> Result<Option<Self>, StoreError> {
        Ok(match Found::of(value)? {
            Found::WithLimit { limit, .. } if limit.version > self.version => Some(limit),
            _ => None,
        })
    }

    /// The same limit, whatever way its numbers were given.
    fn is_as(&self, other: &Self) -> bool {
        let key = |limit: &Self| (limit.version, limit.rate, limit.burst, limit.max_wait_ns);
        key(self) == key(other)
    }

    pub(super) fn sealed(
        &self,
        tat_ns: u64,
        before: Option<(&u64, &StateBytes)>,
        takes: bool,
    ) -> Result<StateBytes, StoreError> {
        let tat = tat_ns.to_be_bytes();
        if self.version > 0 {
            let max_wait_ns = duration_ns(self.max_wait());
            let numbers = [self.tokens, self.period_ns, self.burst, max_wait_ns];
            let [tokens, period, burst, max_wait] = numbers.map(u64::to_be_bytes);
            let version = self.version.to_be_bytes();
            let parts: [&[u8]; 6] = [&tat, &version, &tokens, &period, &burst, &max_wait];
            return Ok(StateBytes::from_parts(WITH_LIMIT, &parts));
        }
        // Giving back leaves the reach as it is.
        let found = match before {
            Some((before_ns, value)) if !takes || *before_ns == tat_ns => Some(Found::of(value)?),
            _ => None,
        };
        let reach_ns = match found {
            Some(Found::Bare { .. }) => return Ok(StateBytes::from_parts(BARE, &[&tat])),
            Some(Found::WithReach { reach_ns, .. }) => reach_ns,
            _ => self.reach_ns,
        };
        Ok(StateBytes::from_parts(
            WITH_REACH,
            &[&tat, &reach_ns.to_be_bytes()],
        ))
    }

    /// TAT and reach beside those of other limits.
    pub(super) fn opened_body(now: Timestamp, body: &[u8]) -> (u64, bool) {
        repaired(now.as_nanos(), word(body, 0), word(body, 1))
    }

    pub(super) fn sealed_body(
        &self,
        tat_ns: u64,
        before: Option<(&u64, &[u8])>,
        takes: bool,
        out: &mut [u8],
    ) {
        let reach_ns = match before {
            Some((before_ns, body)) if !takes || *before_ns == tat_ns => word(body, 1),
            _ => self.reach_ns,
        };
        tat_ns.write(out);
        reach_ns.write(&mut out[WORD..]);
    }
}

/// The value was left by another limit of this version, or by a newer one where only this one will do.
const fn another_limit(is_same_version: bool) -> StoreError {
    StoreError::new(
        ErrorKind::Config,
        if is_same_version {
            "two limits have one version: give the newer one a higher number"
        } else {
            "the stored state has a newer version of the limit"
        },
    )
}
