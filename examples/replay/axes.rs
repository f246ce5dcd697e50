//! The axes of the chart: round times and round rates.
#![allow(clippy::float_arithmetic)] // for drawing only

use std::ops::Range;

use crate::time::utc;
use crate::timeline::Timeline;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Distances between ticks, as clocks and calendars have them, and how to write such times.
const TIME_STEPS: [(u64, &str); 19] = [
    (1, "%T"),
    (2, "%T"),
    (5, "%T"),
    (10, "%T"),
    (15, "%T"),
    (30, "%T"),
    (MINUTE, "%R"),
    (2 * MINUTE, "%R"),
    (5 * MINUTE, "%R"),
    (10 * MINUTE, "%R"),
    (15 * MINUTE, "%R"),
    (30 * MINUTE, "%R"),
    (HOUR, "%R"),
    (3 * HOUR, "%d %b %R"),
    (6 * HOUR, "%d %b %R"),
    (12 * HOUR, "%d %b %R"),
    (DAY, "%d %b"),
    (2 * DAY, "%d %b"),
    (7 * DAY, "%d %b"),
];
const MAX_TIME_STEPS: u64 = 10;
const MAX_RATE_STEPS: f64 = 5.0;

/// Time in Unix seconds, with ticks at round times.
pub(crate) struct TimeAxis {
    pub(crate) range: Range<i64>,
    pub(crate) ticks: Vec<i64>,
    format: &'static str,
}

impl TimeAxis {
    pub(crate) fn over(timeline: &Timeline) -> Self {
        let Range { start, end } = timeline.range();
        let length = end - start;
        let fits = |(step, _): &&(u64, &str)| length / step <= MAX_TIME_STEPS;
        let (step, format) = TIME_STEPS
            .iter()
            .find(fits)
            .copied()
            .unwrap_or_else(|| ((length / MAX_TIME_STEPS).next_multiple_of(DAY), "%F"));
        let ticks = (start.div_ceil(step)..).map(|index| index.saturating_mul(step));
        Self {
            range: signed_seconds(start)..signed_seconds(end),
            ticks: ticks
                .take_while(|&at| at < end)
                .map(signed_seconds)
                .collect(),
            format,
        }
    }

    pub(crate) fn label(&self, seconds: i64) -> String {
        u64::try_from(seconds).map_or_else(|_| String::new(), |seconds| utc(self.format, seconds))
    }
}

/// Requests per unit of time; the unit is the smallest in which the peak is a number to read.
#[derive(Clone, Copy)]
pub(crate) struct RateScale {
    unit: u64,
    title: &'static str,
    /// Where the axis ends: on a tick.
    pub(crate) top: f64,
}

impl RateScale {
    /// A scale that fits all of `timelines`.
    pub(crate) fn over<'a>(timelines: impl Iterator<Item = &'a Timeline>) -> Self {
        let peaks = timelines.flat_map(|timeline| {
            timeline
                .iter()
                .map(|(_, slot)| slot.all() as f64 / timeline.width() as f64)
        });
        let peak = peaks.fold(0.0, f64::max);
        let units = [
            (1, "requests per second"),
            (MINUTE, "requests per minute"),
            (HOUR, "requests per hour"),
        ];
        let fits = |&(unit, _): &(u64, &str)| peak * unit as f64 >= 5.0;
        let (unit, title) = units
            .into_iter()
            .find(fits)
            .unwrap_or((DAY, "requests per day"));
        let peak = peak * unit as f64;
        let step = round_step(peak / MAX_RATE_STEPS);
        let top = step * (peak / step).ceil().max(1.0);
        Self { unit, title, top }
    }

    pub(crate) fn title(self) -> &'static str {
        self.title
    }

    /// The rate of `count` requests in a slot. (The log may end within the last slot, whose rate then
    /// comes out low; by the seconds it lasted, a single request could dwarf the rest.)
    pub(crate) fn rate(self, count: u64, timeline: &Timeline) -> f64 {
        count as f64 * self.unit as f64 / timeline.width() as f64
    }
}

/// The smallest of 1, 2, 5, 10, 20, 50, … that is at least `rate`.
fn round_step(rate: f64) -> f64 {
    let mut decade = 1.0;
    loop {
        for digit in [1.0, 2.0, 5.0] {
            if digit * decade >= rate {
                return digit * decade;
            }
        }
        decade *= 10.0;
    }
}

/// A point on the time axis, which plotters wants signed.
pub(crate) fn signed_seconds(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{RateScale, TimeAxis};
    use crate::timeline::Timeline;

    fn timeline(seconds: &[u64]) -> Timeline {
        let mut timeline = Timeline::default();
        for &at in seconds {
            timeline.count(at, true);
        }
        timeline
    }

    #[test]
    fn ticks_are_round_times() {
        let axis = TimeAxis::over(&timeline(&[55, 250])); // in slots of 1 s
        assert_eq!(axis.ticks, [60, 90, 120, 150, 180, 210, 240]);
        assert_eq!(axis.label(90), "00:01:30");
        let axis = TimeAxis::over(&timeline(&[5]));
        assert_eq!(axis.ticks, [5]);
    }

    #[test]
    fn any_length_has_few_ticks() {
        for length in [0, 1, 100, 10_000, 1_000_000, 100_000_000, 10_000_000_000] {
            let axis = TimeAxis::over(&timeline(&[1_000_000_000, 1_000_000_000 + length]));
            assert!(axis.ticks.len() <= 12, "{length}: {:?}", axis.ticks);
        }
    }

    #[test]
    fn rates_are_given_in_a_readable_unit() {
        let busy = RateScale::over([timeline(&[1; 87])].iter());
        assert_eq!((busy.title(), busy.top), ("requests per second", 100.0));
        let quiet = RateScale::over([timeline(&[1])].iter());
        assert_eq!((quiet.title(), quiet.top), ("requests per minute", 60.0));
        let nothing = RateScale::over([Timeline::default()].iter());
        assert_eq!((nothing.title(), nothing.top), ("requests per day", 1.0));
    }
}
