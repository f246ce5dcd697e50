//! Turns for the callers of one process who change the same key.

use std::hash::{BuildHasher, RandomState};

use tokio::sync::{Mutex, MutexGuard};

/// Of the callers in one process who change a key at the same time, one would win each round, and the others would ask in
/// vain. So they take turns, first come, first served, and compete only with other processes. Callers who only read, as
/// those who are refused, need no turn: a key under attack has no queue.
pub(crate) struct Turns {
    queues: Box<[Mutex<()>]>,
    hasher: RandomState,
}

impl Turns {
    /// Keys share queues, which costs little: one in 1024 of the changes under way at the same time waits for another key's.
    const QUEUES: usize = 1024;

    pub(crate) fn new() -> Self {
        Self {
            queues: (0..Self::QUEUES).map(|_| Mutex::new(())).collect(),
            hasher: RandomState::new(),
        }
    }

    /// A turn at once, if nobody else has one. It lasts until it is dropped.
    pub(crate) fn try_take(&self, name: &str) -> Option<MutexGuard<'_, ()>> {
        self.queue(name).try_lock().ok()
    }

    /// Waits for a turn.
    pub(crate) async fn take(&self, name: &str) -> MutexGuard<'_, ()> {
        self.queue(name).lock().await
    }

    #[allow(clippy::cast_possible_truncation, reason = "any of the bits will do")]
    fn queue(&self, name: &str) -> &Mutex<()> {
        &self.queues[self.hasher.hash_one(name) as usize % self.queues.len()]
    }
}
