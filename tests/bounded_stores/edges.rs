//! Capacities, floods of a million keys, keys made of parts, and memory that the caller brings.

use std::alloc::{Layout, alloc_zeroed};
use std::net::{IpAddr, Ipv4Addr};

use ratekeeper::{
    Algorithm, DashStore, FixedWindow, InvalidCapacity, KeyedLimiter, ManualClock, Overflow,
    Request, SlidingWindow, Slot, TableStore, TokenBucket, Ways,
};

use crate::support::{Bounded, SECOND, START, at, limiter, map, table};

#[test]
fn a_store_for_nobody_is_an_error() {
    type Table<C> = TableStore<C, TokenBucket>;
    let zero = Some(InvalidCapacity::Zero);
    let too_large = Some(InvalidCapacity::TooLarge);
    assert_eq!(TableStore::<_, TokenBucket>::for_keys(0).err(), zero);
    assert_eq!(Table::with_clock(0, ManualClock::new()).err(), zero);
    assert_eq!(Table::with_seed(0, 1, ManualClock::new()).err(), zero);
    assert_eq!(
        Table::with_seed((1 << 26) + 1, 1, ManualClock::new()).err(),
        too_large
    );
    assert_eq!(
        TableStore::<_, TokenBucket>::for_keys(usize::MAX).err(),
        too_large
    );
    assert_eq!(
        DashStore::<u64, TokenBucket, _>::with_capacity(0, ManualClock::new()).err(),
        zero
    );
    assert_eq!(
        InvalidCapacity::Zero.to_string(),
        "a store's capacity must be above 0"
    );
}

#[test]
fn small_capacities_are_rounded_up() {
    for (slots, capacity) in [(1, 8), (2, 8), (8, 8), (9, 16), (100, 104)] {
        for ways in [Ways::Four, Ways::Eight] {
            let table: TableStore<_, TokenBucket> = table(slots, ways, Overflow::Inherit);
            assert_eq!(table.capacity(), capacity, "{slots} slots");
        }
    }
    assert_eq!(map::<TokenBucket>(2, Overflow::Inherit).capacity(), 2);
}

/// A client used its burst up; then a million strangers come.
fn a_million_strangers<A: Algorithm + Copy, S: Bounded<A>>(limit: A, burst: u64, store: S) {
    const STRANGERS: u64 = 1_000_000;
    let name = format!("{limit:?}");
    let limiter = limiter(limit, store);
    let drained = limiter.apply_at(&0, Request::take(burst), at(START));
    assert_eq!(drained.granted(), burst, "{name}");
    let mut refused = 0;
    for stranger in 1..=STRANGERS {
        let now = START + stranger * SECOND / STRANGERS;
        refused += u64::from(!limiter.check_at(&stranger, at(now)).is_allowed());
        if stranger % (STRANGERS / 100) == 0 {
            assert!(
                !limiter.check_at(&0, at(now)).is_allowed(),
                "{name}: forgiven"
            );
        }
    }
    let (replaced, overflowed) = limiter.store().counts();
    assert!(
        refused + replaced + overflowed >= STRANGERS - 1_000,
        "{name}: no flood"
    );
}

#[test]
fn nobody_is_forgiven_by_a_table() {
    for ways in [Ways::Four, Ways::Eight] {
        for overflow in [Overflow::Inherit, Overflow::Deny, Overflow::Admit] {
            let bucket = TokenBucket::per_minute(50);
            a_million_strangers(bucket, 50, table(2, ways, overflow));
        }
    }
    let sliding = SlidingWindow::per_minute(50);
    a_million_strangers(sliding, 50, table(2, Ways::Four, Overflow::Inherit));
    a_million_strangers(sliding, 50, table(2, Ways::Eight, Overflow::Deny));
    let fixed = FixedWindow::per_minute(50).anchored();
    a_million_strangers(fixed, 50, table(2, Ways::Eight, Overflow::Inherit));
    a_million_strangers(fixed, 50, table(2, Ways::Four, Overflow::Deny));
}

#[test]
fn nobody_is_forgiven_by_a_map() {
    for overflow in [Overflow::Inherit, Overflow::Deny, Overflow::Admit] {
        let bucket = TokenBucket::per_minute(50);
        a_million_strangers(bucket, 50, map(2, overflow));
        a_million_strangers(bucket, 50, map(1_000, overflow));
    }
    let sliding = SlidingWindow::per_minute(50);
    a_million_strangers(sliding, 50, map(2, Overflow::Inherit));
}

