//! What becomes of states that a clock left ahead of itself.

use core::time::Duration;

/// What a kind of store does about states ahead of the clock, when that was set back.
///
/// A state ahead of the clock is debt, by rule: another limit left it, or a caller with a later reading. Only a value in a
/// shared store may prove that it is not, and is then repaired.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repairs {
    /// Nothing: stores in this process, where time does not run back. Refusals never write.
    #[default]
    Nothing,
    /// As [`step_stored`](crate::store::step_stored) does: stores on one server's clock. A value beyond its own reach is cut
    /// to it, also if the request is refused.
    Proven,
    /// The same for processes that each tell the time: values carry the instant of their write, before which nobody decides,
    /// unless it lies further ahead than this.
    Stamped {
        /// By how much the clocks may differ: [`CasLoop::with_max_skew`](crate::store::CasLoop::with_max_skew).
        max_skew: Duration,
    },
}
