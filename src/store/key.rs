//! Keys as bytes, for stores outside of this process.

use core::fmt::{self, Write as _};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::ip::IpKey;

#[cfg(feature = "alloc")]
use alloc::{borrow::Cow, boxed::Box, string::String, sync::Arc, vec::Vec};

/// A key that can be written as bytes, the same on every platform and in every process.
///
/// Two keys of one type write the same bytes only if they are equal. Borrowed and owned forms write the same: `str` and
/// `String`, `[u8]` and `Vec<u8>`.
///
/// Text, numbers and addresses are written as text, so that an operator can read a store's keys: `alice`, `42`,
/// `2001:db8::1`. Inside a tuple each part ends with the byte `0xFF`, which no text contains; byte strings are preceded by
/// their length.
///
/// ```
/// use ratekeeper::store::Key;
///
/// fn bytes(key: &(impl Key + ?Sized)) -> Vec<u8> {
///     let mut out = Vec::new();
///     key.write_alone(&mut |part| out.extend_from_slice(part));
///     out
/// }
/// assert_eq!(bytes("alice"), b"alice");
/// assert_eq!(bytes(&42_u16), b"42");
/// assert_eq!(bytes(&("a", "bc")), b"a\xffbc\xff");
/// assert_ne!(bytes(&("a", "bc")), bytes(&("ab", "c")));
/// ```
///
/// # Implementing
/// For a type of your own, write its parts; each must end where it says:
///
/// ```
/// use ratekeeper::store::Key;
///
/// struct Route { tenant: u32, path: String }
///
/// impl Key for Route {
///     fn write(&self, out: &mut dyn FnMut(&[u8])) {
///         self.tenant.write(out);
///         self.path.write(out);
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key in a store outside of this process",
    note = "implement `ratekeeper::store::Key`: the bytes must be the same in every process"
)]
pub trait Key: Sync {
    /// Hands the key's bytes to `out`, in as many pieces as it likes, such that no key's bytes are the beginning of
    /// another's: then a sequence of keys is as good as one.
    fn write(&self, out: &mut dyn FnMut(&[u8]));

    /// The same where nothing follows, so that no mark is needed to say where it ends.
    fn write_alone(&self, out: &mut dyn FnMut(&[u8])) {
        self.write(out);
    }
}

/// What ends text inside of a tuple: a byte that UTF-8 does not use.
const END: &[u8] = &[0xFF];

impl Key for str {
    fn write(&self, out: &mut dyn FnMut(&[u8])) {
        self.write_alone(out);
        out(END);
    }

    fn write_alone(&self, out: &mut dyn FnMut(&[u8])) {
        out(self.as_bytes());
    }
}

impl Key for [u8] {
    fn write(&self, out: &mut dyn FnMut(&[u8])) {
        self.len().write(out);
        out(self);
    }

    fn write_alone(&self, out: &mut dyn FnMut(&[u8])) {
        out(self);
    }
}

impl<const N: usize> Key for [u8; N] {
    fn write(&self, out: &mut dyn FnMut(&[u8])) {
        self.as_slice().write(out);
    }

    fn write_alone(&self, out: &mut dyn FnMut(&[u8])) {
        self.as_slice().write_alone(out);
    }
}

/// `fmt::Write` into a key's `out`.
struct Text<'a>(&'a mut dyn FnMut(&[u8]));

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        (self.0)(text.as_bytes());
        Ok(())
    }
}

/// Keys that are written as they are displayed.
macro_rules! text_keys {
    ($($type:ty),+) => {
        $(impl Key for $type {
            fn write(&self, out: &mut dyn FnMut(&[u8])) {
                self.write_alone(out);
                out(END);
            }

            fn write_alone(&self, out: &mut dyn FnMut(&[u8])) {
                // `Text` accepts everything, and so the standard library's `Display` does not fail.
                let _ = write!(Text(out), "{self}");
            }
        })+
    };
}
text_keys!(
    bool, char, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize
);
text_keys!(IpAddr, Ipv4Addr, Ipv6Addr);

impl Key for IpKey {
    fn write(&self, out: &mut dyn FnMut(&[u8])) {
        self.network().write(out);
    }

