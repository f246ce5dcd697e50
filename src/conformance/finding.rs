//! What a clause found.

use alloc::string::String;
use core::error::Error;
use core::fmt;

use super::need::Need;

/// What a clause returns: `Ok` if the store keeps it.
pub type Checked = Result<(), Finding>;

/// Why a clause was not passed.
#[derive(Clone, PartialEq, Eq)]
pub enum Finding {
    /// The store breaks the clause.
    Broken {
        /// The name of the clause.
        clause: &'static str,
        /// What was done.
        case: String,
        /// What should have come of it.
        expected: String,
        /// What came of it.
        actual: String,
    },
    /// The clause does not apply, or not all of it; what applies is kept.
    Lacks {
        /// The name of the clause.
        clause: &'static str,
        /// What the subject lacks.
        need: Need,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken {
                clause,
                case,
                expected,
                actual,
            } => write!(
                f,
                "clause `{clause}` is broken\n    case: {case}\n    expected: {expected}\n    actual: {actual}"
            ),
            Self::Lacks { clause, need } => {
                write!(f, "clause `{clause}` does not apply: lacks {need}")
            }
        }
    }
}

/// As displayed, so that `unwrap` says all there is to say.
impl fmt::Debug for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Finding {}
