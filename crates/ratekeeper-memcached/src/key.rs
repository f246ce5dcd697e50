//! Keys as memcached takes them: at most 250 bytes, no spaces, no control characters.

use ratekeeper::store::{Key, KeyKind, Namespace};

/// The longest that memcached takes.
const LONGEST: usize = 250;

/// `rl:name:key` (`rl:name/kind:key` if the limit is no token bucket) if every byte of the key can be printed,
/// `rl:name/kind=` and the key's base64 otherwise; if that is too long, `rl:name/kind#` and the key's hash.
///
/// Neither a namespace's name nor a kind contains `/`, `:`, `=` or `#`, so what follows them tells the forms apart: no two keys
/// meet. For token buckets there is always room: the longest, 128 bytes in base64 under a name of 64, has 239 bytes. memcached could
/// decode base64 itself, but only of the whole key: `rl:` and a long name would not leave room for 128 bytes.
pub(crate) fn legal_key<K: Key + ?Sized>(namespace: &Namespace, key: &K, kind: &KeyKind) -> String {
    let bytes = namespace.key_of_kind(key, kind);
    let slash = usize::from(!kind.is_empty());
    let mark = "rl:".len() + namespace.name().len() + slash + kind.as_str().len();
    let (prefix, text) = bytes.split_at((mark + 1).min(bytes.len()));
    let mut legal = String::with_capacity(bytes.len() * 4 / 3 + 2);
    push_ascii(&mut legal, prefix);
    if text.iter().all(u8::is_ascii_graphic) {
        push_ascii(&mut legal, text);
    } else {
        legal.truncate(mark);
        legal.push('=');
        push_base64(&mut legal, text);
    }
    if legal.len() > LONGEST {
        legal.clear();
        push_ascii(&mut legal, &namespace.hashed_key_of_kind(key, kind));
    }
    legal
}

fn push_ascii(out: &mut String, bytes: &[u8]) {
    out.extend(bytes.iter().copied().map(char::from));
}

/// RFC 4648 section 5: the alphabet for names, without padding.
fn push_base64(out: &mut String, bytes: &[u8]) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .fold(0, |group, byte| group << 8 | u32::from(*byte));
        let group = group << (8 * (3 - chunk.len()));
        for digit in 0..=chunk.len() {
            let six_bits = group >> (18 - 6 * digit) & 0x3f;
            out.push(char::from(ALPHABET[six_bits as usize]));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratekeeper::{All, FixedWindow, SlidingWindow, TokenBucket};

    use super::*;

    /// The test vectors of RFC 4648, section 10, and one for the two characters in which the alphabets differ.
    #[test]
    fn base64_is_the_standards() {
        let encode = |bytes: &[u8]| {
            let mut out = String::new();
            push_base64(&mut out, bytes);
            out
        };
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
        }
        assert_eq!(encode(&[0xff, 0xef, 0xbe]), "_---");
    }

    fn bucket<K: Key + ?Sized>(space: &Namespace, key: &K) -> String {
        legal_key(space, key, &KeyKind::of(&TokenBucket::per_second(1)))
    }

    #[test]
    fn printable_keys_stay_readable() {
        let space = Namespace::new("api").unwrap();
        assert_eq!(bucket(&space, "alice"), "rl:api:alice");
        assert_eq!(bucket(&space, ""), "rl:api:");
        assert_eq!(bucket(&space, "al ice"), "rl:api=YWwgaWNl");
        assert_eq!(bucket(&space, "é"), "rl:api=w6k");
        assert_eq!(bucket(&space, &("eu", 7_u8)), "rl:api=ZXX_N_8");
        let hashed = bucket(&space, "\n".repeat(4096).as_str());
        assert!(hashed.starts_with("rl:api#") && hashed.len() == 7 + 64);
        let windows = KeyKind::of(&SlidingWindow::per_minute(1));
        assert_eq!(
            legal_key(&space, "alice", &windows),
            "rl:api/sliding-60s:alice"
        );
        assert_eq!(legal_key(&space, "é", &windows), "rl:api/sliding-60s=w6k");
    }

    #[test]
    fn all_keys_are_legal_and_distinct() {
        let spaces = ["n", "n-", &"n".repeat(64)].map(|name| Namespace::new(name).unwrap());
        let odd = FixedWindow::new(1, Duration::from_nanos(1_234_567_890_123_456_789)).unwrap();
        let offset = odd.with_offset(Duration::from_nanos(123_456_789_012_345_678));
        let kinds = [
            KeyKind::of(&TokenBucket::per_second(1)),
            KeyKind::of(&SlidingWindow::per_minute(1)),
            KeyKind::of(&odd.anchored()),
            KeyKind::of(&offset),
            KeyKind::of(&All((odd.anchored(), SlidingWindow::per_second(1)))),
        ];
        let longest_kind = kinds.iter().map(|kind| kind.as_str().len()).max();
        assert!(longest_kind >= Some(48), "{longest_kind:?} of 64");
        let mut keys: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        keys.extend((0..=129).flat_map(|len| [vec![b'a'; len], vec![0xff; len], vec![0; len]]));
        // What looks like another form of another key.
        keys.extend(
            [
                "=YQ",
                ":a",
                "#a",
                "YWwgaWNl",
                "al ice",
                "=YWwgaWNl",
                "/sliding-60s:a",
            ]
            .map(|key| key.as_bytes().to_vec()),
        );
        keys.sort();
        keys.dedup();

        let (mut legal, mut longest, mut hashed) = (Vec::new(), [0; 5], [0; 5]);
        for space in &spaces {
            for (i, kind) in kinds.iter().enumerate() {
                for key in &keys {
                    let name = legal_key(space, key.as_slice(), kind);
                    assert!(name.len() <= 250, "{} bytes", name.len());
                    assert!(name.bytes().all(|byte| byte.is_ascii_graphic()), "{name:?}");
                    longest[i] = longest[i].max(name.len());
                    let is_hash = name.contains('#') && !key.contains(&b'#');
                    hashed[i] += usize::from(is_hash && key.len() <= 128);
                    legal.push(name);
                }
            }
        }
        // Only under a long name, and only of windows, are keys hashed that other backends store as they are.
        assert_eq!((longest[0], hashed[0]), (239, 0));
        assert!(longest[4] == 250 && hashed[4] > 0, "{longest:?} {hashed:?}");
        let count = legal.len();
        legal.sort();
        legal.dedup();
        assert_eq!(legal.len(), count);
    }
}
