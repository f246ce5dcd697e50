//! Keys as memcached takes them: at most 250 bytes, no spaces, no control characters.

use ratekeeper::store::{Key, Namespace};

/// `rl:name:key` if every byte of the key can be printed, `rl:name=` and the key's base64 otherwise.
///
/// A namespace's name contains neither `:` nor `=` nor `#` (which marks a hash), so what follows the name tells the three
/// forms apart: no two keys meet. The longest, 128 bytes in base64 under a name of 64, has 239 bytes. memcached could decode
/// base64 itself, but only of the whole key: `rl:` and a long name would not leave room for 128 bytes.
pub(crate) fn legal_key<K: Key + ?Sized>(namespace: &Namespace, key: &K) -> String {
    let bytes = namespace.key(key);
    let mark = "rl:".len() + namespace.name().len();
    let (prefix, key) = bytes.split_at((mark + 1).min(bytes.len()));
    let mut legal = String::with_capacity(bytes.len() * 4 / 3 + 2);
    legal.extend(prefix.iter().copied().map(char::from));
    if key.iter().all(u8::is_ascii_graphic) {
        legal.extend(key.iter().copied().map(char::from));
    } else {
        legal.truncate(mark);
        legal.push('=');
        push_base64(&mut legal, key);
    }
    legal
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

    #[test]
    fn printable_keys_stay_readable() {
        let space = Namespace::new("api").unwrap();
        assert_eq!(legal_key(&space, "alice"), "rl:api:alice");
        assert_eq!(legal_key(&space, ""), "rl:api:");
        assert_eq!(legal_key(&space, "al ice"), "rl:api=YWwgaWNl");
        assert_eq!(legal_key(&space, "é"), "rl:api=w6k");
        assert_eq!(legal_key(&space, &("eu", 7_u8)), "rl:api=ZXX_N_8");
        let hashed = legal_key(&space, "\n".repeat(4096).as_str());
        assert!(hashed.starts_with("rl:api#") && hashed.len() == 7 + 64);
    }

    #[test]
    fn all_keys_are_legal_and_distinct() {
        let spaces = ["n", "n-", &"n".repeat(64)].map(|name| Namespace::new(name).unwrap());
        let mut keys: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        keys.extend((0..=129).flat_map(|len| [vec![b'a'; len], vec![0xff; len], vec![0; len]]));
        // What looks like another form of another key.
        keys.extend(
            ["=YQ", ":a", "#a", "YWwgaWNl", "al ice", "=YWwgaWNl"]
                .map(|key| key.as_bytes().to_vec()),
        );
        keys.sort();
        keys.dedup();

        let mut legal = Vec::new();
        for space in &spaces {
            for key in &keys {
                let bytes = legal_key(space, key.as_slice());
                assert!(bytes.len() <= 250, "{} bytes", bytes.len());
                assert!(
                    bytes.bytes().all(|byte| byte.is_ascii_graphic()),
                    "{bytes:?}"
                );
                legal.push(bytes);
            }
        }
        let longest = legal.iter().map(String::len).max();
        assert_eq!(longest, Some(239));
        let count = legal.len();
        legal.sort();
        legal.dedup();
        assert_eq!(legal.len(), count);
    }
}
