//! Sliding-window counters.

use std::sync::LazyLock;
use std::time::Duration;

use ratekeeper::store::StoreError;
use ratekeeper::{Request, SlidingWindow};

use super::bucket::MULDIV;
use super::{Call, RedisAlgorithm, unknown_request, unsupported};
use crate::pack::Packed;
use crate::script::Script;

static SCRIPT: LazyLock<Script> = LazyLock::new(|| {
    Script::after_prologue(&[MULDIV, include_str!("../scripts/sliding_window.lua")])
});

/// Three windows must stay below 2^53 ns.
const LONGEST_WINDOW_NS: u128 = 3_000_000_000_000_000;

impl RedisAlgorithm for SlidingWindow {
    fn call(&self, request: &Request, grace: Duration) -> Result<Call, StoreError> {
        let Some(op) = window_op(request)? else {
            return Ok(Call::look());
        };
        let window_ns = window_ns(self.window())?;
        let packed = Packed::new()
            .byte(op.code())
            .grace(grace)
            .number(self.limit())
            .number(window_ns);
        Ok(Call::new(&SCRIPT, vec![op.pack(packed).into_argument()]))
    }
}

/// # Errors
/// `Unsupported` if the window is too long for the scripts' doubles.
pub(super) fn window_ns(window: Duration) -> Result<u128, StoreError> {
    let window_ns = window.as_nanos();
    if window_ns > LONGEST_WINDOW_NS {
        return Err(unsupported(
            "a window longer than 34 days does not fit the numbers of Redis",
        ));
    }
    Ok(window_ns)
}

/// What a request asks of a window, as the scripts number it.
pub(super) enum WindowOp {
    Take { cost: u64, least: u64 },
    Refund { cost: u64, mark: u64 },
}

/// `None` for a peek.
pub(super) fn window_op(request: &Request) -> Result<Option<WindowOp>, StoreError> {
    Ok(match request {
        Request::Take { cost: 0, .. } => None,
        Request::Take { cost, at_least, .. } => Some(WindowOp::Take {
            cost: *cost,
            least: (*at_least).clamp(1, *cost),
        }),
        Request::Refund { cost, receipt, .. } => Some(WindowOp::Refund {
            cost: (*cost).min(receipt.charged()),
            mark: receipt.mark(),
        }),
        _ => return Err(unknown_request()),
    })
}

impl WindowOp {
    pub(super) const fn code(&self) -> u8 {
        match self {
            Self::Take { .. } => 0,
            Self::Refund { .. } => 1,
        }
    }

    pub(super) fn pack(&self, packed: Packed) -> Packed {
        match self {
            Self::Take { cost, least } => packed.number(*cost).number(*least),
            Self::Refund { cost, mark } => packed.number(*cost).word(*mark),
        }
    }
}
