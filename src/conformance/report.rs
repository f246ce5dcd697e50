//! All clauses, one after the other.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use super::clauses::{CLAUSES, Clause};
use super::finding::{Checked, Finding};
use super::need::Need;
use super::subject::Subject;

/// Checks every clause on a store. What it found is printed.
///
/// `lacks` names what the subject does not have. So the test's source says what was not tested: a clause that does not apply
/// for another reason is a failure, and so is a need that turns out to be met.
///
/// # Panics
/// If the store breaks a clause, with all of them in the message; or if `lacks` is not exactly what the subject lacks.
pub fn check_all(subject: &dyn Subject, lacks: &[Need]) {
    let report = Report::of(subject);
    std::println!("{report}");
    if let Err(complaint) = report.verdict(lacks) {
        panic!("{complaint}");
    }
}

/// What the clauses found on one subject.
#[derive(Debug)]
pub struct Report {
    findings: Vec<(Clause, Checked)>,
}

impl Report {
    /// Runs every clause; a panic in one counts as breaking it.
    pub fn of(subject: &dyn Subject) -> Self {
        let findings = CLAUSES
            .iter()
            .map(|clause| {
                let checked = catch_unwind(AssertUnwindSafe(|| clause.check(subject)));
                (
                    *clause,
                    checked.unwrap_or_else(|panic| Err(panicked(clause, &*panic))),
                )
            })
            .collect();
        Self { findings }
    }

    /// Each clause with what it found.
    pub fn findings(&self) -> impl Iterator<Item = (&Clause, &Checked)> {
        self.findings
            .iter()
            .map(|(clause, checked)| (clause, checked))
    }

    /// The names of the clauses that the store breaks.
    pub fn broken(&self) -> Vec<&'static str> {
        let is_broken = |checked: &Checked| matches!(checked, Err(Finding::Broken { .. }));
        let broken = self.findings().filter(|(_, checked)| is_broken(checked));
        broken.map(|(clause, _)| clause.name()).collect()
    }

    /// What the subject lacks, each once.
    pub fn lacks(&self) -> Vec<Need> {
        let mut needs = Vec::new();
        for (_, checked) in self.findings() {
            match checked {
                Err(Finding::Lacks { need, .. }) if !needs.contains(need) => needs.push(*need),
                _ => {}
            }
        }
        needs
    }

    /// Whether the store keeps all clauses that apply, and lacks exactly that.
    ///
    /// # Errors
    /// What is wrong, in full.
    pub fn verdict(&self, lacks: &[Need]) -> Result<(), String> {
        let mut wrong = String::new();
        let mut complain = |line: String| {
            wrong.push_str("\n- ");
            wrong.push_str(&line);
        };
        let found = self.lacks();
        for (_, checked) in self.findings() {
            match checked {
                Err(Finding::Lacks { need, .. }) if lacks.contains(need) => {}
                Err(finding) => complain(format!("{finding}")),
                Ok(()) => {}
            }
        }
        for need in lacks.iter().filter(|need| !found.contains(need)) {
            complain(format!(
                "the subject is said to lack {need:?}, and no clause missed it"
            ));
        }
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(format!("the store does not conform:{wrong}"))
        }
    }
}

fn panicked(clause: &Clause, panic: &(dyn core::any::Any + Send)) -> Finding {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Finding::Broken {
        clause: clause.name(),
        case: String::from("the clause"),
        expected: String::from("no panic"),
        actual: format!("a panic: {}", text.unwrap_or("of another type than text")),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut promise = "";
        for (clause, checked) in self.findings() {
            if clause.promise() != promise {
                promise = clause.promise();
                writeln!(f, "{promise}")?;
            }
            match checked {
                Ok(()) => writeln!(f, "  kept            {}", clause.name())?,
                Err(Finding::Lacks { need, .. }) => {
                    writeln!(f, "  not applicable  {} ({need})", clause.name())?;
                }
                Err(Finding::Broken { .. }) => writeln!(f, "  BROKEN          {}", clause.name())?,
            }
        }
        Ok(())
    }
}
