#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| ratekeeper_fuzz::stores(data));

#[cfg(not(fuzzing))]
fn main() {
    eprintln!("run this with cargo-fuzz: cargo fuzz run stores");
}
