//! Allowed and denied requests over time, one panel per policy.

use std::error::Error;

use plotters::coord::Shift;
use plotters::coord::combinators::BindKeyPoints as _;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use ratekeeper::Timestamp;

use crate::axes::{RateScale, TimeAxis, signed_seconds};
use crate::policy::{Policy, Tally};
use crate::text::{self, percent};
use crate::time::span_text;
use crate::timeline::{Slot, Timeline};

/// Blue and orange stay apart for colour-blind readers, and in grey.
const ALLOWED: RGBColor = RGBColor(0x5b, 0x8d, 0xb8);
const DENIED: RGBColor = RGBColor(0xe8, 0x7d, 0x1e);
const INK: RGBColor = RGBColor(0x33, 0x33, 0x33);
const FAINT_INK: RGBColor = RGBColor(0x6b, 0x6b, 0x6b);
const GRID: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);

const WIDTH: u32 = 1000;
const HEADER: u32 = 56;
const PANEL: u32 = 190;
/// Below the last panel: its time labels and their title.
const FOOTER: u32 = 44;
/// Leaves room for half a time label beyond the end of the axis.
const MARGIN: u32 = 40;
/// Left of the plots: the rate labels and their title.
const AXIS: u32 = 56;
const AXIS_MARGIN: u32 = 16;
const PANEL_GAP: u32 = 16;
const NAME_CHARACTERS_SHOWN: usize = 60;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn<T = ()> = Result<T, Box<dyn Error>>;

/// An SVG document. `span` is the time of the first and of the newest request.
pub(crate) fn draw(span: (Timestamp, Timestamp), policies: &[Policy]) -> Result<String, String> {
    let panels = u32::try_from(policies.len()).map_err(|error| error.to_string())?;
    let height = HEADER + PANEL * panels + FOOTER;
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
    draw_all(&root, span, policies).map_err(|error| error.to_string())?;
    drop(root); // writes the end of the document
    Ok(svg)
}

fn draw_all(root: &Area<'_>, span: (Timestamp, Timestamp), policies: &[Policy]) -> Drawn {
    root.fill(&WHITE)?;
    draw_header(root, span)?;
    // Every policy sees the same requests, so one scale fits all panels.
    let scale = RateScale::over(policies.iter().map(|policy| &policy.tally().timeline));
    let mut rest = root.split_vertically(HEADER).1;
    for (index, policy) in policies.iter().enumerate() {
        let is_last = index + 1 == policies.len();
        let (panel, below) = rest.split_vertically(if is_last { PANEL + FOOTER } else { PANEL });
        draw_panel(&panel, policy, scale, is_last)?;
        rest = below;
    }
    root.present()?;
    Ok(())
}

fn draw_header(root: &Area<'_>, span: (Timestamp, Timestamp)) -> Drawn {
    let title = format!("Requests of {}", span_text(span));
    label(root, &title, (MARGIN, 26), 17, INK, HPos::Left)?;
    // The widths of the words are guesses: an SVG is laid out by its viewer, with the viewer's fonts.
    for (name, colour, width) in [("allowed", ALLOWED, 150), ("denied", DENIED, 62)] {
        let left = WIDTH - MARGIN - width;
        let (x, y) = (signed(left), 26);
        root.draw(&Rectangle::new(
            [(x, y - 6), (x + 14, y + 6)],
            colour.filled(),
        ))?;
        label(root, name, (left + 21, 26), 14, INK, HPos::Left)?;
    }
    Ok(())
}

fn draw_panel(panel: &Area<'_>, policy: &Policy, scale: RateScale, is_last: bool) -> Drawn {
    let tally = policy.tally();
    let timeline = &tally.timeline;
    let name = text::printable(&policy.to_string(), NAME_CHARACTERS_SHOWN);
    label(panel, &name, (MARGIN, 14), 15, INK, HPos::Left)?;
    let right = WIDTH - MARGIN;
    label(
        panel,
        &summary(tally),
        (right, 14),
        13,
        FAINT_INK,
        HPos::Right,
    )?;

    let times = TimeAxis::over(timeline);
    let mut chart = ChartBuilder::on(panel)
        .margin_top(30)
        .margin_right(MARGIN)
        .margin_bottom(PANEL_GAP)
        .margin_left(AXIS_MARGIN)
        .x_label_area_size(if is_last { FOOTER } else { 0 })
        .y_label_area_size(AXIS)
        .build_cartesian_2d(
            times.range.clone().with_key_points(times.ticks.clone()),
            0.0..scale.top,
        )?;
    let small = ("sans-serif", 12).into_font().color(&FAINT_INK);
    chart
        .configure_mesh()
        .x_label_formatter(&|&seconds| times.label(seconds))
        .x_desc(if is_last { "time (UTC)" } else { "" })
        .y_labels(6)
        .y_label_formatter(&|rate| format!("{rate}"))
        .y_desc(scale.title())
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(FAINT_INK)
        .label_style(small.clone())
        .axis_desc_style(small)
        .draw()?;

    let rate = |count| scale.rate(count, timeline);
    let denied = steps(timeline, |slot| rate(slot.allowed), |slot| rate(slot.all()));
    let allowed = steps(timeline, |_| 0.0, |slot| rate(slot.allowed));
    chart.draw_series([
        Polygon::new(allowed, ALLOWED.filled()),
        Polygon::new(denied, DENIED.filled()),
    ])?;
    Ok(())
}

fn summary(tally: &Tally) -> String {
    let Tally {
        allowed, denied, ..
    } = tally;
    let limited = tally.denials.len();
    let keys = if limited == 1 { "key" } else { "keys" };
    let share = percent(*denied, allowed + denied);
    format!("{allowed} allowed, {denied} denied ({share}) from {limited} {keys}")
}

/// The outline of an area between two rates, level within each slot.
fn steps(
    timeline: &Timeline,
    bottom: impl Fn(&Slot) -> f64,
    top: impl Fn(&Slot) -> f64,
) -> Vec<(i64, f64)> {
    let mut upper = Vec::new();
    let mut lower = Vec::new();
    for (times, slot) in timeline.iter() {
        for at in [times.start, times.end] {
            upper.push((signed_seconds(at), top(slot)));
            lower.push((signed_seconds(at), bottom(slot)));
        }
    }
    upper.extend(lower.into_iter().rev());
    upper
}

fn label(
    area: &Area<'_>,
    text: &str,
    (x, y): (u32, u32),
    size: u32,
    colour: RGBColor,
    side: HPos,
) -> Drawn {
    let style = ("sans-serif", size)
        .into_font()
        .color(&colour)
        .pos(Pos::new(side, VPos::Center));
    area.draw(&Text::new(text, (signed(x), signed(y)), style))?;
    Ok(())
}

/// Pixels of a drawing, which are few.
fn signed(pixels: u32) -> i32 {
    i32::try_from(pixels).unwrap_or(i32::MAX)
}
