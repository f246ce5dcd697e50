//! Plays the committed corpora: what the fuzzers found worth keeping, and what once was a bug.

use std::fs;
use std::path::Path;

use ratekeeper_fuzz::TARGETS;

#[test]
fn every_seed_of_every_target() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, target) in TARGETS {
        let seeds = fs::read_dir(corpora.join(name))
            .unwrap_or_else(|error| panic!("corpus of {name}: {error}"));
        let mut played = 0;
        for seed in seeds {
            let path = seed.expect("a readable folder").path();
            // The name of a seed that fails is the last one that the test printed.
            println!("{}", path.display());
            target(&fs::read(&path).expect("a readable seed"));
            played += 1;
        }
        assert!(played >= 10, "{name} has {played} seeds");
    }
}

/// Bytes drawn at random: shallow, but different from what the corpora hold.
#[test]
fn random_bytes() {
    let mut word = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = || {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        word
    };
    for (name, target) in TARGETS {
        for _ in 0..3_000 {
            let len = draw() % 400;
            let bytes: Vec<u8> = (0..len).map(|_| draw().to_le_bytes()[3]).collect();
            if std::panic::catch_unwind(|| target(&bytes)).is_err() {
                panic!("{name}: {bytes:?}");
            }
        }
    }
}
