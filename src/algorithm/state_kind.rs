//! What limits must have in common to share states.

/// The kind of states that a limit leaves: the algorithm, and for windows their length, offset and anchoring. Limits of one
/// kind may share a key in any order; to another kind its state says something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateKind(u64);

impl StateKind {
    /// The kind of an algorithm with this tag.
    #[inline]
    pub(crate) const fn of_tag(tag: u8) -> Self {
        Self(0x100 | tag as u64)
    }

    /// A number, to be mixed in.
    #[inline]
    pub(crate) const fn of_number(number: u64) -> Self {
        Self(number)
    }

    /// The kind of a window. Two of different parameters have one number with a probability of 2⁻⁶⁴.
    #[inline]
    pub(crate) const fn window(tag: u8, window_ns: u64, edges: u64) -> Self {
        Self::of_tag(tag).and(Self(window_ns)).and(Self(edges))
    }

    /// The kind of two limits on one key, in this order.
    #[inline]
    #[must_use]
    pub(crate) const fn and(self, next: Self) -> Self {
        // Multiplication by an odd number and the shift are both invertible, so each step keeps what differs.
        let mixed = (self.0.rotate_left(26) ^ next.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(mixed ^ mixed >> 32)
    }

    /// The number, never 0, for stores that remember whose states they hold.
    #[inline]
    pub(crate) const fn number(self) -> u64 {
        if self.0 == 0 { 1 } else { self.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_differs_makes_another_kind() {
        let kinds = [
            StateKind::of_tag(0x11),
            StateKind::of_tag(0x13),
            StateKind::window(0x13, 1, 0),
            StateKind::window(0x13, 0, 1),
            StateKind::window(0x15, 1, 0),
            StateKind::window(0x15, 2, 0),
            StateKind::of_tag(0x11).and(StateKind::of_tag(0x13)),
            StateKind::of_tag(0x13).and(StateKind::of_tag(0x11)),
        ];
        for (i, one) in kinds.iter().enumerate() {
            assert_ne!(one.number(), 0);
            assert_eq!(kinds.iter().position(|other| other == one), Some(i));
        }
    }
}
