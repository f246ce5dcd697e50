//! The result, one row per policy.

use std::io::{self, Write};

use crate::policy::Policy;
use crate::replay::Contents;
use crate::text::{duration, per_second, percent, printable};
use crate::time::span_text;

const KEY_CHARACTERS_SHOWN: usize = 40;

const HEADINGS: [&str; COLUMNS] = [
    "policy",
    "requests",
    "allowed",
    "denied",
    "denied %",
    "keys",
    "limited",
    "longest wait",
    "decisions/s",
    "worst key (denials)",
];
const COLUMNS: usize = 10;

/// Names are aligned to the left, numbers to the right.
fn is_name(column: usize) -> bool {
    column == 0 || column == COLUMNS - 1
}

pub(crate) fn write(
    out: &mut impl Write,
    contents: &Contents,
    policies: &[Policy],
) -> io::Result<()> {
    let mut rows: Vec<[String; COLUMNS]> = vec![HEADINGS.map(str::to_owned)];
    rows.extend(policies.iter().map(|policy| row(contents, policy)));
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    });

    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let cell = if is_name(column) {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            };
            line.push_str(&cell);
            line.push_str("  ");
        }
        writeln!(out, "{}", line.trim_end())?;
    }

    let Contents {
        lines,
        malformed,
        out_of_order,
        ..
    } = contents;
    write!(
        out,
        "\nlines: {lines}, malformed: {malformed}, out of order: {out_of_order}"
    )?;
    if let Some(span) = contents.span {
        write!(out, "; {}", span_text(span))?;
    }
    writeln!(
        out,
        "\nlimited: keys denied at least once. decisions/s: by the wall time of the decisions alone, on one\n\
         thread, in batches; without reading, parsing and counting."
    )
}

fn row(contents: &Contents, policy: &Policy) -> [String; COLUMNS] {
    let tally = policy.tally();
    let requests = contents.requests();
    let worst = tally.worst().map_or_else(
        || "-".to_owned(),
        |(key, denials)| format!("{} ({denials})", printable(key, KEY_CHARACTERS_SHOWN)),
    );
    let longest_wait = if tally.denied == 0 {
        "-".to_owned()
    } else {
        duration(tally.longest_wait)
    };
    [
        policy.to_string(),
        requests.to_string(),
        tally.allowed.to_string(),
        tally.denied.to_string(),
        percent(tally.denied, requests),
        contents.keys.len().to_string(),
        tally.denials.len().to_string(),
        longest_wait,
        per_second(requests, tally.deciding),
        worst,
    ]
}
