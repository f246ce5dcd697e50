//! Fixed windows, aligned to the Unix epoch or anchored at a key's first request.

use std::sync::LazyLock;
use std::time::Duration;

use ratekeeper::store::StoreError;
use ratekeeper::{FixedWindow, Request};

use super::sliding_window::{window_ns, window_op};
use super::{Call, RedisAlgorithm};
use crate::pack::{Double, Packed};
use crate::script::Script;

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::after_prologue(&[include_str!("../scripts/fixed_window.lua")]));

impl RedisAlgorithm for FixedWindow {
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
        let packed = if self.is_anchored() {
            packed.double(Double::MINUS_ONE)
        } else {
            packed.number(self.offset().as_nanos())
        };
        Ok(Call::new(&SCRIPT, vec![op.pack(packed).into_argument()]))
    }
}
