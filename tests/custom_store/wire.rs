//! Messages: fields of bytes, each behind its length; and what limits, requests, keys and states are in them.

use std::time::Duration;

use ratekeeper::store::{Key, KeyKind, StateBytes, StoreError};
use ratekeeper::{Algorithm, All, FixedWindow, Receipt, Request, SlidingWindow, TokenBucket};

pub(crate) fn put(message: &mut Vec<u8>, field: &[u8]) {
    message.extend_from_slice(
        &u32::try_from(field.len())
            .expect("a field is short")
            .to_le_bytes(),
    );
    message.extend_from_slice(field);
}

pub(crate) fn get<'a>(message: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = message.split_first_chunk()?;
    let (field, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *message = rest;
    Some(field)
}

pub(crate) fn get_u64(message: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(get(message)?.try_into().ok()?))
}

/// A limit that can be sent to the server.
pub(crate) trait Remote: Algorithm {
    /// By which name the server knows the code.
    const CODE: u8;

    fn text(&self) -> String;
    fn parse(text: &str) -> Option<Self>
    where
        Self: Sized;
}

macro_rules! remote {
    ($($limit:ty = $code:literal),*) => {$(
        impl Remote for $limit {
            const CODE: u8 = $code;

            fn text(&self) -> String {
                self.to_string()
            }
            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }
    )*};
}
remote!(TokenBucket = 1, SlidingWindow = 2, FixedWindow = 3);

impl Remote for All<[TokenBucket; 3]> {
    const CODE: u8 = 4;

    fn text(&self) -> String {
        self.0.map(|limit| limit.to_string()).join(";")
    }
    fn parse(text: &str) -> Option<Self> {
        let limits: Result<Vec<_>, _> = text.split(';').map(str::parse).collect();
        Some(Self(limits.ok()?.try_into().ok()?))
    }
}

/// A request in numbers.
pub(crate) struct Asked {
    pub(crate) is_take: bool,
    pub(crate) numbers: [u64; 9],
}

impl Asked {
    pub(crate) fn of(request: &Request) -> Option<Self> {
        Some(match request {
            Request::Take {
                cost,
                at_least,
                max_wait,
                ..
            } => {
                // The whole wait: `Duration::MAX` is a charge, a wait cut to 64 bits of nanoseconds is none.
                let (s, ns) = (max_wait.as_secs(), max_wait.subsec_nanos().into());
                Self {
                    is_take: true,
                    numbers: [*cost, *at_least, s, ns, 0, 0, 0, 0, 0],
                }
            }
            Request::Refund { cost, receipt, .. } => {
                // A charge goes to each of several limits as far as that has room.
                let [a, b, c] = [0, 1, 2].map(|i| receipt.mark_of(i));
                let [x, y, z] = [0, 1, 2].map(|i| receipt.charged_to(i));
                let (charged, run_at) = (receipt.charged(), receipt.run_at_ns());
                Self {
                    is_take: false,
                    numbers: [*cost, charged, run_at, a, b, c, x, y, z],
                }
            }
            _ => return None,
        })
    }

    pub(crate) fn request(&self) -> Request {
        let [cost, second, third, fourth, ..] = self.numbers;
        if self.is_take {
            let wait = Duration::from_secs(third).saturating_add(Duration::from_nanos(fourth));
            return Request::take(cost).at_least(second).or_wait(wait);
        }
        let [_, _, _, a, b, c, x, y, z] = self.numbers;
        let receipt = Receipt::new(second, a).with_run_at_ns(third);
        let receipt = receipt.with_marks([a, b, c, 0]);
        Request::refund(cost, receipt.with_charges([x, y, z, 0]))
    }
}

/// The value found, if there is one.
pub(crate) fn value(stored: Option<&[u8]>) -> Result<Option<StateBytes>, StoreError> {
    stored.map(StateBytes::from_stored).transpose()
}

/// The bytes of a key of that kind of limit in a space; neither a space nor a kind has a colon in its name.
pub(crate) fn place<K: Key + ?Sized>(space: &str, kind: &KeyKind, key: &K) -> Vec<u8> {
    let mut bytes = format!("{space}:{}:", kind.as_str()).into_bytes();
    key.write_alone(&mut |part| bytes.extend_from_slice(part));
    bytes
}
