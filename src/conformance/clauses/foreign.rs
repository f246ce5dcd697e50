//! Values that are no states, and the form of those that are.

use alloc::vec::Vec;

use super::super::history::{Left, Watch};
use super::agreement::watch_all;
use super::prelude::*;

/// A value that is no state of this algorithm is an error, for every kind of request, and is left as it is: neither
/// overwritten nor taken for a key never seen.
pub fn foreign_values_are_errors(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "foreign_values_are_errors");
    let backend = kit.backend()?;
    let client = kit.bucket(slow(5));
    let mut could_write = false;
    for (number, (name, value)) in foreign_values().into_iter().enumerate() {
        let client = client.with_key(format!("key {number}"));
        if !backend.write(&client.space, &client.key, &value) {
            continue;
        }
        could_write = true;
        let before = client.stored(format!("{name}, stored by another program"))?;
        for (asked, request) in [
            ("a take", Request::ONE),
            ("a peek", Request::PEEK),
            ("a large take", Request::take(5)),
        ] {
            let case = format!("{asked} where the stored value is {name}");
            client.fails(&case, request, ErrorKind::Corrupt)?;
            let after = client.stored(&case)?;
            kit.equal(
                format!("the stored value after {case}"),
                &before.bytes,
                &after.bytes,
            )?;
            kit.equal(
                format!("its version after {case}"),
                before.version,
                after.version,
            )?;
        }
    }
    if could_write {
        Ok(())
    } else {
        Err(kit.lacks(Need::ForeignValues))
    }
}

/// A tag, and a bucket's TAT in the year 2026, again and again as far as there is room.
fn state(tag: u8, len: usize) -> Vec<u8> {
    let word = 0x1888_0000_0000_0000_u64.to_be_bytes();
    let mut bytes = Vec::from([tag]);
    bytes.extend(word.into_iter().cycle().take(len - 1));
    bytes
}

fn foreign_values() -> Vec<(&'static str, Vec<u8>)> {
    Vec::from([
        ("the text hello", Vec::from(*b"hello")),
        ("the number 42", Vec::from(*b"42")),
        ("the number 0", Vec::from(*b"0")),
        ("a time in text", Vec::from(*b"1767225600")),
        ("empty", Vec::new()),
        ("a bucket's tag alone", state(0x11, 1)),
        ("a bucket's state that was cut off", state(0x11, 8)),
        ("a bucket's state and one more byte", state(0x11, 10)),
        ("a bucket's body with a window's tag", state(0x13, 9)),
        ("a bucket's state without its reach", state(0x21, 9)),
        (
            "a bucket's state and reach and one more byte",
            state(0x21, 18),
        ),
        ("a bucket's state whose limit was cut off", state(0x31, 42)),
        ("a state of a later format", state(0x41, 17)),
        ("the instant of a write, and no value", state(0x70, 9)),
        ("eight bytes without a tag", state(0x18, 8)),
        ("nine zero bytes", Vec::from([0; 9])),
        ("500 bytes", state(0x11, 500)),
    ])
}

/// Earlier versions kept the states of all kinds of limit under one key. To a bucket, those of others are none.
pub fn values_of_other_kinds_are_absent(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "values_of_other_kinds_are_absent");
    let backend = kit.backend()?;
    if !backend.stores_state_bytes() {
        return Err(kit.lacks(Need::StateBytes));
    }
    let client = kit.bucket(slow(5));
    for (name, tag, len) in [
        ("a window's state", 0x13, 17),
        ("a pair of buckets", 0x14, 17),
    ] {
        let client = client.with_key(name);
        if !backend.write(&client.space, &client.key, &state(tag, len)) {
            return Err(kit.lacks(Need::ForeignValues));
        }
        let case = format!("five of five, where {name} of an earlier version is stored");
        client.take(case, 5)?.allowed()?.leaves(0)?;
        client.take("one more", 1)?.denied()?;
    }
    Ok(())
}

/// Something under the key that is no value at all to the store is an error of kind [`ErrorKind::Corrupt`], too.
pub fn other_types_are_errors(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "other_types_are_errors");
    let backend = kit.backend()?;
    let client = kit.bucket(slow(5));
    if !backend.write_other_type(&client.space, &client.key) {
        return Err(kit.lacks(Need::OtherTypes));
    }
    for (case, request) in [
        ("a take", Request::ONE),
        ("a peek", Request::PEEK),
        ("another take", Request::ONE),
    ] {
        client.fails(
            format!("{case} where a list is stored"),
            request,
            ErrorKind::Corrupt,
        )?;
    }
    Ok(())
}

/// States are stored as [`StateBytes`](crate::store::StateBytes), byte for byte, so that every program can read them.
pub fn states_have_the_common_form(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "states_have_the_common_form");
    let backend = kit.backend()?;
    kit.clock()?;
    if !backend.stores_state_bytes() {
        return Err(kit.lacks(Need::StateBytes));
    }
    // 2026-01-01 and 100 ms, and half a second of reach, in nanoseconds, after a bucket's tag.
    let golden = [
        0x21, 0x18, 0x86, 0x72, 0x51, 0xf3, 0xef, 0xe1, 0x00, 0, 0, 0, 0, 0x1d, 0xcd, 0x65, 0x00,
    ];
    // The same as earlier versions wrote it.
    let earlier = [0x11, 0x18, 0x86, 0x72, 0x51, 0xf3, 0xef, 0xe1, 0x00];
    // The beginning of 2026, after the tag of an instant.
    let written: &[u8] = match subject.repairs() {
        Repairs::Stamped { .. } => &[0x70, 0x18, 0x86, 0x72, 0x51, 0xed, 0xfa, 0x00, 0x00],
        _ => &[],
    };
    let limit = TokenBucket::per_second(10).with_burst(5);
    let client = kit.bucket(limit);
    client
        .take("one of ten per second, at the beginning of 2026", 1)?
        .allowed()?;
    let stored = client.stored("after that")?;
    kit.equal(
        "the stored bytes after that",
        [written, golden.as_slice()].concat(),
        stored.bytes,
    )?;

    for bytes in [golden.as_slice(), &earlier] {
        let client = kit.bucket(limit);
        if backend.write(&client.space, &client.key, bytes) {
            let case = format!("{bytes:02x?}, written by another program");
            client.peek(case)?.leaves(4)?.resets_in(ms(100))?;
        }
    }

    watch_all(kit, &mut InForm)
}

/// That what is stored are the bytes of the machine's state.
struct InForm;

impl<A: Algorithm> Watch<A> for InForm {
    fn after(&mut self, client: &Client<'_, A>, left: &Left<'_>) -> Checked {
        let kit = client.kit;
        let (Some(_), Some(expected)) = (left.keep, left.value) else {
            return Ok(());
        };
        let Some(stored) = client.read()? else {
            return Ok(()); // it was over at once
        };
        kit.equal(
            format!("{}\n      the stored bytes", left.case),
            &*expected,
            &stored.bytes,
        )
    }
}