#[test]
fn parts_of_a_key_do_not_run_together() {
    type Key = (&'static str, IpAddr);
    let limit = TokenBucket::per_minute(1);
    let limiter: KeyedLimiter<(&str, &str), _, _> = KeyedLimiter::with_store(
        limit,
        table::<TokenBucket>(64, Ways::Four, Overflow::Inherit),
    );
    let now = at(START);
    assert!(limiter.check_at(&("ab", "c"), now).is_allowed());
    assert!(limiter.check_at(&("a", "bc"), now).is_allowed());
    assert!(limiter.check_at(&("", "abc"), now).is_allowed());
    assert!(!limiter.check_at(&("ab", "c"), now).is_allowed());

    // Borrowed parts of whatever lifetime: nothing is kept, and nothing allocated.
    let per_route: KeyedLimiter<Key, _, _> = KeyedLimiter::with_store(
        limit,
        table::<TokenBucket>(64, Ways::Four, Overflow::Inherit),
    );
    let client = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let check = |route: String| per_route.check_at(&(route.as_str(), client), now);
    assert!(check(String::from("/search")).is_allowed());
    assert!(!check(String::from("/search")).is_allowed());
    assert!(check(String::from("/login")).is_allowed());

    // One key, however it is held.
    let by_name: KeyedLimiter<String, _, _> = KeyedLimiter::with_store(
        limit,
        table::<TokenBucket>(64, Ways::Four, Overflow::Inherit),
    );
    assert!(by_name.check_at("alice", now).is_allowed());
    assert!(!by_name.check_at(&String::from("alice"), now).is_allowed());
    assert!(by_name.store().remove("alice"));
    assert!(by_name.check_at("alice", now).is_allowed());
}

#[test]
fn a_table_in_a_static() {
    static CLOCK: ManualClock = ManualClock::new();
    static SLOTS: [Slot; 67] = [const { Slot::new() }; 67];
    static PER_NODE: KeyedLimiter<u32, TokenBucket, TableStore<&ManualClock>> =
        KeyedLimiter::with_store(
            TokenBucket::per_minute(2),
            TableStore::from_slots(&SLOTS, 7, &CLOCK)
                .with_ways(Ways::Eight)
                .with_overflow(Overflow::Deny),
        );
    assert_eq!(PER_NODE.store().capacity(), 64);
    for node in 0..10 {
        assert_eq!(PER_NODE.check(&node).remaining(), 1);
        assert_eq!(PER_NODE.check(&node).remaining(), 0);
        assert!(!PER_NODE.check(&node).is_allowed());
    }
    assert_eq!(PER_NODE.store().occupied(&TokenBucket::per_minute(2)), 10);
}

/// Wherever memory begins: as much as fits from the first cache line on, and no two keys in one slot.
#[test]
fn memory_may_begin_anywhere() {
    assert_eq!((size_of::<Slot>(), align_of::<Slot>()), (16, 16));
    for skipped in 0..8 {
        for ways in [Ways::Four, Ways::Eight] {
            let slots: &'static [Slot] = Box::leak((0..67 + 8).map(|_| Slot::new()).collect());
            let slots = &slots[skipped..skipped + 67];
            let store = TableStore::from_slots(slots, 7, ManualClock::new()).with_ways(ways);
            assert_eq!(store.capacity(), 64);
            let limiter = limiter(TokenBucket::per_minute(1), store);
            for key in 0..1_000 {
                let _ = limiter.check_at(&key, at(START));
            }
            let used = |slot: &&Slot| format!("{slot:?}") != format!("{:?}", Slot::new());
            assert_eq!(
                slots.iter().filter(used).count(),
                64,
                "every slot of every set"
            );
        }
    }
}

/// Pages fresh from the system are a table.
#[test]
#[allow(unsafe_code)] // safe code cannot claim that zeroed memory is anything
fn zeroed_memory_is_an_empty_table() {
    const LEN: usize = 1_003;
    let layout = Layout::array::<Slot>(LEN).unwrap();
    // SAFETY: the layout is not empty.
    let memory = unsafe { alloc_zeroed(layout) }.cast::<Slot>();
    assert!(!memory.is_null());
    // SAFETY: allocated for so many slots, never freed, and zeros are empty slots, as their documentation says.
    let slots: &'static [Slot] = unsafe { std::slice::from_raw_parts(memory, LEN) };
    let limiter = limiter(
        TokenBucket::per_minute(3),
        TableStore::from_slots(slots, 7, ManualClock::new()),
    );
    assert_eq!(limiter.store().capacity(), 1_000);
    for key in 0..100 {
        assert_eq!(limiter.check_at(&key, at(START)).remaining(), 2);
        assert_eq!(limiter.check_at(&key, at(START)).remaining(), 1);
    }
}
