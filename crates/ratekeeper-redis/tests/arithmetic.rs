//! The scripts' primitives on their own, where their roundings are most likely to go wrong; against 128-bit integers.

use ratekeeper_test_servers::{Kind, Server};

/// What muldiv.lua takes: below 2^52.
const MOST: u64 = (1 << 52) - 1;

struct Random(u64);

impl Random {
    /// `SplitMix64`.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 1 to `most`, each order of magnitude as likely as another.
    fn magnitude(&mut self, most: u64) -> u64 {
        let bits = self.next() % u64::from(u64::BITS - most.leading_zeros()) + 1;
        (self.next() >> (64 - bits)).clamp(1, most)
    }

    /// Three numbers that muldiv.lua takes; every second time with a product next to a multiple of the divisor, where an
    /// estimated quotient is one off.
    fn factors(&mut self) -> [u64; 3] {
        loop {
            let (mut a, b, m) = (
                self.magnitude(MOST),
                self.magnitude(MOST),
                self.magnitude(MOST),
            );
            if self.next().is_multiple_of(2) {
                let most =
                    u64::try_from(u128::from(MOST) * u128::from(b) / u128::from(m)).unwrap_or(MOST);
                let quotient = self.magnitude(most.clamp(1, MOST));
                let near = u128::from(quotient) * u128::from(m) / u128::from(b);
                a = u64::try_from(near)
                    .unwrap_or(MOST)
                    .saturating_add(self.next() % 3)
                    .saturating_sub(1);
            }
            let quotient = u128::from(a) * u128::from(b) / u128::from(m);
            if a <= MOST && quotient <= u128::from(MOST) {
                return [a, b, m];
            }
        }
    }
}

/// Lua's numbers are doubles; these are all exact.
#[allow(clippy::cast_precision_loss)]
fn packed(numbers: &[u64]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| (*number as f64).to_be_bytes())
        .collect()
}

fn muldiv_is_exact_on(kind: Kind) {
    let server = Server::shared(kind);
    let script = concat!(
        include_str!("../src/scripts/muldiv.lua"),
        "local out = {}
        for i = 1, #ARGV[1] / 24 do
          local a, b, m = struct.unpack('>ddd', ARGV[1], 24 * i - 23)
          local quotient, rest = muldiv(a, b, m)
          out[i] = string.format('%.0f %.0f', quotient, rest)
        end
        return table.concat(out, '\\n')"
    );
    let mut random = Random(1);
    for _ in 0..200 {
        let cases: Vec<[u64; 3]> = (0..500).map(|_| random.factors()).collect();
        let answer = server
            .command(&[
                b"EVAL",
                script.as_bytes(),
                b"0",
                &packed(cases.as_flattened()),
            ])
            .unwrap();
        let answers: Vec<&str> = answer.lines().collect();
        assert_eq!(answers.len(), cases.len());
        for ([a, b, m], answer) in cases.into_iter().zip(answers) {
            let product = u128::from(a) * u128::from(b);
            let (quotient, rest) = (product / u128::from(m), product % u128::from(m));
            assert_eq!(answer, format!("{quotient} {rest}"), "{a} * {b} / {m}");
        }
    }
}

#[test]
fn muldiv_is_exact() {
    for kind in [Kind::Redis, Kind::Redis62, Kind::Valkey] {
        muldiv_is_exact_on(kind);
    }
}

/// `TIME` in seconds and microseconds, as 64 bits of nanoseconds; the prologue with a clock of ours.
#[test]
fn the_servers_time_is_converted_exactly() {
    let server = Server::shared(Kind::Redis);
    let script = concat!(
        "local seconds, micros = ARGV[1], ARGV[2]
        local redis = {call = function() return {seconds, micros} end}
        local ARGV = {''}\n",
        include_str!("../src/scripts/prologue.lua"),
        "return string.format('%.0f %.0f', now_high, now_low)"
    );
    let mut random = Random(2);
    let carries = [
        0,
        1,
        4,
        5,
        4_294_967,
        1_717_986_918,
        1_717_986_919,
        2_147_483_648,
        4_294_967_295,
    ];
    for second in carries
        .into_iter()
        .chain((0..2_000).map(|_| random.next() % 4_600_000_000))
    {
        for micros in [0, 1, 999_999, 294_967, 294_968] {
            let now_ns = (second * 1_000_000 + micros) * 1_000;
            let (second, micros) = (second.to_string(), micros.to_string());
            let answer = server
                .command(&["EVAL", script, "0", &second, &micros])
                .unwrap();
            assert_eq!(
                answer,
                format!("{} {}", now_ns >> 32, now_ns & 0xffff_ffff),
                "{second} s {micros} us"
            );
        }
    }
}