    fn write_alone(&self, out: &mut dyn FnMut(&[u8])) {
        self.network().write_alone(out);
    }
}

impl Key for () {
    fn write(&self, _out: &mut dyn FnMut(&[u8])) {}
}

/// Pointers write what they point to.
macro_rules! forward {
    ($([$($generics:tt)*] $type:ty),+ $(,)?) => {
        $(impl<$($generics)*> Key for $type {
            fn write(&self, out: &mut dyn FnMut(&[u8])) {
                (**self).write(out);
            }

            fn write_alone(&self, out: &mut dyn FnMut(&[u8])) {
                (**self).write_alone(out);
            }
        })+
    };
}
forward!([K: Key + ?Sized] &K);
#[cfg(feature = "alloc")]
forward!(
    [] String,
    [] Vec<u8>,
    [K: Key + ?Sized] Box<K>,
    [K: Key + Send + ?Sized] Arc<K>,
    [K: Key + ?Sized + alloc::borrow::ToOwned<Owned: Sync>] Cow<'_, K>,
);

macro_rules! tuples {
    ($($($part:ident $index:tt),+;)+) => {
        $(impl<$($part: Key),+> Key for ($($part,)+) {
            fn write(&self, out: &mut dyn FnMut(&[u8])) {
                $(self.$index.write(out);)+
            }
        })+
    };
}
tuples! {
    A 0;
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::vec;

    use super::*;

    fn alone(key: &(impl Key + ?Sized)) -> Vec<u8> {
        let mut out = Vec::new();
        key.write_alone(&mut |part| out.extend_from_slice(part));
        out
    }

    fn followed(key: &(impl Key + ?Sized)) -> Vec<u8> {
        let mut out = Vec::new();
        key.write(&mut |part| out.extend_from_slice(part));
        out
    }

    #[test]
    fn owned_and_borrowed_keys_write_the_same() {
        let text = String::from("a\u{e9}");
        assert_eq!(alone(&text), "a\u{e9}".as_bytes());
        assert_eq!(alone(&Cow::Borrowed("a")), alone("a"));
        assert_eq!(alone(&Arc::<str>::from("a")), alone("a"));
        assert_eq!(alone(&Box::new(7_u8)), alone(&7_u64));
        assert_eq!(alone(&vec![1_u8, 2]), alone(&[1_u8, 2]));
        assert_eq!(followed(&vec![1_u8, 2]), followed([1_u8, 2].as_slice()));
        assert_eq!(followed(&text), followed(text.as_str()));
    }

    #[test]
    fn addresses_and_numbers_are_written_as_they_are_read() {
        assert_eq!(
            alone(&i128::MIN),
            b"-170141183460469231731687303715884105728"
        );
        assert_eq!(alone(&u64::MAX), b"18446744073709551615");
        let address: IpAddr = "2001:db8::1:2".parse().unwrap();
        assert_eq!(alone(&address), b"2001:db8::1:2");
        assert_eq!(alone(&IpKey::from(address)), b"2001:db8::");
        assert_eq!(alone(&('x', true)), b"x\xfftrue\xff");
    }

    /// Parts that run into each other must not: every way to cut a text in two is another key.
    #[test]
    fn no_key_is_the_beginning_of_another() {
        let parts: Vec<String> = ["", "1", "11", ":", "1:", "\u{7f}", "a\0"]
            .map(ToOwned::to_owned)
            .to_vec();
        let mut seen = Vec::new();
        for first in &parts {
            for second in &parts {
                seen.push(alone(&(first, second)));
                seen.push(alone(&(
                    first.as_bytes().to_vec(),
                    second.as_bytes().to_vec(),
                )));
                seen.push(alone(&(first, second.as_bytes().to_vec(), 1_u8)));
            }
        }
        // Keys of one type: the three kinds above are looked at each on its own.
        for kind in 0..3 {
            let keys: Vec<_> = seen.iter().skip(kind).step_by(3).collect();
            for (index, one) in keys.iter().enumerate() {
                for other in keys.iter().skip(index + 1) {
                    assert!(
                        !other.starts_with(one) && !one.starts_with(other),
                        "{one:x?} {other:x?}"
                    );
                }
            }
        }
    }
}
