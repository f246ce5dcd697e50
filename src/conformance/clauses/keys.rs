//! Keys and key spaces that must not meet.

use alloc::string::String;
use alloc::vec::Vec;

use super::prelude::*;

/// Distinct texts are distinct keys: empty, spaced, cased, separated, quoted, with control characters, composed and
/// decomposed, and long ones that differ at one end.
pub fn keys_do_not_meet(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "keys_do_not_meet");
    let odd = [
        "",
        " ",
        "  ",
        "a",
        "A",
        "a ",
        " a",
        "ab",
        "a:b",
        "a::b",
        "a/b",
        "../a",
        "a|b",
        "a,b",
        "a.b",
        "a-b",
        "a_b",
        "a\0",
        "a\0b",
        "\0",
        "\r\n",
        "a\nb",
        "\t",
        "{a}b",
        "{a}",
        "{}",
        "}{",
        "[a]",
        "*",
        "?",
        "a*",
        "\\",
        "\"",
        "'",
        "'; --",
        "%s",
        "%00",
        "%",
        "$5",
        "$1",
        "#",
        "1",
        "01",
        "+1",
        "1.0",
        "null",
        "ß",
        "ss",
        "é",
        "e\u{301}",
        "İ",
        "i",
        "😀",
        "\u{feff}a",
    ];
    let long = |first: char, last: char| {
        let mut key = String::from(first);
        key.extend(core::iter::repeat_n('x', 4_094));
        key.push(last);
        key
    };
    let mut keys: Vec<String> = odd.map(String::from).into();
    keys.extend([long('x', 'x'), long('x', 'y'), long('y', 'x')]);
    let client = kit.bucket(slow(100));
    let keys = keys
        .into_iter()
        .map(|key| client.with_key(key))
        .collect::<Vec<_>>();
    distinct(
        kit,
        keys.iter()
            .map(|client| (client.key.as_str(), |request| client.try_ask(request))),
    )
}

/// The parts of a pair do not run together.
pub fn tuple_keys_do_not_meet(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "tuple_keys_do_not_meet");
    let store = subject
        .tuple_keys(&kit.space())
        .ok_or_else(|| kit.lacks(Need::TupleKeys))?;
    let pairs = [
        ("ab", "c"),
        ("a", "bc"),
        ("", "abc"),
        ("abc", ""),
        ("a:b", "c"),
        ("a", "b:c"),
        ("a\0b", "c"),
        ("a", "b\0c"),
        ("a,b", "c"),
        ("a", "b,c"),
        ("a/b", "c"),
        ("a", "b/c"),
        ("", ""),
        ("ÿ", ""),
        ("", "ÿ"),
        ("c", "ab"),
        ("1", "23"),
        ("12", "3"),
    ]
    .map(|(first, second)| (String::from(first), String::from(second)));
    let (store, limit) = (&store, slow(100));
    let ask = |pair| move |request| kit.run(store.apply_async(pair, &limit, request));
    distinct(kit, pairs.iter().map(|pair| (pair, ask(pair))))
}

/// Bytes are bytes, whether they are text or not.
pub fn byte_keys_do_not_meet(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "byte_keys_do_not_meet");
    let store = subject
        .byte_keys(&kit.space())
        .ok_or_else(|| kit.lacks(Need::ByteKeys))?;
    let keys: [&[u8]; 14] = [
        b"",
        b"\0",
        b"\0\0",
        b"\x80",
        b"\xff",
        b"\xff\xff",
        b"\xfe",
        b"a\xff",
        b"a",
        b"\xc3\x28",
        b"\xc3",
        b"\xef\xbf\xbd",
        b"\r",
        b"\n",
    ];
    let (store, limit) = (&store, slow(100));
    let ask = |key| move |request| kit.run(store.apply_async(key, &limit, request));
    distinct(kit, keys.into_iter().map(|key| (key, ask(key))))
}

/// Takes another number of tokens from each key, and then looks what each has left.
fn distinct<'k, T, F>(kit: Kit<'_>, keys: impl Iterator<Item = (&'k T, F)> + Clone) -> Checked
where
    T: fmt::Debug + ?Sized + 'k,
    F: Fn(Request) -> Result<Decision, StoreError>,
{
    let mut left = 100;
    for (key, ask) in keys.clone() {
        left -= 1;
        let decision = ask(Request::take(100 - left));
        let actual = decision.map(|decision| decision.remaining());
        same(
            kit,
            format!("taking {} of 100 from {}", 100 - left, short(key)),
            left,
            actual,
        )?;
    }
    let mut left = 100;
    for (key, ask) in keys {
        left -= 1;
        let actual = ask(Request::PEEK).map(|decision| decision.remaining());
        same(
            kit,
            format!("what {} has left after the others were used", short(key)),
            left,
            actual,
        )?;
    }
    Ok(())
}

/// A key as the author sees it in a message.
fn short<T: fmt::Debug + ?Sized>(key: &T) -> String {
    let text = format!("the key {key:?}");
    if text.len() <= 60 {
        return text;
    }
    let (first, last) = (
        text.chars().take(16).collect::<String>(),
        text.chars().rev().take(3),
    );
    format!(
        "{first}…{} ({} characters)",
        last.collect::<Vec<_>>().iter().rev().collect::<String>(),
        text.chars().count()
    )
}

fn same(kit: Kit<'_>, case: String, expected: u64, actual: Result<u64, StoreError>) -> Checked {
    match actual {
        Ok(actual) => kit.equal(case, expected, actual),
        Err(error) => Err(kit.broken(case, expected, Shown(&error))),
    }
}

/// Equal keys in distinct key spaces are distinct, also where the name of the space and the key run together.
pub fn key_spaces_do_not_meet(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "key_spaces_do_not_meet");
    let space = kit.space();
    let mut pairs = Vec::from([
        (space.clone(), String::from("k")),
        (kit.space(), String::from("k")),
        (format!("{space}1"), String::from("k")),
        (space.clone(), String::from("1k")),
        (space.clone(), String::from("1:k")),
    ]);
    for mark in ['.', '_', '-'] {
        pairs.push((format!("{space}{mark}a"), String::from("k")));
        pairs.push((space.clone(), format!("a{mark}k")));
        pairs.push((space.clone(), format!("{mark}a:k")));
    }
    let clients: Vec<_> = pairs
        .into_iter()
        .map(|(space, key)| {
            let store = subject.buckets(&space);
            let name = format!("{key} in {space}");
            (
                name,
                Client::new(kit, store, space, slow(100)).with_key(key),
            )
        })
        .collect();
    let ask = |client| move |request| Client::try_ask(client, request);
    distinct(
        kit,
        clients
            .iter()
            .map(|(name, client)| (name.as_str(), ask(client))),
    )
}

/// Two handles on a key space are two doors to the same room.
pub fn handles_share_a_key_space(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "handles_share_a_key_space");
    let one = kit.bucket(slow(6));
    let other = Client {
        store: subject.buckets(&one.space),
        ..one.clone()
    };
    for (turn, left) in [(0, 4), (1, 2), (2, 0)] {
        let (asking, watching) = if turn % 2 == 0 {
            (&one, &other)
        } else {
            (&other, &one)
        };
        asking
            .take(format!("two of {} left", left + 2), 2)?
            .allowed()?
            .leaves(left)?;
        watching.peek("the other handle's view")?.leaves(left)?;
    }
    for client in [&one, &other] {
        client.take("one of none", 1)?.denied()?;
    }
    Ok(())
}
